#include "floor/passes-inl.h"

namespace moe::bench {

Move avx2_move(const FloorPass& pass) {
  return passes::move_of<uint64_t __attribute__((vector_size(32)))>(pass);
}

}  // namespace moe::bench
