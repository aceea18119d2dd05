#include "mpi/agreement.h"

#include <algorithm>
#include <climits>
#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

namespace moe::mpi {
namespace {

constexpr int64_t kNoDType = -1;

struct Field {
  const char* name;
  int64_t value;
  std::string (*spell)(int64_t value);
};

std::string spell_number(int64_t value) { return std::to_string(value); }

std::string spell_dtype(int64_t value) {
  return value == kNoDType ? "none" : dtype_name(static_cast<DType>(value));
}

std::string spell_form(int64_t value) {
  switch (static_cast<ExchangeForm>(value)) {
    case ExchangeForm::kAllGather:
      return "all-gather";
    case ExchangeForm::kAllToAll:
      return "all-to-all";
  }
  return "no form";
}

std::vector<Field> fields_of(const ExpertExchange::Args& args) {
  const int64_t probs_dtype = args.probs_dtype ? static_cast<int64_t>(*args.probs_dtype) : kNoDType;
  return {{"num_experts", args.num_experts, spell_number},
          {"top_k", args.top_k, spell_number},
          {"hidden_size", args.hidden_size, spell_number},
          {"dtype", static_cast<int64_t>(args.dtype), spell_dtype},
          {"probs_dtype", probs_dtype, spell_dtype},
          {"form", static_cast<int64_t>(args.form), spell_form},
          {"num_chunks", args.num_chunks, spell_number}};
}

// Names the first rank that differs from rank 0.
void check_same(const Field& field, const std::vector<int64_t>& values) {
  for (size_t rank = 1; rank < values.size(); ++rank) {
    if (values[rank] == values[0]) continue;
    throw InvalidArgument(field.name, "rank " + std::to_string(rank) + " has " +
                                          field.spell(values[rank]) + ", but rank 0 has " +
                                          field.spell(values[0]) + ", and all ranks must agree");
  }
}

void check_range(const char* argument, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return;
  throw InvalidArgument(argument, std::to_string(value) + ", but needs a number from " +
                                      std::to_string(least) + " to " + std::to_string(most));
}

void check_form(ExchangeForm form) {
  if (form == ExchangeForm::kAllGather || form == ExchangeForm::kAllToAll) return;
  throw InvalidArgument(
      "form", std::to_string(static_cast<int>(form)) + ", but needs all-gather or all-to-all");
}

void check_floating(const char* argument, DType dtype) {
  constexpr DType kFloating[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF64};
  if (std::find(std::begin(kFloating), std::end(kFloating), dtype) != std::end(kFloating)) return;
  throw InvalidArgument(argument, std::string(dtype_name(dtype)) +
                                      ", but needs float32, float16, bfloat16 or float64");
}

void check_dtypes(const ExpertExchange::Args& args) {
  check_floating("dtype", args.dtype);
  if (!args.probs_dtype) return;
  check_floating("probs_dtype", *args.probs_dtype);
  if ((args.dtype == DType::kF64) != (*args.probs_dtype == DType::kF64)) {
    throw InvalidArgument("probs_dtype", std::string(dtype_name(*args.probs_dtype)) +
                                             ", but dtype is " + dtype_name(args.dtype) +
                                             ": float64 goes with float64 only");
  }
}

}  // namespace

void check_agreement(const Wire& wire, const ExpertExchange::Args& args) {
  // Every field travels before the first is judged: a rank that throws has exchanged as much as all
  // others.
  const std::vector<Field> fields = fields_of(args);
  std::vector<std::vector<int64_t>> values;
  values.reserve(fields.size());
  Traffic::Bytes setup;
  for (const Field& field : fields) values.push_back(wire.gather(field.value, setup));
  for (size_t i = 0; i < fields.size(); ++i) check_same(fields[i], values[i]);

  check_range("num_experts", args.num_experts, 1, INT_MAX);
  check_range("num_chunks", args.num_chunks, 1, INT_MAX);
  check_form(args.form);
  check_dtypes(args);
  // MPI counts in rows, whose own bytes it counts in int: rows of H elements, and of K ids or
  // probs.
  check_range("top_k", args.top_k, 1, INT_MAX / dtype_bytes(DType::kI64));
  check_range("hidden_size", args.hidden_size, 1, INT_MAX / dtype_bytes(args.dtype));
}

}  // namespace moe::mpi
