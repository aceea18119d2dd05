#include "acl/permute_rows.h"

#include <algorithm>
#include <string>

#include "acl/arguments.h"
#include "acl/runtime/error.h"
#include "moe/error.h"

namespace moe::acl {

void check_rows_of_range(const char* name, const TensorDesc& output, const EpRange& range) {
  const int64_t rows = output.shape[0], needed = range.end - range.begin;
  if (rows == needed) return;
  throw InvalidArgument(name, text(rows, " rows, but the range [", range.begin, ", ", range.end,
                                   ") needs exactly ", needed));
}

void check_rows_kept(const char* name, const TensorDesc& output, int64_t num_out_tokens,
                     int64_t num_slots) {
  const int64_t rows = output.shape[0];
  const int64_t kept = num_out_tokens > 0 ? std::min(num_out_tokens, num_slots)
                                          : std::max<int64_t>(0, num_slots + num_out_tokens);
  if (rows == kept) return;
  throw InvalidArgument(name, text(rows, " rows, but numOutTokens ", num_out_tokens, " keeps ",
                                   kept, " of ", num_slots, " slots"));
}

void check_experts_per_token(const char* name, const TensorDesc& indices) {
  if (indices.num_dims == 2) check_top_k(name, indices.shape[1]);
}

}  // namespace moe::acl
