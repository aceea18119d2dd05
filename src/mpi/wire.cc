#include "mpi/wire.h"

#include <cstddef>
#include <numeric>
#include <utility>

namespace moe::mpi {
namespace {

std::vector<int> as_int(std::span<const int64_t> counts) { return {counts.begin(), counts.end()}; }

std::vector<int> starts_of(const std::vector<int>& counts) {
  std::vector<int> starts(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), starts.begin(), 0);
  return starts;
}

int64_t sum(std::span<const int64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

MPI_Datatype row_type(int64_t row_bytes) {
  MPI_Datatype row = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(static_cast<int>(row_bytes), MPI_BYTE, &row);
  MPI_Type_commit(&row);
  return row;
}

}  // namespace

void Transfer::swap(Transfer& other) noexcept {
  send_counts_.swap(other.send_counts_);
  send_starts_.swap(other.send_starts_);
  receive_counts_.swap(other.receive_counts_);
  receive_starts_.swap(other.receive_starts_);
  std::swap(row_, other.row_);
  std::swap(request_, other.request_);
}

void Transfer::wait() {
  if (request_ != MPI_REQUEST_NULL) MPI_Wait(&request_, MPI_STATUS_IGNORE);
  if (row_ != MPI_DATATYPE_NULL) MPI_Type_free(&row_);
}

Wire::Wire(MPI_Comm comm) {
  MPI_Comm_dup(comm, &comm_);
  // No return code is read: a handler that comes back would make a wrong result of an error.
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &num_ranks_);
}

Wire::~Wire() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized == 0) MPI_Comm_free(&comm_);
}

std::vector<int64_t> Wire::gather(int64_t value, Traffic::Bytes& traffic) const {
  std::vector<int64_t> all(static_cast<size_t>(num_ranks_));
  MPI_Allgather(&value, 1, MPI_INT64_T, all.data(), 1, MPI_INT64_T, comm_);
  const int64_t bytes = (num_ranks_ - 1) * static_cast<int64_t>(sizeof value);
  traffic.sent += bytes;
  traffic.received += bytes;
  return all;
}

Transfer Wire::all_gather(int64_t row_bytes, const void* mine, std::span<const int64_t> counts,
                          void* all, Traffic::Bytes& traffic) const {
  const auto self = static_cast<size_t>(rank_);
  Transfer transfer;
  transfer.receive_counts_ = as_int(counts);
  transfer.receive_starts_ = starts_of(transfer.receive_counts_);
  transfer.row_ = row_type(row_bytes);
  MPI_Iallgatherv(mine, transfer.receive_counts_[self], transfer.row_, all,
                  transfer.receive_counts_.data(), transfer.receive_starts_.data(), transfer.row_,
                  comm_, &transfer.request_);
  traffic.sent += counts[self] * row_bytes * (num_ranks_ - 1);
  traffic.received += (sum(counts) - counts[self]) * row_bytes;
  return transfer;
}

Transfer Wire::all_to_all(int64_t row_bytes, const void* outgoing, std::span<const int64_t> to,
                          void* incoming, std::span<const int64_t> from,
                          Traffic::Bytes& traffic) const {
  const auto self = static_cast<size_t>(rank_);
  Transfer transfer;
  transfer.send_counts_ = as_int(to);
  transfer.send_starts_ = starts_of(transfer.send_counts_);
  transfer.receive_counts_ = as_int(from);
  transfer.receive_starts_ = starts_of(transfer.receive_counts_);
  transfer.row_ = row_type(row_bytes);
  MPI_Ialltoallv(outgoing, transfer.send_counts_.data(), transfer.send_starts_.data(),
                 transfer.row_, incoming, transfer.receive_counts_.data(),
                 transfer.receive_starts_.data(), transfer.row_, comm_, &transfer.request_);
  traffic.sent += (sum(to) - to[self]) * row_bytes;
  traffic.received += (sum(from) - from[self]) * row_bytes;
  return transfer;
}

}  // namespace moe::mpi
