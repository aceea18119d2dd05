#include "floor/passes-inl.h"

namespace moe::bench {

// Every x86-64 and every Armv8 has 16 bytes.
Move baseline_move(const FloorPass& pass) {
  return passes::move_of<uint64_t __attribute__((vector_size(16)))>(pass);
}

}  // namespace moe::bench
