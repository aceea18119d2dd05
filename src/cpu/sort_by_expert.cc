// SortByExpert on the CPU: a stable sort that gives each slot's place instead of moving anything.
//
// Where experts are few, by counting: each thread counts the experts of its part of the slots; sums
// over experts, and over the parts within an expert, give each part its first place for each
// expert; then each thread numbers its slots. Where ids are sparse, by digits of the id, the lowest
// first, in passes that count in the same way; they move slots, and the last pass numbers them.
#include "cpu/sort_by_expert.h"

#include <atomic>
#include <bit>
#include <cstring>

#include "core/text.h"
#include "core/threads.h"
#include "cpu/expert_ids.h"
#include "cpu/last_target.h"
#include "cpu/targets.h"
#include "cpu/tuning.h"

namespace moe::cpu {
namespace {

using Problem = SortByExpertProblem;
using Pointers = SortByExpertPointers;

// Threads that the slots are worth, each with counters of its own.
int num_workers(const Problem& p, int64_t num_counters) {
  const int64_t slots_each = std::max(kSortSlots, 4 * num_counters);
  return static_cast<int>(std::clamp<int64_t>(p.num_slots() / slots_each, 1, p.num_threads));
}

// Whether a counter for each expert is worth its memory.
bool counts_experts(const Problem& p) {
  return p.is_bounded && p.num_experts <= std::max(kAlwaysCounted, 4 * p.num_slots());
}

// Bytes of one worker's counters. With several workers no two may write to the same cache line.
template <class Place>
int64_t counters_bytes(int64_t num_groups, int workers) {
  const int64_t bytes = num_groups * int64_t{sizeof(Place)};
  return workers == 1 ? bytes : (bytes / 64 + 2) * 64;
}

// Counters of each worker for each group. No alignment is known, nor needed.
template <class Place>
class Counters {
 public:
  Counters(void* memory, int64_t num_groups, int workers)
      : memory_(static_cast<char*>(memory)),
        bytes_(counters_bytes<Place>(num_groups, workers)),
        num_groups_(num_groups),
        workers_(workers) {}

  char* of(int worker) const { return memory_ + worker * bytes_; }
  void clear(int worker) const { std::memset(of(worker), 0, static_cast<size_t>(bytes_)); }
  // Adds one, and returns what it was.
  static Place take(char* counters, uint64_t group) {
    const Place value = load<Place>(counters, static_cast<int64_t>(group));
    store<Place>(counters, static_cast<int64_t>(group), static_cast<Place>(value + 1));
    return value;
  }

  // Turns counts into first places. Calls total(group, count) for each group.
  template <class Total>
  void sum_up(Total total) const {
    Place next = 0;
    for (int64_t group = 0; group < num_groups_; ++group) {
      const Place first = next;
      for (int worker = 0; worker < workers_; ++worker) {
        const Place count = load<Place>(of(worker), group);
        store<Place>(of(worker), group, next);
        next = static_cast<Place>(next + count);
      }
      total(group, next - first);
    }
  }

