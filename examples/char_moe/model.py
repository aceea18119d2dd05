"""A small transformer over characters whose feed-forward layers are mixtures of experts."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from moe_permute.torch import MoE
from torch import Tensor, nn
from torch.nn import functional


@dataclass
class Sizes:
    """Of the model. Many small experts: the way there and back is a good part of a step."""

    hidden_size: int = 128
    expert_size: int = 32
    num_experts: int = 16
    top_k: int = 8
    num_blocks: int = 2
    num_heads: int = 4
    context: int = 64


class Attention(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.num_heads = sizes.num_heads
        self.mix = nn.Linear(sizes.hidden_size, 3 * sizes.hidden_size, bias=False)
        self.out = nn.Linear(sizes.hidden_size, sizes.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, hidden_size = x.shape
        heads = self.mix(x).view(batch, length, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(*heads, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, hidden_size))


class Block(nn.Module):
    def __init__(self, sizes: Sizes, layer: type[MoE]) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(sizes.hidden_size) for _ in range(2))
        self.attention = Attention(sizes)
        self.experts = layer(sizes.hidden_size, sizes.expert_size, sizes.num_experts, sizes.top_k)

    def forward(self, x: Tensor, indices: Tensor | None) -> tuple[Tensor, Tensor]:
        """The block's output, and the experts that its tokens went to."""
        x = x + self.attention(self.norms[0](x))
        tokens = self.norms[1](x)
        if indices is None:
            with torch.no_grad():
                indices, _ = self.experts.route(tokens.flatten(0, 1))
        return x + self.experts(tokens, indices), indices


class CharModel(nn.Module):
    """Characters [batch, context] to the next one's logits [batch, context, vocabulary].

    `layer` is the mixture of experts to build with: models of one seed have the same weights.
    """

    def __init__(self, vocabulary: int, sizes: Sizes, layer: type[MoE], seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.embedding = nn.Embedding(vocabulary, sizes.hidden_size)
        self.position = nn.Parameter(0.1 * torch.randn(sizes.context, sizes.hidden_size))
        self.blocks = nn.ModuleList(Block(sizes, layer) for _ in range(sizes.num_blocks))
        self.norm = nn.LayerNorm(sizes.hidden_size)
        self.head = nn.Linear(sizes.hidden_size, vocabulary)

    def forward(
        self, chars: Tensor, routing: list[Tensor] | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """Logits, and the experts chosen in each block: ``routing`` where it is given."""
        x = self.embedding(chars) + self.position[: chars.shape[1]]
        chosen = []
        for number, block in enumerate(self.blocks):
            x, indices = block(x, None if routing is None else routing[number])
            chosen.append(indices)
        return self.head(self.norm(x)), chosen
