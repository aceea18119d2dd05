"""A small mixture-of-experts layer: the reference for how the two functions fit together."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from moe_permute import ep_range_of_rank

from ._functions import moe_token_permute, moe_token_unpermute


class MoE(nn.Module):
    """Router, top-k, experts of two linear maps each, and the way there and back.

    Rank `rank` of `num_ranks` holds the weights of its own experts only, and gives its part of the
    output: the parts of all ranks add up to the layer's (an all-reduce, which is the caller's). The
    router is the same on every rank; the gradients of tokens and router add up in the same way.

    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> layer = MoE(hidden_size=8, expert_size=16, num_experts=4, top_k=2)
    >>> layer(torch.randn(5, 8)).shape
    torch.Size([5, 8])
    """

    def __init__(
        self,
        hidden_size: int,
        expert_size: int,
        num_experts: int,
        top_k: int,
        *,
        rank: int = 0,
        num_ranks: int = 1,
    ) -> None:
        super().__init__()
        self.num_experts, self.top_k = num_experts, top_k
        self.rank, self.num_ranks = rank, num_ranks
        first, last = ep_range_of_rank([1] * num_experts, rank, num_ranks)
        self.own_experts = range(first, last)
        self.router = nn.Linear(hidden_size, num_experts, bias=False)
        # Drawn for all experts, so that one seed gives a rank the weights it has in the whole.
        up = torch.randn(num_experts, hidden_size, expert_size) / hidden_size**0.5
        down = torch.randn(num_experts, expert_size, hidden_size) / expert_size**0.5
        self.up = nn.Parameter(up[first:last].clone())
        self.down = nn.Parameter(down[first:last].clone())

    def forward(self, tokens: Tensor, indices: Tensor | None = None) -> Tensor:
        """Map [..., hidden_size] to the same shape.

        `indices` [T, K], where given, overrule the router's choice, though not its weights.
        """
        flat = tokens.reshape(-1, tokens.shape[-1])
        indices, probs = self.route(flat, indices)
        counts = torch.bincount(indices.flatten(), minlength=self.num_experts)
        window = ep_range_of_rank(counts.numpy(), self.rank, self.num_ranks)
        rows, sorted_indices = self.permute(flat, indices, window)
        own = counts[self.own_experts.start : self.own_experts.stop]
        rows = self.run_experts(rows, own.tolist())
        return self.unpermute(rows, sorted_indices, probs, window).view(tokens.shape)

    def route(self, tokens: Tensor, indices: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Choose the experts of each token, and their weights, which add up to 1."""
        scores = self.router(tokens).softmax(-1)
        if indices is None:
            indices = scores.topk(self.top_k).indices
        probs = scores.gather(1, indices)
        return indices, probs / probs.sum(-1, keepdim=True)

    def permute(
        self, tokens: Tensor, indices: Tensor, window: tuple[int, int]
    ) -> tuple[Tensor, Tensor]:
        rows, sorted_indices, _ = moe_token_permute(tokens, indices, ep_range=window)
        return rows, sorted_indices

    def run_experts(self, rows: Tensor, counts: list[int]) -> Tensor:
        """Run each expert on its own rows: they lie one expert after another."""
        if not counts:
            return rows
        parts = zip(rows.split(counts), self.up, self.down, strict=True)
        return torch.cat([functional.gelu(part @ up) @ down for part, up, down in parts])

    def unpermute(
        self, rows: Tensor, sorted_indices: Tensor, probs: Tensor, window: tuple[int, int]
    ) -> Tensor:
        return moe_token_unpermute(rows, sorted_indices, probs, ep_range=window)
