// The slots of a few tokens that lead into the window, packed; compiled once per instruction set.
#include <algorithm>
#include <bit>
#include <cstring>

#include "core/dtypes.h"
#include "cpu/rows-inl.h"
#include "cpu/slots.h"
#include "cpu/tuning.h"
#include "moe/tensor.h"

#if defined(MOE_CPU_BATCH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MOE_CPU_BATCH_INL_H_
#undef MOE_CPU_BATCH_INL_H_
#else
#define MOE_CPU_BATCH_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace moe::cpu {
namespace HWY_NAMESPACE {

// Slots inside the window, in slot order. Weighted ones of weight 0 are left out.
template <class Weight>
struct PackedSlots {
  int64_t first_token = 0;
  int32_t slot[kMaxRows];             // counted from the first token's first
  int64_t row[kMaxRows];              // of the window
  Weight weights[kMaxRows];           // widened probs
  uint64_t taken[kMaxRows / 64 + 1];  // a bit for each slot
};

// The same, token by token.
template <class Weight>
struct Batch : PackedSlots<Weight> {
  int64_t num_tokens;
  int32_t begin[kBatchSlots + 1];  // token i has the slots [begin[i], begin[i + 1])

  int64_t num_rows() const { return begin[num_tokens]; }
};

// Narrow rows: how many rows before its turn one is asked for.
inline int64_t rows_ahead(int64_t row_bytes) {
  return std::clamp(kNarrowAheadBytes / (row_bytes + 1), kNarrowAheadRows, kMaxGroup);
}

// Puts the first rows of the next batch, `most` of them, behind those of a batch, so that they can
// be asked for while its last ones are read; `otherwise` where there are fewer.
inline void append_ahead(const uint8_t** rows, int64_t count, const uint8_t* const* next,
                         int64_t next_count, int64_t most, const uint8_t* otherwise) {
  const int64_t from_next = std::min(most, next_count);
  std::copy_n(next, from_next, rows + count);
  std::fill_n(rows + count + from_next, most - from_next, otherwise);
}

// A bit for each of `count` slots, at most 64, that is inside the window.
template <class Index>
HWY_INLINE uint64_t bits_inside(Slots<Index> slots, int64_t count) {
  uint64_t bits = 0;
  for (int64_t i = 0; i < count; ++i) bits |= uint64_t{slots.next().inside} << i;
  return bits;
}

// The same for 64 contiguous int32 indices.
HWY_INLINE uint64_t bits_inside(const uint8_t* indices, const EpRange& window) {
  const hn::CappedTag<int32_t, 8> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto begin = hn::Set(d, static_cast<int32_t>(window.begin));
  const auto num_rows = hn::Set(du, static_cast<uint32_t>(window.end - window.begin));
  uint64_t bits = 0;
  for (int64_t i = 0; i < 64; i += lanes) {
    const hn::Repartition<uint8_t, decltype(d)> bytes;
    const auto rows = hn::Sub(hn::BitCast(d, hn::LoadU(bytes, indices + i * 4)), begin);
    uint8_t few[8] = {};
    hn::StoreMaskBits(du, hn::Lt(hn::BitCast(du, rows), num_rows), few);
    bits |= uint64_t{few[0]} << i;
  }
  return bits;
}

// A bit for each of `count` weights, at most 64, that is not 0. NaN is not.
template <class Weight>
HWY_INLINE uint64_t bits_not_zero(const Weight* weights, int64_t count) {
  const hn::CappedTag<Weight, 8> d;
  const int64_t lanes = count == 64 ? static_cast<int64_t>(hn::Lanes(d)) : 65;
  uint64_t bits = 0;
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    uint8_t few[8] = {};
    // Not Ne: on some instruction sets it leaves out NaN.
    hn::StoreMaskBits(d, hn::Not(hn::Eq(hn::LoadU(d, weights + i), hn::Zero(d))), few);
    bits |= uint64_t{few[0]} << i;
  }
  for (; i < count; ++i) bits |= uint64_t{weights[i] != 0} << i;
  return bits;
}

