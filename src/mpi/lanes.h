// Two chunks under way at once: while one travels, the other is worked on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "mpi/wire.h"

namespace moe::mpi {

// Memory that grows and is never cleared: what is exchanged step after step has the same size.
class Buffer {
 public:
  std::byte* of_size(int64_t bytes) {
    if (bytes > capacity_) {
      memory_.reset();
      memory_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(bytes));
      capacity_ = bytes;
    }
    return memory_.get();
  }
  std::byte* data() const { return memory_.get(); }

 private:
  std::unique_ptr<std::byte[]> memory_;
  int64_t capacity_ = 0;
};

struct Lane {
  Buffer outgoing, incoming;
  Transfer transfer;  // last, so that it is waited for before its memory goes
};

using Lanes = std::array<Lane, 2>;

// start(c, lane) and finish(c, lane) for each chunk c in turn; chunk c + 1 is started before chunk
// c is finished. `finish` finds the transfer done.
template <class Start, class Finish>
void pipeline(Lanes& lanes, size_t num_chunks, const Start& start, const Finish& finish) {
  for (size_t c = 0; c <= num_chunks; ++c) {
    if (c < num_chunks) start(c, lanes[c % 2]);
    if (c == 0) continue;
    Lane& lane = lanes[(c - 1) % 2];
    lane.transfer.wait();
    finish(c - 1, lane);
  }
}

}  // namespace moe::mpi
