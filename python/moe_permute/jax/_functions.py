"""The public functions: they check what tracing can tell, and give the rest to the calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ._arguments import (
    FLOATS,
    INTS,
    check,
    check_float64,
    check_num_experts,
    check_restore_shape,
    check_rows,
    check_top_k,
    num_tokens_of,
    rows_of,
    top_k_of,
    window_of,
)
from ._calls import permute, unpermute


def moe_token_permute(
    tokens: jax.Array,
    indices: jax.Array,
    probs: jax.Array | None = None,
    *,
    ep_range: Any | None = None,
    capacity: int | None = None,
    num_experts: int | None = None,
) -> tuple[jax.Array, jax.Array, jax.Array | None]:
    """Bring tokens to their experts: a copy of a token for each of its slots, ordered by expert.

    Differentiable in tokens and probs, in reverse mode.

    Args:
        tokens: [T, H]; float32, float16, bfloat16 or float64.
        indices: [T, K], or [T] for K = 1; int32 or int64. The experts of each token; negative ones,
            and those at or past num_experts, are not routed and come last.
        probs: of the shape of indices; a dtype of tokens' list (float64 with float64 only).
        ep_range: begin and end of the window of global rows, ints or traced values, as a pair or
            as one array of two. 0 <= begin <= end <= L. None: all rows that there is room for.
        capacity: rows of the outputs, an int. At least those of the window. None: as many as a
            window of Python ints has, otherwise L.
        num_experts: experts that there are; no id is too large without it.

    Returns:
        permuted_tokens: [capacity, H], dtype of tokens; rows past those of the window are zero.
        sorted_indices: [L], int32 (int64 where L is 2^31 or more): the global row of every slot.
        permuted_probs: [capacity], dtype of probs; None without probs.

    Raises:
        TypeError, ValueError: an argument breaks the rules above, as far as tracing can tell.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> tokens = jnp.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
        >>> experts = jnp.array([[1, 0], [2, 0], [2, 1]])
        >>> @jax.jit
        ... def rank(tokens, begin, end):
        ...     return moe_token_permute(tokens, experts, ep_range=(begin, end), capacity=5)[0]
        >>> rank(tokens, 1, 5)[:, 0].tolist()
        [2.0, 1.0, 3.0, 2.0, 0.0]
        >>> rank(tokens, 0, 2)[:, 0].tolist()
        [1.0, 2.0, 0.0, 0.0, 0.0]
    """
    check("tokens", tokens, FLOATS, (2,))
    check("indices", indices, INTS, (1, 2))
    check_top_k("indices", indices)
    check_num_experts(num_experts)
    top_k = 1 if indices.ndim == 1 else indices.shape[1]
    if indices.shape[0] != tokens.shape[0]:
        raise ValueError(f"indices: {indices.shape[0]} tokens, but needs {tokens.shape[0]}")
    if probs is not None:
        check("probs", probs, FLOATS, (1, 2))
        check_float64("probs", probs, tokens)
        if probs.shape != indices.shape:
            raise ValueError(f"probs: shape {probs.shape}, but needs that of indices")
        probs = jnp.reshape(probs, (tokens.shape[0], top_k))
    rows = rows_of(capacity, ep_range, indices.size)
    check_rows(rows, tokens)
    window = window_of(ep_range)
    static = (top_k, rows, -1 if num_experts is None else num_experts)
    return permute(static, tokens, jnp.reshape(indices, (-1, top_k)), probs, window)


def moe_token_unpermute(
    permuted_tokens: jax.Array,
    sorted_indices: jax.Array,
    probs: jax.Array | None = None,
    *,
    ep_range: Any | None = None,
    restore_shape: Sequence[int] | None = None,
) -> jax.Array:
    """Bring rows back to their tokens: for each token the weighted sum of its slots' rows.

    Differentiable in permuted_tokens and probs, in reverse mode.

    Args:
        permuted_tokens: [rows, H], at least the window's rows; float32, float16, bfloat16 or
            float64. Rows past those of the window are not read.
        sorted_indices: [L], int32 or int64, from moe_token_permute.
        probs: [T, K]; a dtype of permuted_tokens' list (float64 with float64 only). Without them
            every weight is 1.
        ep_range: as moe_token_permute takes it. None: (0, rows).
        restore_shape: (T, H), ints, for K where there are no probs. Neither: K = 1.

    Returns:
        tokens: [T, H], dtype of permuted_tokens.

    Raises:
        TypeError, ValueError: an argument breaks the rules above, as far as tracing can tell.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> rows = jnp.array([[1.0], [2.0], [3.0], [4.0]])
        >>> probs = jnp.array([[0.5, 0.5], [1.0, 0.0]])
        >>> moe_token_unpermute(rows, jnp.array([2, 0, 1, 3]), probs).tolist()
        [[2.0], [2.0]]
        >>> loss = lambda probs: moe_token_unpermute(rows, jnp.array([2, 0, 1, 3]), probs).sum()
        >>> jax.grad(loss)(probs).tolist()
        [[3.0, 1.0], [2.0, 4.0]]
    """
    check("permuted_tokens", permuted_tokens, FLOATS, (2,))
    check("sorted_indices", sorted_indices, INTS, (1,))
    num_slots = sorted_indices.shape[0]
    if probs is not None:
        check("probs", probs, FLOATS, (2,))
        check_top_k("probs", probs)
        check_float64("probs", probs, permuted_tokens)
        if probs.size != num_slots:
            raise ValueError(f"probs: {probs.size} slots, but sorted_indices has {num_slots}")
    num_tokens = num_tokens_of(num_slots, probs, restore_shape)
    if restore_shape is not None:
        check_restore_shape(restore_shape, (num_tokens, permuted_tokens.shape[1]))
    static = (top_k_of(num_slots, num_tokens, probs), num_tokens)
    return unpermute(static, permuted_tokens, sorted_indices, probs, window_of(ep_range))