// The weights of all slots of some tokens.
template <class Weight>
HWY_INLINE void widen_probs(const SlotSource& source, int64_t first_token, int64_t num_tokens,
                            Weight* weights) {
  const WeightSource& from = source.weights;
  visit_float(from.dtype, [&](auto prob) {
    using Prob = decltype(prob);
    const auto* probs = static_cast<const char*>(from.probs) +
                        first_token * from.token_stride * int64_t{sizeof(Prob)};
    const auto weight_at = [&](int64_t at) {
      return narrow_nan(static_cast<Weight>(widen(load<Prob>(probs, at))));
    };
    if (from.stride == 1 && from.token_stride == source.top_k) {  // in vectors
      for (int64_t i = 0; i < num_tokens * source.top_k; ++i) weights[i] = weight_at(i);
      return;
    }
    for (int64_t token = 0; token < num_tokens; ++token) {
      for (int64_t k = 0; k < source.top_k; ++k) {
        *weights++ = weight_at(token * from.token_stride + k * from.stride);
      }
    }
  });
}

// A bit for each of the slots [slot, slot + count), at most 64, that is inside the window.
template <class Index>
HWY_INLINE uint64_t bits_of_slots(const SlotSource& source, int64_t slot, int64_t count) {
  if (sizeof(Index) == 4 && source.index_stride == 1 && source.window.end <= INT32_MAX &&
      count == 64) {
    return bits_inside(static_cast<const uint8_t*>(source.indices) + slot * 4, source.window);
  }
  return bits_inside(Slots<Index>(source.indices, source.index_stride, source.window, slot), count);
}

// Packs `num_slots` from those of first_token on; weights hold theirs before. Gives how many it
// took.
template <class Index, class Weight>
HWY_INLINE int64_t pack_slots(const SlotSource& source, int64_t num_slots,
                              PackedSlots<Weight>& packed) {
  int64_t n = 0;
  for (int64_t first = 0; first < num_slots; first += 64) {
    const int64_t count = std::min<int64_t>(64, num_slots - first);
    const int64_t slot = packed.first_token * source.top_k + first;
    const auto* indices = static_cast<const uint8_t*>(source.indices) +
                          slot * source.index_stride * int64_t{sizeof(Index)};
    uint64_t bits = bits_of_slots<Index>(source, slot, count);
    if constexpr (kWeighted<Weight>) bits &= bits_not_zero(packed.weights + first, count);
    packed.taken[first / 64] = bits;
    const auto take = [&](int64_t i) {
      if constexpr (kWeighted<Weight>) packed.weights[n] = packed.weights[first + i];
      packed.slot[n] = static_cast<int32_t>(first + i);
      packed.row[n++] = load<Index>(indices, i * source.index_stride) - source.window.begin;
    };
    if (bits == ~uint64_t{0}) {
      for (int64_t i = 0; i < 64; ++i) take(i);
    } else {
      for (; bits; bits &= bits - 1) take(std::countr_zero(bits));
    }
  }
  packed.taken[(num_slots + 63) / 64] = 0;
  return n;
}

// Bits [begin, end) that are set.
HWY_INLINE int64_t count_bits(const uint64_t* words, int64_t begin, int64_t end) {
  int64_t count = 0;
  for (; begin < end; begin += 64) {
    const int64_t shift = begin % 64;
    uint64_t word = words[begin / 64] >> shift;
    if (shift) word |= words[begin / 64 + 1] << (64 - shift);
    if (end - begin < 64) word &= (uint64_t{1} << (end - begin)) - 1;
    count += std::popcount(word);
  }
  return count;
}

// Packs the slots of the tokens [first_token, first_token + num_tokens).
template <class Weight>
HWY_NOINLINE void pack(const SlotSource& source, int64_t first_token, int64_t num_tokens,
                       Batch<Weight>& batch) {
  if constexpr (kWeighted<Weight>) widen_probs(source, first_token, num_tokens, batch.weights);
  batch.first_token = first_token;
  batch.num_tokens = num_tokens;
  const int64_t num_slots = num_tokens * source.top_k;
  int64_t n = 0;
  visit_index(source.index_dtype,
              [&](auto index) { n = pack_slots<decltype(index)>(source, num_slots, batch); });
  batch.begin[0] = 0;
  const bool all = n == num_slots;
  for (int64_t i = 0; i < num_tokens; ++i) {
    const int64_t first = i * source.top_k;
    const int64_t count = all ? source.top_k : count_bits(batch.taken, first, first + source.top_k);
    batch.begin[i + 1] = batch.begin[i] + static_cast<int32_t>(count);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace moe::cpu
HWY_AFTER_NAMESPACE();

#endif
