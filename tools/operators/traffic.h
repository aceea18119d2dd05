// The bytes that an operator's case must move.
#pragma once

#include "operators/operator.h"

namespace moe::tools {

struct Traffic {
  int64_t bytes_read = 0;  // at most: a token that several rows need counts once for each
  int64_t bytes_written = 0;
};

Traffic traffic_of(const Operator& op, const Operands& operands, const Planned& planned);

}  // namespace moe::tools
