"""The round trip in the operators that PyTorch has: what people write without this package."""

from __future__ import annotations

import torch
from moe_permute.torch import MoE
from torch import Tensor


def plain_permute(
    tokens: Tensor, indices: Tensor, window: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """The rows of the window [R, H], and the row of each slot [L]."""
    order = torch.argsort(indices.flatten(), stable=True)
    sorted_indices = torch.argsort(order)
    slots = order[window[0] : window[1]]
    return tokens.index_select(0, slots // indices.shape[1]), sorted_indices


def plain_unpermute(
    rows: Tensor, sorted_indices: Tensor, probs: Tensor, window: tuple[int, int]
) -> Tensor:
    """The weighted sum of each token's rows [T, H]."""
    num_tokens, top_k = probs.shape
    slots = torch.argsort(sorted_indices)[window[0] : window[1]]
    weighted = rows * probs.flatten()[slots, None].to(rows.dtype)
    out = torch.zeros(num_tokens, rows.shape[1], dtype=rows.dtype)
    return out.index_add(0, slots // top_k, weighted)


class PlainMoE(MoE):
    """The same layer with the same weights."""

    def permute(
        self, tokens: Tensor, indices: Tensor, window: tuple[int, int]
    ) -> tuple[Tensor, Tensor]:
        return plain_permute(tokens, indices, window)

    def unpermute(
        self, rows: Tensor, sorted_indices: Tensor, probs: Tensor, window: tuple[int, int]
    ) -> Tensor:
        return plain_unpermute(rows, sorted_indices, probs, window)
