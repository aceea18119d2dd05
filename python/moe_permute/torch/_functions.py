"""The two functions that people call."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from ._arguments import as_column, checked, top_k_of, window_of, window_of_first
from ._operators import permute, unpermute

_PERMUTED = "tokens", "indices", "probs"
_UNPERMUTED = "permuted_tokens", "sorted_indices", "probs"


def moe_token_permute(
    tokens: Tensor,
    indices: Tensor,
    probs: Tensor | None = None,
    *,
    ep_range: Sequence[int] | Tensor | None = None,
    num_out_tokens: int | None = None,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Bring tokens to their experts: the rows that one rank works on, expert by expert.

    Args:
        tokens: [T, H]; float32, float16, bfloat16 or float64.
        indices: [T, K], or [T] for K = 1; int32 or int64: the expert of each slot. A slot with a
            negative one is not routed: its row comes behind those of all experts.
        probs: shaped like `indices`, optional; any of the dtypes above, but float64 goes with
            float64 only.
        ep_range: the window (begin, end) of rows that this rank owns, 0 <= begin <= end <= L: two
            ints, or a tensor of two, which `torch.compile` has to break its graph for. None: all.
        num_out_tokens: keeps the first `num_out_tokens` rows, at most L. Not with `ep_range`.

    Returns:
        `permuted_tokens` [R, H]; `sorted_indices` [L], int32: the row of each slot among all
        rows, whatever the window; `permuted_probs` [R], or None without `probs`.

    Raises:
        TypeError: an argument that is no tensor, or has a dtype that is not listed.
        ValueError: a shape, window or device that does not fit.

    Gradients reach `tokens` and `probs`.

    >>> import torch
    >>> tokens = torch.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    >>> indices = torch.tensor([[1, 0], [2, 0], [2, 1]])
    >>> rows, sorted_indices, _ = moe_token_permute(tokens, indices, ep_range=(1, 5))
    >>> rows[:, 0].tolist(), sorted_indices.tolist()
    ([2.0, 1.0, 3.0, 2.0], [2, 0, 4, 1, 5, 3])

    """
    road = checked(_PERMUTED, tokens, indices, probs)
    window = None if ep_range is None else window_of(ep_range)
    if indices.dim() == 1:
        indices, probs = indices.unsqueeze(1), as_column(probs)
    if num_out_tokens is not None:
        window = window_of_first(num_out_tokens, window, indices)
    outputs: tuple[Tensor, Tensor, Tensor | None] = permute.by(road, tokens, indices, probs, window)
    return outputs


def moe_token_unpermute(
    permuted_tokens: Tensor,
    sorted_indices: Tensor,
    probs: Tensor | None = None,
    *,
    ep_range: Sequence[int] | Tensor | None = None,
    restore_shape: Sequence[int] | None = None,
) -> Tensor:
    """Bring the experts' rows back to their tokens, weighted by `probs` and added up.

    Args:
        permuted_tokens: [R, H] or more rows; float32, float16, bfloat16 or float64.
        sorted_indices: [L]; int32 or int64, as `moe_token_permute` gave it.
        probs: [T, K], or [T] for K = 1, optional: the weight of each slot; without it each is 1.
        ep_range: the window that `permuted_tokens` holds, as in `moe_token_permute`. None: all rows
            there are. Slots outside add nothing, so the results of all ranks add up to the whole.
        restore_shape: (T, H): tells K where no `probs` do. With neither, K = 1.

    Returns:
        The tokens [T, H], of the dtype of `permuted_tokens`.

    Raises:
        TypeError: an argument that is no tensor, or has a dtype that is not listed.
        ValueError: a shape, window or device that does not fit.

    Gradients reach `permuted_tokens` and `probs`. Only where `probs` need one is
    `permuted_tokens` kept for the backward.

    >>> import torch
    >>> rows = torch.tensor([[1.0], [2.0], [3.0], [4.0]])
    >>> sorted_indices = torch.tensor([2, 0, 3, 1])
    >>> probs = torch.tensor([[0.5, 0.5], [1.0, 0.25]])
    >>> moe_token_unpermute(rows, sorted_indices, probs).flatten().tolist()
    [2.0, 4.5]
    >>> moe_token_unpermute(rows, sorted_indices, restore_shape=(2, 1)).flatten().tolist()
    [4.0, 6.0]

    """
    road = checked(_UNPERMUTED, permuted_tokens, sorted_indices, probs)
    probs = as_column(probs)
    top_k = top_k_of(permuted_tokens, sorted_indices, probs, restore_shape)
    window = None if ep_range is None else window_of(ep_range)
    tokens: Tensor = unpermute.by(road, permuted_tokens, sorted_indices, probs, top_k, window)
    return tokens
