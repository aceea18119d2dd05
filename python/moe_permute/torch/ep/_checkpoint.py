"""Checkpoints of models with `ExpertParallelMoE` layers, for any number of ranks."""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
from collections.abc import Iterator
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

    The module's state alone: an optimizer's is the caller's to keep.

    Raises:
        FileExistsError: the folder is already there.
        OSError, RuntimeError: a rank cannot write. What one rank raises, all raise.
    """
    rank = dist.get_rank(group)
    folder = Path(folder)
    temporary = folder.with_name(folder.name + ".tmp")
    shard = temporary / _SHARD.format(rank=rank, num_ranks=dist.get_world_size(group))

    with _all_or_none(group):
        if rank == 0:
            _make_room(folder, temporary)
    with _all_or_none(group):
        _write(_entries(module, with_dense=rank == 0), shard)
    with _all_or_none(group):
        if rank == 0:
            temporary.rename(folder)


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


@contextlib.contextmanager
def _all_or_none(group: dist.ProcessGroup | None) -> Iterator[None]:
    """A step that ends when all ranks are through it: with an error on all where one has one."""
    error: Exception | None = None
    try:
        yield
    except Exception as caught:
        error = caught
    errors: list[Exception | None] = [None] * dist.get_world_size(group)
    dist.all_gather_object(errors, error and _that_travels(error), group=group)
    for heard in (error, *errors):
        if heard is not None:
            raise heard


def _that_travels(error: Exception) -> Exception:
    """Give the error, or its words in another where it cannot be sent to other processes."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # each kind of object has its own way to refuse
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _make_room(folder: Path, temporary: Path) -> None:
    if folder.exists():
        raise FileExistsError(f"folder: {folder} is there already, but needs a new name")
    if temporary.exists():  # what a job left that did not come to its end
        shutil.rmtree(temporary)
    temporary.mkdir(parents=True)


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
