"""The round trip under names and signatures that programs already call.

A program that calls them changes an import and runs on CPU tensors, with gradients. Where these
functions differ from what the names do elsewhere, docs/compat.md says so.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .torch import moe_token_permute, moe_token_unpermute

__all__ = [
    "moe_permute",
    "moe_unpermute",
    "npu_moe_token_permute",
    "npu_moe_token_unpermute",
]


def npu_moe_token_permute(
    tokens: Tensor, indices: Tensor, num_out_tokens: int | None = None, padded_mode: bool = False
) -> tuple[Tensor, Tensor]:
    """Bring the tokens into the order of their experts.

    Args:
        tokens: [T, H].
        indices: [T, K] or [T]: the expert of each slot.
        num_out_tokens: how many rows to keep: n > 0 the first n, 0 and None all, n < 0 all but the
            last -n.
        padded_mode: only False.

    Returns:
        `permuted_tokens` [rows, H] and `sorted_indices` [T * K], int32.

    Raises:
        NotImplementedError: `padded_mode` is set.
        TypeError, ValueError: as `moe_permute.torch.moe_token_permute`.

    >>> import torch
    >>> tokens = torch.tensor([[1.0], [2.0]])
    >>> rows, sorted_indices = npu_moe_token_permute(tokens, torch.tensor([[1, 0], [0, 2]]))
    >>> rows.flatten().tolist(), sorted_indices.tolist()
    ([1.0, 2.0, 1.0, 2.0], [2, 0, 1, 3])

    """
    _reject_padding(padded_mode)
    return _permute_and_keep(tokens, indices, num_out_tokens)


def npu_moe_token_unpermute(
    permuted_tokens: Tensor,
    sorted_indices: Tensor,
    probs: Tensor | None = None,
    padded_mode: bool = False,
    restore_shape: Sequence[int] | None = None,
) -> Tensor:
    """Bring the rows back to their tokens, weighted by `probs` [T, K].

    Args:
        permuted_tokens: [rows, H].
        sorted_indices: [T * K], as `npu_moe_token_permute` gave it.
        probs: [T, K]; without it K = 1.
        padded_mode: only False.
        restore_shape: looked at with `padded_mode` only, so not at all.

    Raises:
        NotImplementedError: `padded_mode` is set.
        TypeError, ValueError: as `moe_permute.torch.moe_token_unpermute`.

    >>> import torch
    >>> rows = torch.tensor([[1.0], [2.0]])
    >>> npu_moe_token_unpermute(rows, torch.tensor([1, 0])).flatten().tolist()
    [2.0, 1.0]

    """
    _reject_padding(padded_mode)
    return moe_token_unpermute(permuted_tokens, sorted_indices, probs)


def moe_permute(
    inp: Tensor,
    routing_map: Tensor,
    num_out_tokens: int = -1,
    max_token_num: int = -1,
    map_type: str = "mask",
) -> tuple[Tensor, Tensor]:
    """Bring the tokens into the order of their experts.

    Args:
        inp: [T, H].
        routing_map: [T, K]: the expert of each slot, int32 or int64.
        num_out_tokens: how many rows to keep; -1, and 0, all.
        max_token_num: not needed here, and not looked at.
        map_type: "index". The default, "mask", is not there yet.

    Returns:
        `permuted` [rows, H], and `row_id_map` for `moe_unpermute`: what `moe_permute.torch` calls
        `sorted_indices`.

    Raises:
        NotImplementedError: `map_type` is "mask".
        TypeError, ValueError: as `moe_permute.torch.moe_token_permute`.

    >>> import torch
    >>> tokens = torch.tensor([[1.0], [2.0]])
    >>> experts = torch.tensor([[1], [0]], dtype=torch.int32)
    >>> rows, row_id_map = moe_permute(tokens, experts, map_type="index")
    >>> rows.flatten().tolist()
    [2.0, 1.0]

    """
    _reject_masks(map_type)
    if num_out_tokens < -1:
        raise ValueError(f"num_out_tokens: {num_out_tokens}, but needs -1 (all rows) or more")
    return _permute_and_keep(inp, routing_map, max(num_out_tokens, 0))


def moe_unpermute(
    inp: Tensor,
    row_id_map: Tensor,
    merging_probs: Tensor | None = None,
    restore_shape: Sequence[int] | None = None,
    map_type: str = "mask",
) -> Tensor:
    """Bring the rows back to their tokens, weighted by `merging_probs` [T, K].

    Args:
        inp: [rows, H].
        row_id_map: [T * K], as `moe_permute` gave it.
        merging_probs: [T, K], optional.
        restore_shape: (T, H): tells K where no `merging_probs` do. With neither, K = 1.
        map_type: "index". The default, "mask", is not there yet.

    Raises:
        NotImplementedError: `map_type` is "mask".
        TypeError, ValueError: as `moe_permute.torch.moe_token_unpermute`.

    >>> import torch
    >>> rows = torch.tensor([[1.0], [2.0]])
    >>> moe_unpermute(rows, torch.tensor([1, 0]), map_type="index").flatten().tolist()
    [2.0, 1.0]

    """
    _reject_masks(map_type)
    return moe_token_unpermute(inp, row_id_map, merging_probs, restore_shape=restore_shape)


def _permute_and_keep(
    tokens: Tensor, indices: Tensor, num_out_tokens: int | None
) -> tuple[Tensor, Tensor]:
    """moe_token_permute with counts that start at either end."""
    if num_out_tokens is None or num_out_tokens == 0 or not isinstance(indices, Tensor):
        return moe_token_permute(tokens, indices)[:2]
    if num_out_tokens > 0:
        return moe_token_permute(tokens, indices, num_out_tokens=num_out_tokens)[:2]
    end = torch.sym_max(indices.numel() + num_out_tokens, 0)
    return moe_token_permute(tokens, indices, ep_range=(0, end))[:2]


def _reject_padding(padded_mode: bool) -> None:
    if padded_mode:
        raise NotImplementedError("padded_mode: True, but only False is there")


def _reject_masks(map_type: str) -> None:
    if map_type == "mask":
        raise NotImplementedError(
            'map_type: "mask", but only "index" is there: routing maps of expert ids [T, K]'
        )
    if map_type != "index":
        raise ValueError(f'map_type: {map_type!r}, but needs "index"')
