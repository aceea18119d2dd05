// A communicator of our own and the two collectives that rows travel by, counted.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <span>
#include <vector>

#include "moe/mpi.h"

namespace moe::mpi {

// A collective under way. Keeps what MPI reads until it is done; the destructor waits, because MPI
// writes to the caller's memory until then.
class Transfer {
 public:
  Transfer() = default;
  Transfer(Transfer&& other) noexcept { swap(other); }
  Transfer& operator=(Transfer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Transfer() { wait(); }

  void wait();

 private:
  friend class Wire;
  void swap(Transfer& other) noexcept;

  // Per rank, in rows: MPI counts in int, so the rows themselves are its unit, not bytes.
  std::vector<int> send_counts_, send_starts_, receive_counts_, receive_starts_;
  MPI_Datatype row_ = MPI_DATATYPE_NULL;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

class Wire {
 public:
  explicit Wire(MPI_Comm comm);
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  int rank() const { return rank_; }
  int num_ranks() const { return num_ranks_; }

  // Every rank's `value`, by rank.
  std::vector<int64_t> gather(int64_t value, Traffic::Bytes& traffic) const;

  // counts[r] rows of every rank r, one rank's behind another's.
  Transfer all_gather(int64_t row_bytes, const void* mine, std::span<const int64_t> counts,
                      void* all, Traffic::Bytes& traffic) const;

  // to[r] rows for each rank r, and from[r] rows of each rank r.
  Transfer all_to_all(int64_t row_bytes, const void* outgoing, std::span<const int64_t> to,
                      void* incoming, std::span<const int64_t> from, Traffic::Bytes& traffic) const;

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int num_ranks_ = 0;
};

}  // namespace moe::mpi
