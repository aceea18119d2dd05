"""The round trip once more, slot by slot, and cases to try it on. Shares nothing with the package.

Differentiable, so that PyTorch's own autograd tells what gradients have to be.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch


def order_of(indices):
    """The slot at each row: by expert, slots of one expert in their order, unrouted ones last."""
    experts = indices.flatten().tolist()
    key = [expert if 0 <= expert < 2**31 else 2**31 for expert in experts]
    return sorted(range(len(key)), key=key.__getitem__)


def sorted_indices_of(indices):
    rows = [0] * indices.numel()
    for row, slot in enumerate(order_of(indices)):
        rows[slot] = row
    return torch.tensor(rows, dtype=torch.int32)


def permute(tokens, indices, probs=None, window=None):
    top_k = indices.shape[1] if indices.dim() == 2 else 1
    begin, end = window or (0, indices.numel())
    slots = torch.tensor(order_of(indices)[begin:end], dtype=torch.int64)
    row_probs = None if probs is None else probs.flatten()[slots]
    return tokens[slots // top_k], sorted_indices_of(indices), row_probs


def unpermute(rows, sorted_indices, probs=None, top_k=1, window=None):
    begin, end = window or (0, rows.shape[0])
    num_tokens = sorted_indices.numel() // top_k
    out = [torch.zeros(rows.shape[1], dtype=rows.dtype) for _ in range(num_tokens)]
    for slot, row in enumerate(sorted_indices.tolist()):
        if begin <= row < end:
            token = slot // top_k
            weight = 1 if probs is None else probs[token, slot % top_k]
            out[token] = out[token] + rows[row - begin] * weight
    stacked = torch.stack(out) if out else torch.zeros(0, rows.shape[1], dtype=rows.dtype)
    # 0 * rows.sum() keeps a result without any row in the graph.
    return stacked + 0 * rows.sum() + (0 if probs is None else 0 * probs.sum())


@dataclass
class Case:
    """Small whole numbers, and probs in eighths: every sum is exact in every dtype."""

    num_tokens: int
    top_k: int
    hidden_size: int
    num_experts: int
    dtype: torch.dtype = torch.float32
    probs_dtype: torch.dtype | None = None
    seed: int = 0

    def __post_init__(self):
        self.generator = torch.Generator().manual_seed(self.seed)
        self.indices = self.integers(-1, self.num_experts, self.num_tokens, self.top_k)
        self.tokens = self.integers(-4, 5, self.num_tokens, self.hidden_size).to(self.dtype)
        eighths = self.integers(0, 9, self.num_tokens, self.top_k)
        self.probs = eighths.to(self.probs_dtype or self.dtype) / 8
        self.num_slots = self.indices.numel()

    def integers(self, low, high, *shape):
        return torch.randint(low, high, shape, generator=self.generator)

    def rows(self, num_rows):
        return self.integers(-4, 5, num_rows, self.hidden_size).to(self.dtype)

    def windows(self):
        """Absent, everything, the middle, nothing."""
        a, b = self.num_slots // 3, 2 * self.num_slots // 3 + 1
        return [None, (0, self.num_slots), (a, min(b, self.num_slots)), (a, a)]
