"""The four operators on arrays: permute and unpermute, and the gradient of each.

Sizes: T tokens, K experts per token (top_k), H elements per token (hidden size), L = T * K slots,
of which slot t * K + k is the k-th choice of token t. The permutation orders slots by expert; the
place of a slot in that order is its global row. A rank of an expert-parallel group owns the window
ep_range = (begin, end) of global rows, R = end - begin of them. Without ep_range all rows count.
"""

from __future__ import annotations

from typing import Any, SupportsIndex

from moe_permute import _native
from moe_permute.typing import ArrayT, IntPair


def permute(
    tokens: ArrayT,
    indices: Any,
    probs: Any | None = None,
    *,
    ep_range: IntPair | None = None,
    num_experts: SupportsIndex | None = None,
    out: tuple[Any | None, Any | None, Any | None] | None = None,
    check_indices: bool = False,
) -> tuple[ArrayT, ArrayT, ArrayT | None]:
    """Bring tokens to their experts: a copy of a token for each of its slots, ordered by expert.

    The order is stable, and slots that are not routed come last: those whose expert is negative, at
    or past num_experts, or past 2^31 - 1.

    Args:
        tokens: [T, H]; float32, float16, bfloat16 or float64. Any strides that are not negative.
        indices: [T, K], or [T] for K = 1; int32 or int64. The experts of each token.
        probs: [T, K], or [T] for K = 1; a dtype of tokens' list (float64 goes with float64 only).
        ep_range: the window (begin, end) of global rows to make, 0 <= begin <= end <= L.
        num_experts: experts that there are; no id is too large without it.
        out: arrays to write the results into, None where a fresh one is wanted. permuted_tokens and
            permuted_probs may have more rows than the window: those are set to zero.
        check_indices: verify first that every slot is routed.

    Returns:
        permuted_tokens: [R, H], dtype of tokens; row r is global row begin + r.
        sorted_indices: [L], int32 (int64 where L is 2^31 or more): the global row of every slot.
        permuted_probs: [R], dtype of probs; None without probs.

    Raises:
        TypeError: an argument is no array, or has an unsupported dtype.
        ValueError: an argument breaks the rules above, is on another device, or requires a
            gradient; an output is read-only, not contiguous, or overlaps another argument.
        IndexError: check_indices found a slot that is not routed. No output was changed.

    Example:
        >>> import numpy as np
        >>> tokens = np.array([[1, 1], [2, 2], [3, 3]], np.float32)
        >>> experts = np.array([[1, 0], [2, 0], [2, 1]], np.int32)
        >>> rows, sorted_indices, _ = permute(tokens, experts, ep_range=(1, 5))
        >>> rows[:, 0]
        array([2., 1., 3., 2.], dtype=float32)
        >>> sorted_indices
        array([2, 0, 4, 1, 5, 3], dtype=int32)
    """
    return _native.permute(tokens, indices, probs, ep_range, num_experts, out, check_indices, False)


def permute_grad(
    permuted_tokens_grad: ArrayT,
    sorted_indices: Any,
    top_k: SupportsIndex,
    permuted_probs_grad: Any | None = None,
    *,
    ep_range: IntPair | None = None,
    out: tuple[Any | None, Any | None] | None = None,
    check_indices: bool = False,
) -> tuple[ArrayT, ArrayT | None]:
    """Give the gradient of permute: for each token the sum of its slots' rows.

    A slot outside the window contributes zero, so the sums of all ranks add up to the whole. Sums
    are taken in float32 (float64 for float64), in the order of a token's slots, and rounded once.

    Args:
        permuted_tokens_grad: [rows, H] with rows >= R; float32, float16, bfloat16 or float64.
        sorted_indices: [L], int32 or int64, from permute. L must be a multiple of top_k.
        top_k: K.
        permuted_probs_grad: [rows] with rows >= R; a dtype of the same list.
        ep_range: the window (begin, end), 0 <= begin <= end <= L. None: (0, rows).
        out: arrays to write the results into, None where a fresh one is wanted.
        check_indices: verify first that sorted_indices holds each of 0 ... L - 1 once.

    Returns:
        tokens_grad: [T, H], dtype of permuted_tokens_grad.
        probs_grad: [T, K], dtype of permuted_probs_grad; None without permuted_probs_grad.

    Raises:
        TypeError, ValueError: as permute does.
        IndexError: check_indices found a bad index. No output was changed.

    Example:
        >>> import numpy as np
        >>> rows = np.array([[2, 2], [1, 1], [3, 3], [2, 2]], np.float32)
        >>> sorted_indices = np.array([2, 0, 4, 1, 5, 3], np.int32)
        >>> permute_grad(rows, sorted_indices, 2, ep_range=(1, 5))[0]
        array([[1., 1.],
               [4., 4.],
               [3., 3.]], dtype=float32)
    """
    return _native.permute_grad(
        permuted_tokens_grad,
        sorted_indices,
        top_k,
        permuted_probs_grad,
        ep_range,
        out,
        check_indices,
        False,
    )


