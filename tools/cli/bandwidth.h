// How fast this machine moves bytes.
#pragma once

#include <string>

namespace moe::tools {

struct Bandwidth {
  double bytes_per_second = 0;  // read and written together, of the fastest plain pass
  std::string pass;             // which that was
};

// The fastest of the floor's passes, half reading and half writing 64 MiB each; takes about half a
// second.
Bandwidth measure_bandwidth(int num_workers);

}  // namespace moe::tools
