#include "floor/floor.h"

#include "core/threads.h"
#include "floor/passes.h"

namespace moe::bench {
namespace {

constexpr int64_t kLine = 64;

// A worker's share of one transfer: part `worker` of `num_workers`, cut at whole lines.
Transfer share_of(const Transfer& all, int worker, int num_workers) {
  const auto cut = [&](int64_t bytes, int64_t part) {
    return part == num_workers ? bytes : bytes / kLine * part / num_workers * kLine;
  };
  const int64_t read = cut(all.bytes_read, worker), written = cut(all.bytes_written, worker);
  return {all.from + read, cut(all.bytes_read, worker + 1) - read, all.to + written,
          cut(all.bytes_written, worker + 1) - written};
}

Move move_for_this_machine(const FloorPass& pass) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) return avx2_move(pass);
#endif
  return baseline_move(pass);
}

std::vector<FloorPass> all_passes() {
  std::vector<FloorPass> passes;
  for (int streams : {1, 4, 8}) {
    for (bool prefetch : {false, true}) {
      for (bool streaming : {false, true}) passes.push_back({streams, prefetch, streaming});
    }
  }
  return passes;
}

}  // namespace

std::string FloorPass::name() const {
  return std::to_string(num_streams) + (num_streams == 1 ? " stream, " : " streams, ") +
         (prefetch ? "prefetch, " : "no prefetch, ") +
         (streaming_stores ? "streaming" : "ordinary");
}

const std::vector<FloorPass>& floor_passes() {
  static const std::vector<FloorPass> passes = all_passes();
  return passes;
}

void run_floor_pass(const FloorPass& pass, std::span<const Transfer> transfers, int num_workers) {
  const Move move_share = move_for_this_machine(pass);
  parallel_workers(num_workers, [&](int worker) {
    for (const Transfer& t : transfers) move_share(share_of(t, worker, num_workers));
  });
}

void read_once(const std::byte* from, int64_t bytes, int num_workers) {
  const Transfer transfer{from, bytes, nullptr, 0};
  run_floor_pass({8, true, false}, {&transfer, 1}, num_workers);
}

}  // namespace moe::bench