 private:
  char* memory_;
  int64_t bytes_, num_groups_;
  int workers_;
};

void store_count(const Problem& p, const Pointers& at, int64_t expert, int64_t count) {
  visit_index(p.counts_dtype, [&](auto c) {
    store(at.tokens_per_expert, expert, static_cast<decltype(c)>(count));
  });
}

template <class Index, class Place>
void sort_by_counting(const Problem& p, const Pointers& at, const Groups& groups, int workers,
                      void* workspace) {
  const Counters<Place> counters(workspace, groups.size(), workers);
  parallel_workers(workers, [&](int worker) {
    counters.clear(worker);
    for_each_id<Index>(p, at.indices, part_of(p.num_slots(), worker, workers),
                       [groups, counts = counters.of(worker)](int64_t, int64_t id) {
                         Counters<Place>::take(counts, groups.of(id));
                       });
  });
  counters.sum_up([&](int64_t group, int64_t count) {
    if (p.has_counts && counts_experts(p) && group < p.num_experts)
      store_count(p, at, group, count);
  });
  parallel_workers(workers, [&](int worker) {
    for_each_id<Index>(
        p, at.indices, part_of(p.num_slots(), worker, workers),
        [groups, places = counters.of(worker), out = at.sorted_indices](int64_t slot, int64_t id) {
          store<Place>(out, slot, Counters<Place>::take(places, groups.of(id)));
        });
  });
}

// The experts from the lowest to the highest that a slot is routed to.
template <class Index>
Groups groups_of(const Problem& p, const Pointers& at) {
  std::atomic<uint64_t> lowest{UINT64_MAX}, highest{0};
  const int workers = num_workers(p, 1);
  parallel_workers(workers, [&](int worker) {
    uint64_t low = UINT64_MAX, high = 0;
    for_each_id<Index>(p, at.indices, part_of(p.num_slots(), worker, workers),
                       [&, limit = static_cast<uint64_t>(p.num_experts)](int64_t, int64_t id) {
                         const auto expert = static_cast<uint64_t>(id);
                         low = std::min(low, expert < limit ? expert : low);
                         high = std::max(high, expert < limit ? expert : high);
                       });
    for (uint64_t seen = lowest; low < seen && !lowest.compare_exchange_weak(seen, low);) {
    }
    for (uint64_t seen = highest; high > seen && !highest.compare_exchange_weak(seen, high);) {
    }
  });
  return lowest > highest ? Groups{} : Groups{lowest, highest - lowest + 1};
}

// Sorting by digits. A slot travels with its group, so that every pass reads in order: between two
// places, each with room for both, one of which borrows the output for its slots. The last pass
// writes the output, so it reads from the other.
template <class Index, class Place>
class DigitSort {
 public:
  DigitSort(const Problem& p, const Pointers& at, const Groups& groups, void* workspace)
      : problem_(p),
        at_(at),
        groups_(groups),
        workers_(std::min(num_workers(p, 1), kDigitWorkers)),
        num_passes_((static_cast<int>(std::bit_width(groups.count)) + kDigitBits - 1) /
                    kDigitBits) {
    const int64_t bytes = p.num_slots() * int64_t{sizeof(Place)};
    char* const room = static_cast<char*>(workspace);
    places_[0] = {room, static_cast<char*>(at.sorted_indices)};
    places_[1] = {room + bytes, room + 2 * bytes};
  }

  void sort() {
    for (int pass = 0; pass < num_passes_; ++pass) {
      const int left = num_passes_ - 1 - pass;
      const Slots* source = pass == 0 ? nullptr : &places_[(left + 1) % 2];
      if (left == 0) {
        sort_digit(pass, source, [out = at_.sorted_indices](uint32_t, Place slot, Place place) {
          store(out, slot, place);
        });
      } else {
        sort_digit(pass, source,
                   [target = places_[left % 2]](uint32_t group, Place slot, Place place) {
                     store(target.groups, place, group);
                     store(target.slots, place, slot);
                   });
      }
    }
  }

 private:
  // The groups and the numbers of all slots, in the order so far.
  struct Slots {
    char *groups, *slots;
  };

  // Calls put(group, slot, place) for each slot, with its place by the digits up to this one.
  template <class Put>
  void sort_digit(int pass, const Slots* source, Put put) {
    constexpr int64_t kDigits = int64_t{1} << kDigitBits;
    char memory[kDigitWorkers * (kDigits * int64_t{sizeof(Place)} + 128)];
    const Counters<Place> counters(memory, kDigits, workers_);
    const auto digit = [shift = pass * kDigitBits](uint32_t group) -> uint64_t {
      return group >> shift & (kDigits - 1);
    };
    parallel_workers(workers_, [&](int worker) {
      counters.clear(worker);
      for_each_slot(worker, source, [digit, counts = counters.of(worker)](uint32_t group, Place) {
        Counters<Place>::take(counts, digit(group));
      });
    });
    counters.sum_up([](int64_t, int64_t) {});
    parallel_workers(workers_, [&](int worker) {
      for_each_slot(worker, source,
                    [digit, put, places = counters.of(worker)](uint32_t group, Place slot) {
                      put(group, slot, Counters<Place>::take(places, digit(group)));
                    });
    });
  }

  // Calls fn(group, slot) for the worker's part of the slots in the order of `source`; null: their
  // own, from the indices.
  template <class Fn>
  void for_each_slot(int worker, const Slots* source, Fn fn) const {
    const Part part = part_of(problem_.num_slots(), worker, workers_);
    if (source == nullptr) {
      for_each_id<Index>(problem_, at_.indices, part,
                         [fn, groups = groups_](int64_t slot, int64_t id) {
                           fn(static_cast<uint32_t>(groups.of(id)), static_cast<Place>(slot));
                         });
      return;
    }
    for (int64_t i = part.first; i < part.last; ++i) {
      fn(load<uint32_t>(source->groups, i), load<Place>(source->slots, i));
    }
  }

