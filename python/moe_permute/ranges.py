"""Where slots go, and the windows of ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moe_permute import _native

Array = Any


def sort_indices(
    indices: Array,
    *,
    num_experts: int | None = None,
    out: tuple[Array | None, Array | None] | None = None,
    check_indices: bool = False,
) -> tuple[Array, Array | None]:
    """Sort slots by expert."""
    return _native.sort_indices(indices, num_experts, out, check_indices)


def expert_range(
    tokens_per_expert: Array | Sequence[int], expert_begin: int, expert_end: int
) -> tuple[int, int]:
    """Give the window of global rows that belongs to a range of experts."""
    return _native.expert_range(tokens_per_expert, expert_begin, expert_end)


def ep_range_of_rank(
    tokens_per_expert: Array | Sequence[int], rank: int, num_ranks: int
) -> tuple[int, int]:
    """Give the window of global rows that belongs to a rank."""
    return _native.ep_range_of_rank(tokens_per_expert, rank, num_ranks)
