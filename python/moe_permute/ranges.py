"""Where slots go, and the windows of global rows that ranks own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

from moe_permute import _native
from moe_permute.typing import ArrayT


def sort_indices(
    indices: ArrayT,
    *,
    num_experts: SupportsIndex | None = None,
    out: tuple[Any | None, Any | None] | None = None,
    check_indices: bool = False,
) -> tuple[ArrayT, ArrayT | None]:
    """Order slots by expert, without moving any token: the index stage of permute by itself.

    Args:
        indices: [T, K], or [T] for K = 1; int32 or int64. The experts of each token. Negative ids,
            those at or past num_experts, and those past 2^31 - 1 are not routed: they come last.
        num_experts: E, experts that there are. Needed for tokens_per_expert.
        out: arrays to write the results into, None where a fresh one is wanted.
        check_indices: verify first that every slot is routed.

    Returns:
        sorted_indices: [L], int32 (int64 where L is 2^31 or more): the global row of every slot.
        tokens_per_expert: [E], of the same dtype; None without num_experts.

    Raises:
        TypeError, ValueError: as moe_permute.permute does.
        IndexError: check_indices found a slot that is not routed. No output was changed.

    Example:
        >>> import numpy as np
        >>> experts = np.array([[1, 0], [2, 0], [2, 1]], np.int32)
        >>> sort_indices(experts, num_experts=4)
        (array([2, 0, 4, 1, 5, 3], dtype=int32), array([2, 2, 2, 0], dtype=int32))
    """
    return _native.sort_indices(indices, num_experts, out, check_indices)


def expert_range(
    tokens_per_expert: Any | Sequence[SupportsIndex],
    expert_begin: SupportsIndex,
    expert_end: SupportsIndex,
) -> tuple[int, int]:
    """Give the window of global rows of the experts [expert_begin, expert_end).

    Args:
        tokens_per_expert: [E], int32 or int64, or a list or tuple of ints: from sort_indices.
        expert_begin: the first expert.
        expert_end: the one after the last; 0 <= expert_begin <= expert_end <= E.

    Returns:
        (begin, end): what the operators take as ep_range.

    Raises:
        TypeError: an argument is of another type.
        ValueError: a count is negative, or the experts are not among those that there are.

    Example:
        >>> expert_range([2, 0, 5, 1], 1, 3)
        (2, 7)
    """
    return _native.expert_range(tokens_per_expert, expert_begin, expert_end)


def ep_range_of_rank(
    tokens_per_expert: Any | Sequence[SupportsIndex],
    rank: SupportsIndex,
    num_ranks: SupportsIndex,
) -> tuple[int, int]:
    """Give the window of global rows of a rank, of which each owns an even share of the experts.

    Rank r of n owns the experts from floor(r * E / n) to before floor((r + 1) * E / n). The windows
    of all ranks together are all routed slots.

    Args:
        tokens_per_expert: [E], int32 or int64, or a list or tuple of ints: from sort_indices.
        rank: 0 <= rank < num_ranks.
        num_ranks: ranks that share the experts.

    Returns:
        (begin, end): what the operators take as ep_range.

    Raises:
        TypeError: an argument is of another type.
        ValueError: a count is negative, or there is no such rank.

    Example:
        >>> [ep_range_of_rank([2, 0, 5, 1], rank, 2) for rank in range(2)]
        [(0, 2), (2, 8)]
    """
    return _native.ep_range_of_rank(tokens_per_expert, rank, num_ranks)
