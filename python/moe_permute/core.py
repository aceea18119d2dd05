"""The four operators on arrays: permute, unpermute, and the gradient of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moe_permute import _native

Array = Any


def permute(
    tokens: Array,
    indices: Array,
    probs: Array | None = None,
    *,
    ep_range: Sequence[int] | None = None,
    num_experts: int | None = None,
    out: tuple[Array | None, Array | None, Array | None] | None = None,
    check_indices: bool = False,
) -> tuple[Array, Array, Array | None]:
    """Bring each token to its experts."""
    return _native.permute(
        tokens, indices, probs, ep_range, num_experts, out, check_indices, False
    )


def permute_grad(
    permuted_tokens_grad: Array,
    sorted_indices: Array,
    top_k: int,
    permuted_probs_grad: Array | None = None,
    *,
    ep_range: Sequence[int] | None = None,
    out: tuple[Array | None, Array | None] | None = None,
    check_indices: bool = False,
) -> tuple[Array, Array | None]:
    """Gradient of permute."""
    return _native.permute_grad(
        permuted_tokens_grad, sorted_indices, top_k, permuted_probs_grad, ep_range, out,
        check_indices, False,
    )


def unpermute(
    permuted_tokens: Array,
    sorted_indices: Array,
    probs: Array | None = None,
    *,
    top_k: int | None = None,
    ep_range: Sequence[int] | None = None,
    out: Array | tuple[Array | None] | None = None,
    check_indices: bool = False,
) -> Array:
    """Bring rows back to their tokens."""
    return _native.unpermute(
        permuted_tokens, sorted_indices, probs, top_k, ep_range, out, check_indices, False
    )


def unpermute_grad(
    tokens_grad: Array,
    sorted_indices: Array,
    permuted_tokens: Array | None = None,
    probs: Array | None = None,
    *,
    top_k: int | None = None,
    ep_range: Sequence[int] | None = None,
    out: tuple[Array | None, Array | None] | None = None,
    check_indices: bool = False,
) -> tuple[Array, Array | None]:
    """Gradient of unpermute."""
    return _native.unpermute_grad(
        tokens_grad, sorted_indices, permuted_tokens, probs, top_k, ep_range, out,
        check_indices, False,
    )
