"""Checkpoints of models with `ExpertParallelMoE` layers, for any number of ranks."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ._layer import ExpertParallelMoE

_SHARD = "rank-{rank:05d}-of-{num_ranks:05d}.pt"


def save_checkpoint(
    module: nn.Module, folder: str | os.PathLike[str], *, group: dist.ProcessGroup | None = None
) -> None:
    """Write the module of all ranks of a group into a new folder on a file system that they share.

    Each rank writes its own experts, rank 0 the rest too. All goes to a folder of a temporary name
    beside, which gets its own name when every rank is through: a checkpoint is whole or not there.

    Raises:
        FileExistsError: the folder is already there; on every rank.
    """
    rank, num_ranks = dist.get_rank(group), dist.get_world_size(group)
    folder = Path(folder)
    temporary = folder.with_name(folder.name + ".tmp")
    if rank == 0:  # what a job left that did not come to its end
        shutil.rmtree(temporary, ignore_errors=True)
    exists = torch.tensor([folder.exists()], dtype=torch.int64)
    dist.broadcast(exists, group=group, group_src=0)
    if exists.item():
        raise FileExistsError(f"folder: {folder} is there already, but needs a new name")
    temporary.mkdir(parents=True, exist_ok=True)
    shard = temporary / _SHARD.format(rank=rank, num_ranks=num_ranks)
    _write(_entries(module, with_dense=rank == 0), shard)
    dist.barrier(group)
    if rank == 0:
        temporary.rename(folder)
    dist.barrier(group)


def load_checkpoint(module: nn.Module, folder: str | os.PathLike[str]) -> None:
    """Load what `save_checkpoint` wrote, at any number of ranks; no rank waits for another.

    Raises:
        FileNotFoundError: there is no checkpoint, or one of its files is missing.
        RuntimeError: an entry of the module is missing, or has another shape.
    """
    wanted = module.state_dict().keys()
    state: dict[str, Tensor] = {}
    for shard in _shards(Path(folder)):
        entries = torch.load(shard, map_location="cpu", mmap=True, weights_only=True)
        state.update((key, value) for key, value in entries.items() if key in wanted)
    module.load_state_dict(state)


def _entries(module: nn.Module, *, with_dense: bool) -> dict[str, Any]:
    prefixes = tuple(
        f"{name}.experts." if name else "experts."
        for name, part in module.named_modules()
        if isinstance(part, ExpertParallelMoE)
    )
    # Views of stacked weights would be written with all that they are views of.
    return {
        key: value.clone() if isinstance(value, Tensor) else value
        for key, value in module.state_dict().items()
        if with_dense or key.startswith(prefixes)
    }


def _write(entries: dict[str, Any], path: Path) -> None:
    with path.open("wb") as file:
        torch.save(entries, file)
        file.flush()
        os.fsync(file.fileno())


def _shards(folder: Path) -> list[Path]:
    shards = sorted(folder.glob("rank-*-of-*.pt"))
    if not shards:
        raise FileNotFoundError(f"folder: no checkpoint in {folder}")
    num_ranks = int(shards[0].stem.rsplit("-", 1)[1])
    expected = [folder / _SHARD.format(rank=r, num_ranks=num_ranks) for r in range(num_ranks)]
    for shard in expected:
        if not shard.exists():
            raise FileNotFoundError(f"folder: {shard} is missing")
    return expected
