"""Types that signatures of this package name."""

from __future__ import annotations

from typing import Protocol, SupportsIndex, TypeVar

# An array: of NumPy, PyTorch or JAX, or anything else with __dlpack__ or the buffer protocol.
ArrayT = TypeVar("ArrayT")


class IntPair(Protocol):
    """Two ints: a tuple, a list, or a small array."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> SupportsIndex: ...
