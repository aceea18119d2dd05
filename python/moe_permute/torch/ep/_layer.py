"""A mixture-of-experts layer whose experts are spread over the ranks of a group."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from .._layer import MoE
from ._agreement import check_same
from ._exchange import ExpertExchange

_STACKED = ("up", "down")


class ExpertParallelMoE(MoE):
    """`MoE` over a process group: a rank holds its own experts, and a copy of the router.

    Args:
        hidden_size: H, the length of a token.
        expert_size: F, between an expert's two maps.
        num_experts: E, of all ranks together.
        top_k: K.
        group: the process group; None: the default one. Give it one of its own beside
            DistributedDataParallel.
        form, num_chunks: as `ExpertExchange` takes them.
        dtype: of tokens and weights.
        expert_gradient_scale: what gradients of the experts are multiplied by. See below.

    **Gradients.** Those of the experts are whole: they come from the tokens of all ranks. Those of
    the router come from this rank's tokens; add them up over the ranks (or average them: wrap the
    dense parts, `layer.router` too, in DistributedDataParallel, and leave the experts outside).
    Where each rank's loss is a mean over its own tokens and DDP averages, the loss of the whole is
    the mean of the ranks' losses, and the experts' gradients are n times too large:
    `expert_gradient_scale = 1 / n` sets that right.

    **state_dict** has one entry per expert, by its number among all: `experts.5.up`. The union of
    all ranks' dicts loads at any number of ranks; entries of other ranks' experts are passed over.
    `save_checkpoint` and `load_checkpoint` do that with files.
    """

    def __init__(
        self,
        hidden_size: int,
        expert_size: int,
        num_experts: int,
        top_k: int,
        *,
        group: dist.ProcessGroup | None = None,
        form: str = "all-to-all",
        num_chunks: int = 1,
        dtype: torch.dtype = torch.float32,
        expert_gradient_scale: float = 1.0,
    ) -> None:
        exchange = ExpertExchange(
            num_experts, top_k, hidden_size,
            dtype=dtype, probs_dtype=dtype, group=group, form=form, num_chunks=num_chunks,
        )  # fmt: skip
        check_same(exchange.wire, {"expert_size": expert_size})
        rank, num_ranks = exchange.wire.rank, exchange.wire.num_ranks
        super().__init__(
            hidden_size, expert_size, num_experts, top_k, rank=rank, num_ranks=num_ranks
        )
        self.to(dtype)
        self.exchange = exchange
        if expert_gradient_scale != 1.0:
            for parameter in (self.up, self.down):
                parameter.register_hook(lambda gradient: gradient * expert_gradient_scale)
        self.register_state_dict_post_hook(_name_experts)
        self.register_load_state_dict_pre_hook(_stack_experts)

    def forward(self, tokens: Tensor, indices: Tensor | None = None) -> Tensor:
        """Map this rank's tokens [..., hidden_size] to the same shape.

        `indices` [T, K], where given, overrule the router's choice, though not its weights.
        """
        flat = tokens.reshape(-1, tokens.shape[-1])
        indices, probs = self.route(flat, indices)
        routed = self.exchange.route(indices, probs)
        parts = routed.dispatch(flat).split([sum(counts) for counts in routed.rows_of_experts])
        outputs = [
            self.run_experts(part, counts)
            for part, counts in zip(parts, routed.rows_of_experts, strict=True)
        ]
        return routed.combine(torch.cat(outputs)).view(tokens.shape)


def _name_experts(layer: ExpertParallelMoE, state: dict[str, Any], prefix: str, _: Any) -> None:
    for name in _STACKED:
        weights = state.pop(prefix + name)
        for expert, weight in zip(layer.own_experts, weights, strict=True):
            state[f"{prefix}experts.{expert}.{name}"] = weight


def _stack_experts(layer: ExpertParallelMoE, state: dict[str, Any], prefix: str, *_: Any) -> None:
    for name in _STACKED:
        keys = [f"{prefix}experts.{expert}.{name}" for expert in layer.own_experts]
        if not keys:
            state[prefix + name] = getattr(layer, name).detach()
        elif all(key in state for key in keys):
            state[prefix + name] = torch.stack([state[key] for key in keys])
    for key in [key for key in state if key.startswith(f"{prefix}experts.")]:
        del state[key]
