// The passes as the floor finds them: one table for each instruction set.
#pragma once

#include "floor/floor.h"

namespace moe::bench {

// Moves one worker's share.
using Move = void (*)(const Transfer&);

Move baseline_move(const FloorPass& pass);
// Compiled for AVX2: only to be called, and its result, where the machine has it.
Move avx2_move(const FloorPass& pass);

}  // namespace moe::bench
