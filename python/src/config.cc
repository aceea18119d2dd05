#include "config.h"

#include <unistd.h>

#include <algorithm>
#include <limits>

#include "arguments.h"
#include "errors.h"
#include "moe/engine.h"
#include "moe/permute_with_ep.h"
#include "moe/permute_with_ep_grad.h"
#include "moe/sort_by_expert.h"
#include "moe/unpermute_with_ep.h"
#include "moe/unpermute_with_ep_grad.h"
#include "xla.h"

namespace moe::python {
namespace {

template <class Op>
nb::list kernels() {
  nb::list names;
  for (const std::string& name : Op::kernel_names()) names.append(nb::str(name.c_str()));
  return names;
}

nb::dict all_kernels() {
  nb::dict names;
  names["permute"] = kernels<PermuteWithEp>();
  names["permute_grad"] = kernels<PermuteWithEpGrad>();
  names["unpermute"] = kernels<UnpermuteWithEp>();
  names["unpermute_grad"] = kernels<UnpermuteWithEpGrad>();
  names["sort_indices"] = kernels<SortByExpert>();
  return names;
}

nb::object cache_bytes(int name) {
  const long bytes = sysconf(name);
  return bytes > 0 ? nb::object(nb::int_(bytes)) : nb::none();
}

nb::dict caches() {
  nb::dict bytes;
#ifdef _SC_LEVEL1_DCACHE_SIZE
  bytes["L1d"] = cache_bytes(_SC_LEVEL1_DCACHE_SIZE);
  bytes["L2"] = cache_bytes(_SC_LEVEL2_CACHE_SIZE);
  bytes["L3"] = cache_bytes(_SC_LEVEL3_CACHE_SIZE);
#endif
  return bytes;
}

}  // namespace

nb::object set_num_threads(nb::handle num_threads) {
  const int64_t n = to_optional_int(num_threads, "num_threads").value_or(0);
  if (!num_threads.is_none() && n < 1) {
    throw_value_error("num_threads", n, ", but needs 1 or more, or None for the default");
  }
  moe::set_num_threads(static_cast<int>(std::min<int64_t>(n, std::numeric_limits<int>::max())));
  return nb::none();
}

int num_threads() { return moe::num_threads(); }

nb::dict config() {
  nb::dict result;
  result["version"] = MOE_PYTHON_VERSION;
  result["library"] = MOE_PYTHON_LIBRARY;
  result["compiler"] = MOE_PYTHON_COMPILER;
  result["num_threads"] = moe::num_threads();
  result["jax"] = nb::len(xla_handlers()) > 0;
  result["kernels"] = all_kernels();
  result["cache_bytes"] = caches();
  return result;
}

}  // namespace moe::python
