// The CPU backend's numbers, with how each was found. Figures are shares of the floor at 4096
// tokens in bfloat16, variants interleaved in one run, on two cores of an AMD EPYC 7003, where
// nothing else is said, whose memory was shared with others.
#pragma once

#include <cstdint>

namespace moe::cpu {

// The largest top_k of the kernels that sum rows: a token's slots lie on the worker's stack.
constexpr int64_t kMaxRows = 1024;
// Tokens that are read together at most, however few rows they have.
constexpr int64_t kMaxGroup = 16;

// Sums of rows (gather-inl.h). A token whose rows are enough is read a line of each row at a time,
// which for rows of 1 KiB gave 0.79 of the floor, and two lines at a time 0.70. Tokens with few
// rows are read in groups, this many bytes of each in turn: 512 gave 0.82 and 0.99 (Qwen3-30B and
// Mixtral, a rank of 8), 256 gave 0.73 and 0.71, 64 gave 0.5.
constexpr int64_t kTurnBytes = 512;
// Bytes that are asked for before they are read: of one row half of this, and half as many for each
// as often as the rows of a group double, but at least so many. 2 KiB to 8 KiB were equal; 512
// bytes of each of eight rows lost up to a tenth.
constexpr int64_t kGroupAheadBytes = 4096;
constexpr int64_t kRowAheadBytes = 256;
// Rows that make a group: as many as come to so many bytes, but 4 at least (8 lost a tenth where
// rows are long) and kMaxGroup at most (8 lost a twentieth where rows have 256 bytes).
constexpr int64_t kGroupBytes = 8192;
constexpr int64_t kGroupRows = 4;
// Tokens are taken one after another, not in groups, where they read less than kGroupedTokenBytes
// on average, those without rows counted, and rows are no longer than kNarrowRowBytes: with each
// line of a row, the line of a row that lies kNarrowAheadBytes further on is asked for, and two
// rows at least. Rows of 1 KiB on a rank of 8 0.78 instead of 0.69, of 256 bytes 0.61 instead of
// 0.56; but eight rows of 1 KiB 0.74 instead of 0.87, and longer rows lost up to a tenth. Half the
// distance was equal, twice and four times as much lost a twentieth. With rows asked for twice
// (below) on an AMD EPYC 9004, 4 KiB on a rank of 8 in groups were 1.01 to 1.09 times as fast
// (UnpermuteWithEp 0.9 to 1.06), on one of 32 0.88 to 1.06. Where every slot is inside, rows of
// kGroupedFullRowBytes are grouped, too: one of 1 KiB 1.0 to 1.13 times as fast from 4096 tokens
// on, 0.95 to 1.15 with 512; on ranks 0.79 to 1.12.
constexpr double kGroupedTokenBytes = 3072;
constexpr int64_t kNarrowRowBytes = 4608;
constexpr int64_t kGroupedFullRowBytes = 1024;
constexpr int64_t kNarrowAheadBytes = 4096;
constexpr int64_t kNarrowAheadRows = 2;
// Where a window's rows come to so many bytes, rows are asked for twice: into the second-level
// cache when a row kFarBytes before it is read, and into the first as above. On an AMD EPYC 9004,
// 1.1 to 1.3 times as fast with rows of 1 KiB and more, 1.4 to 1.7 with rows of 256 bytes; 32 KiB
// gained less, 128 KiB lost ranks again. Sums of tokens that read kFarTokenBytes and more gain from
// windows of kFarReadBytes on, 0.91 to 1.18 with 512 tokens, mostly more than 1; just below, 16
// tokens of DeepSeek-V3 took 0.93 to 1.01 of the time without. Where tokens read less, such windows
// lost up to a twentieth. Copies gain where a rank reads so many bytes, 0.98 to 1.3 with 4096
// tokens, mostly more than 1.05; less, and what is read in order, gained nothing.
constexpr int64_t kFarBytes = 64 << 10;
constexpr int64_t kMaxFarRows = 256;
constexpr double kFarWindowBytes = 10 << 20;
constexpr double kFarReadBytes = 2 << 20;
constexpr double kFarTokenBytes = 2048;
// On an Intel Xeon of the fifth generation with an L3 of 300 MiB that is shared, only windows of so
// many bytes gain: 67 MB and more 1.02 to 1.13 times as fast, up to 34 MB all experts 0.85 to 1.0,
// ranks of 8 0.91 to 1.02; one of the third generation agreed (ranks 0.95 to 0.99).
constexpr double kIntelFarWindowBytes = 48 << 20;
// Windows of less than so many bytes, and slots of a token, at most, of which rows are summed token
// by token in a loop of its own: a call that moves little reads its code from memory, too. 1 to 8
// tokens of DeepSeek-V3 mostly in 0.88 to 0.96 of the time.
constexpr double kFewWindowBytes = 2 << 20;
constexpr int64_t kFewSlots = 16;
// Slots that a worker packs at a time, on its stack, where a token has no more; and bytes of their
// rows, on average, so that probs asked for while packing are still near when they are copied.
constexpr int64_t kBatchSlots = 512;
constexpr int64_t kBatchBytes = 256 << 10;

// Bytes that a worker moves before it takes the next chunk. A chunk starts without anything on its
// way: 512 KiB lost a few hundredths to 2 MiB, 8 MiB won nothing more.
constexpr int64_t kChunkBytes = 2 << 20;
// Chunks for each worker at least, so that a slow one leaves its share to the others.
constexpr int64_t kChunksPerWorker = 4;
// Bytes of work that are worth another thread: some microseconds, what waking one costs.
// One token of eight rows of 14 KiB took a fifth less time on one thread than on two.
constexpr int64_t kWorkerBytes = 128 << 10;
// Parts of a row that different threads take have at least this many bytes.
constexpr int64_t kPartBytes = 2048;

// What bytes of outputs that several threads write row by row, in the router's order, weigh beside
// half of the second-level caches, from where on stores pass the caches by. With 4, gradients and
// copies of up to 1 MiB took 0.35 to 1.05 of the time with 1, a reading pass after them included,
// on two cores of an AMD EPYC 9004 with 1 MiB each. On an Intel Xeon of the fifth generation with 2
// MiB each, gradients and copies of 0.5 to 2 MiB took 0.47 to 1.1 of the time with 1, mostly 0.6 to
// 0.8: there it takes long to pass by a cache that has the line.
constexpr int64_t kScatteredWeight = 4, kIntelScatteredWeight = 1;

// Copies of rows (permute_with_ep-inl.h): bytes of a row that go to all its rows in a turn, and
// that are asked for before they are read. Rows of 4 KiB and more gained up to a third by 512 bytes
// over 1024, and a tenth over 256. Rows of up to kNarrowCopyBytes are copied one after another, as
// above: 1 KiB on a rank of 8 0.70 instead of 0.64, one expert per token 0.80 instead of 0.74; rows
// of 4 KiB lost some hundredths.
constexpr int64_t kCopyTurnBytes = 512;
constexpr int64_t kNarrowCopyBytes = 1024;
// Rows that a group writes at least, and bytes that they come to where rows are short; 1 and 8 rows
// of 4 KiB lost some hundredths to 4 on a rank. Where every token has rows, tokens are read in
// order, and one is a group: with 4, one row of 10 KiB took 1.3 to 1.4 times as long on an AMD EPYC
// 9004, two rows of 8 KiB up to 1.25 times.
constexpr int64_t kCopyRows = 4;
constexpr int64_t kCopyGroupBytes = 8192;

// Slots that are worth another thread when they are sorted: 16384 take some 50 microseconds.
constexpr int64_t kSortSlots = 16384;
// Experts that get a counter each however few the slots are: clearing so many costs a microsecond.
constexpr int64_t kAlwaysCounted = 1024;
// Counters for sparse ids: beyond, they leave the second-level cache, and digits are faster.
constexpr int64_t kMostCounted = 1 << 16;
// Bits of a digit: the pages of 256 streams of writes stay at hand.
constexpr int kDigitBits = 8;
// Threads that sort by digits at most: their counters, 1 or 2 KiB each, lie on the stack.
constexpr int kDigitWorkers = 16;

// Sums that move less than so many bytes take AVX2 before AVX-512 on Intel Xeons of the fourth
// generation and later. On one of the fifth AVX-512 was 0.90 to 0.98 times as fast with 1 to 64
// tokens of DeepSeek-V3 and 0.58 to 0.9 with one token of other models; with more bytes 0.95 to
// 1.12, weighted sums 0.94 to 1.24.
constexpr double kShortSumBytes = 4e6;
// On older ones, UnpermuteWithEpGrad of less than so many bytes takes AVX2 before AVX-512:
// with 2 to 12 MB AVX2 was 1.02 to 1.39 times as fast on one of the third generation, with more
// 0.75 to 1.1. On one of the fifth AVX-512 was 1.0 to 1.35 times as fast from 32 tokens on.
constexpr double kShortGradBytes = 12e6;

// UnpermuteWithEpGrad, chosen by analogy with the sums: 8 slots together and 1024 bytes ahead
// seemed no better, the rest was not varied. Bytes of a row that are worked on before the next slot
// has its turn: a multiple of 64 elements, so that a dot product's sums fit together.
constexpr int64_t kGradBlockBytes = 512;
// Rows of so many bytes are worked on whole: their dot products never leave the registers.
constexpr int64_t kGradWholeRowBytes = 1024;
// Bytes of a row that are asked for before they are worked on.
constexpr int64_t kGradAheadBytes = 512;
// Slots that are worked on together, and where rows are short: this many bytes of them.
constexpr int64_t kGradStreams = 4;
constexpr int64_t kMaxGradGroup = 16;
constexpr int64_t kGradGroupBytes = 4096;

}  // namespace moe::cpu