def unpermute(
    permuted_tokens: ArrayT,
    sorted_indices: Any,
    probs: Any | None = None,
    *,
    top_k: SupportsIndex | None = None,
    ep_range: IntPair | None = None,
    out: Any | tuple[Any | None] | None = None,
    check_indices: bool = False,
) -> ArrayT:
    """Bring rows back to their tokens: for each token the weighted sum of its slots' rows.

    A slot outside the window, or with a prob of exactly 0, contributes zero; its row is not read.
    Products and sums are taken in float32 (float64 for float64), and the result is rounded once.

    Args:
        permuted_tokens: [rows, H] with rows >= R; float32, float16, bfloat16 or float64.
        sorted_indices: [L], int32 or int64, from permute.
        probs: [T, K]; a dtype of the same list. Without them every weight is 1.
        top_k: K; where it is None, that of probs, or 1.
        ep_range: the window (begin, end), 0 <= begin <= end <= L. None: (0, rows).
        out: an array to write the result into.
        check_indices: verify first that sorted_indices holds each of 0 ... L - 1 once.

    Returns:
        tokens: [T, H], dtype of permuted_tokens.

    Raises:
        TypeError, ValueError: as permute does.
        IndexError: check_indices found a bad index. No output was changed.

    Example:
        >>> import numpy as np
        >>> rows = np.array([[1, 1], [2, 2], [3, 3], [4, 4]], np.float32)
        >>> probs = np.array([[0.5, 0.5], [1, 0]], np.float32)
        >>> unpermute(rows, np.array([2, 0, 1, 3], np.int32), probs)
        array([[2., 2.],
               [2., 2.]], dtype=float32)
    """
    return _native.unpermute(
        permuted_tokens, sorted_indices, probs, top_k, ep_range, out, check_indices, False
    )


def unpermute_grad(
    tokens_grad: ArrayT,
    sorted_indices: Any,
    permuted_tokens: Any | None = None,
    probs: Any | None = None,
    *,
    top_k: SupportsIndex | None = None,
    ep_range: IntPair | None = None,
    out: tuple[Any | None, Any | None] | None = None,
    check_indices: bool = False,
) -> tuple[ArrayT, ArrayT | None]:
    """Give the gradient of unpermute: for rows and for probs.

    The row of a slot in the window gets its token's gradient times its prob; every other row is
    zero. The gradient of a prob is the dot product of its row and its token's gradient, summed in
    one documented order, so that it is the same bits everywhere.

    Args:
        tokens_grad: [T, H]; float32, float16, bfloat16 or float64.
        sorted_indices: [L], int32 or int64, from permute. Each global row once.
        permuted_tokens: [rows, H] with rows >= R, dtype of tokens_grad; needed for probs_grad.
        probs: [T, K]; a dtype of the same list. Without them every weight is 1.
        top_k: K; where it is None, that of probs, or 1.
        ep_range: the window (begin, end), 0 <= begin <= end <= L. None: all rows that there are.
        out: arrays to write the results into, None where a fresh one is wanted. The first may have
            more rows than the window where permuted_tokens has as many, or is not given.
        check_indices: verify first that sorted_indices holds each of 0 ... L - 1 once.

    Returns:
        permuted_tokens_grad: [rows, H], with the rows of permuted_tokens; without that R rows, or L
            without a window. Dtype of tokens_grad.
        probs_grad: [T, K], dtype of probs; None unless permuted_tokens and probs are given.

    Raises:
        TypeError, ValueError: as permute does.
        IndexError: check_indices found a bad index. No output was changed.

    Example:
        >>> import numpy as np
        >>> grad = np.array([[1, 2], [3, 4]], np.float32)
        >>> rows = np.array([[1, 0], [0, 1], [1, 1], [2, 0]], np.float32)
        >>> probs = np.array([[0.5, 0.5], [1, 0]], np.float32)
        >>> sorted_indices = np.array([2, 0, 1, 3], np.int32)
        >>> rows_grad, probs_grad = unpermute_grad(grad, sorted_indices, rows, probs)
        >>> rows_grad
        array([[0.5, 1. ],
               [3. , 4. ],
               [0.5, 1. ],
               [0. , 0. ]], dtype=float32)
        >>> probs_grad
        array([[3., 1.],
               [4., 6.]], dtype=float32)
    """
    return _native.unpermute_grad(
        tokens_grad,
        sorted_indices,
        permuted_tokens,
        probs,
        top_k,
        ep_range,
        out,
        check_indices,
        False,
    )