  const Problem& problem_;
  const Pointers& at_;
  Groups groups_;
  int workers_, num_passes_;
  Slots places_[2];  // the first borrows the output
};

template <class Place>
int64_t sparse_bytes(const Problem& p) {
  return 3 * p.num_slots() * int64_t{sizeof(Place)};
}

// Experts that no slot names are most of them here.
template <class Index>
void count_sparsely(const Problem& p, const Pointers& at) {
  std::memset(at.tokens_per_expert, 0,
              static_cast<size_t>(p.num_experts * dtype_bytes(p.counts_dtype)));
  visit_index(p.counts_dtype, [&](auto c) {
    using Count = decltype(c);
    for_each_id<Index>(p, at.indices, {0, p.num_slots()}, [&](int64_t, int64_t id) {
      if (id < 0 || id >= p.num_experts) return;
      store(at.tokens_per_expert, id,
            static_cast<Count>(load<Count>(at.tokens_per_expert, id) + 1));
    });
  });
}

template <class Index, class Place>
void sort_sparse(const Problem& p, const Pointers& at, void* workspace) {
  const Groups groups = groups_of<Index>(p, at);
  const int workers = num_workers(p, groups.size());
  if (p.num_slots() == 0) {
    // Nothing to sort, and no workspace.
  } else if (groups.size() <= kMostCounted &&
             counters_bytes<Place>(groups.size(), workers) * workers <= sparse_bytes<Place>(p)) {
    sort_by_counting<Index, Place>(p, at, groups, workers, workspace);
  } else {
    DigitSort<Index, Place>(p, at, groups, workspace).sort();
  }
  if (p.has_counts) count_sparsely<Index>(p, at);
}

template <class Index>
void check_ids(const Problem& p, const Pointers& at) {
  for_each_id<Index>(p, at.indices, {0, p.num_slots()}, [&](int64_t slot, int64_t id) {
    if (id >= 0 && id < p.num_experts) return;
    throw IndexError(text("indices: slot ", slot, " holds ", id, ", but needs an expert in [0, ",
                          p.num_experts, ")"),
                     slot, id);
  });
}

template <class Index, class Place>
void sort_slots(const Problem& p, const Pointers& at, void* workspace) {
  if (!counts_experts(p)) return sort_sparse<Index, Place>(p, at, workspace);
  const Groups groups{0, static_cast<uint64_t>(p.num_experts)};
  sort_by_counting<Index, Place>(p, at, groups, num_workers(p, groups.size()), workspace);
}

std::string takes_everything(const Problem&) { return {}; }

void run(const Problem& p, const Pointers& at, void* workspace) {
  note_target("portable");
  sort_by_expert(p, at, workspace);
}

}  // namespace

size_t workspace_bytes(const Problem& p) {
  return visit_index(p.sorted_dtype, [&](auto place) {
    using Place = decltype(place);
    if (!counts_experts(p)) return static_cast<size_t>(sparse_bytes<Place>(p));
    const int64_t num_counters = p.num_experts + 1;
    const int workers = num_workers(p, num_counters);
    return static_cast<size_t>(counters_bytes<Place>(num_counters, workers) * workers);
  });
}

void sort_by_expert(const Problem& p, const Pointers& at, void* workspace) {
  visit_index(p.index_dtype, [&](auto index) {
    using Index = decltype(index);
    if (p.check_indices) check_ids<Index>(p, at);
    visit_index(p.sorted_dtype,
                [&](auto place) { sort_slots<Index, decltype(place)>(p, at, workspace); });
  });
}

void add_kernels(SortByExpertKernels& kernels) {
  kernels.push_back(
      {"portable", takes_everything, workspace_bytes, bound_to<Problem, Pointers>(run)});
  // Integers, one by one: there is nothing that an instruction set could do for them.
  for_each_target([&](const Target& target) {
    kernels.push_back(
        {target.name, takes_everything, workspace_bytes, bound_to<Problem, Pointers>(run)});
  });
}

}  // namespace moe::cpu
