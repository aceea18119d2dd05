"""Memory for rows."""

from __future__ import annotations

import mmap

import torch
from torch import Tensor

# From here on touching fresh memory for the first time takes longer than filling it, unless its
# pages are large. The same number as in python/src/outputs.cc, for the same reason.
_LARGE_BYTES = 4 << 20


def row_bytes_of(rows: Tensor) -> int:
    return rows.shape[1] * rows.element_size()


def fresh_rows(num_rows: int, like: Tensor) -> Tensor:
    """Rows of the size and dtype of those of `like`, with anything in them."""
    size = num_rows * row_bytes_of(like)
    if size < _LARGE_BYTES or not hasattr(mmap, "MADV_HUGEPAGE"):
        return like.new_empty((num_rows, like.shape[1]))
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    return torch.frombuffer(memory, dtype=like.dtype).view(num_rows, like.shape[1])


class Buffer:
    """Memory that stays from exchange to exchange, where nobody else sees it."""

    def __init__(self) -> None:
        self._memory = torch.empty(0, 1, dtype=torch.uint8)

    def rows(self, num_rows: int, like: Tensor) -> Tensor:
        """Rows of the size and dtype of those of `like`, with anything in them."""
        size = num_rows * row_bytes_of(like)
        if size > len(self._memory):
            self._memory = fresh_rows(size, self._memory)
        return self._memory[:size].view(-1).view(like.dtype).view(num_rows, like.shape[1])


class Lane:
    """What one chunk is sent from and arrives in, while another is worked on."""

    def __init__(self) -> None:
        self.outgoing, self.incoming = Buffer(), Buffer()
