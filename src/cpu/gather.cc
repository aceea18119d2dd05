// Sums of rows on the CPU: each token gathers its rows of the window, so no two threads write the
// same place and nothing of the slots' size is ever stored.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/gather.cc"
// clang-format off: foreach_target comes first, and includes this file again for each target.
#include "hwy/foreach_target.h"
#include "cpu/gather-inl.h"
// clang-format on

#if HWY_ONCE
#include <algorithm>

#include "core/dtypes.h"
#include "core/fp_mode.h"
#include "cpu/check_indices.h"
#include "cpu/cut.h"
#include "cpu/row_kernels.h"
#include "cpu/streaming.h"
#include "cpu/targets.h"

namespace moe::cpu {
namespace {

HWY_EXPORT(choose_gather);

// How many rows before its turn a row of sums is asked for into the second-level cache.
int64_t far_rows_of_sums(int64_t num_rows, double rows_per_token, int64_t row_bytes) {
  const bool read_much = bytes_per_token(rows_per_token, row_bytes) >= kFarTokenBytes;
  return far_rows(num_rows, row_bytes, read_much ? kFarReadBytes : kFarWindowBytes);
}

class GatherCall final : public Call {
 public:
  GatherCall(const Gather& gather, const Cut& cut, bool check_indices, size_t workspace_bytes,
             GatherChunks* run_chunks)
      : Call(run, workspace_bytes),
        run_chunks_(run_chunks),
        check_indices_(check_indices),
        cut_(cut),
        gather_(gather) {}

 private:
  static void run(const Call& call, void* workspace) {
    const auto& self = static_cast<const GatherCall&>(call);
    const Gather& gather = self.gather_;
    const SlotSource& slots = gather.slots;
    hwy::Prefetch(slots.indices);  // on its way while the code is found that reads it
    if (self.check_indices_) {
      check_indices(slots.index_dtype, slots.indices, slots.index_stride,
                    gather.num_tokens * slots.top_k, workspace);
    }
    parallel_cut(self.cut_, [&](Chunks& chunks) { self.run_chunks_(gather, chunks); });
  }

  GatherChunks* run_chunks_;
  bool check_indices_;
  Cut cut_;
  Gather gather_;
};

}  // namespace

std::vector<GatherTarget> gather_targets() {
  std::vector<GatherTarget> targets;
  for_each_target([&](const Target& target) {
    targets.push_back({target.name, HWY_DISPATCH_TABLE(choose_gather)[target.index], target.wide});
  });
  return targets;
}

std::shared_ptr<const Call> gather_call(Gather gather, const GatherRun& how) {
  const FpMode mode;  // the caller's may trap
  const int64_t num_rows = gather.slots.window.end - gather.slots.window.begin;
  const Cut cut = cut_rows({.num_tokens = gather.num_tokens,
                            .top_k = gather.slots.top_k,
                            .window_rows = num_rows,
                            .row_bytes = gather.row_bytes,
                            .has_probs = gather.weighted || gather.probs_out},
                           how.num_threads);
  gather.rows_per_token =
      static_cast<double>(num_rows) / static_cast<double>(std::max<int64_t>(1, gather.num_tokens));
  gather.far_rows = far_rows_of_sums(num_rows, gather.rows_per_token, gather.row_bytes);
  const bool streaming = use_streaming(gather.out, gather.num_tokens * gather.row_bytes,
                                       dtype_bytes(gather.dtype), cut.num_workers());
  const Chunk part = cut[0];
  return std::make_shared<GatherCall>(
      gather, cut, how.check_indices, how.workspace_bytes,
      how.choose(gather, part.last_byte - part.first_byte, streaming));
}

}  // namespace moe::cpu
#endif  // HWY_ONCE
