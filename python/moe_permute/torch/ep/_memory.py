"""Memory for rows."""

from __future__ import annotations

import ctypes
import mmap

import torch
from torch import Tensor

# From here on touching fresh memory for the first time takes longer than filling it, unless its
# pages are large. The same number as in python/src/outputs.cc, for the same reason.
_LARGE_BYTES = 4 << 20
# Large pages are asked for in the allocator's own memory: it gives again what was touched before.
_LIBC = ctypes.CDLL(None) if hasattr(mmap, "MADV_HUGEPAGE") else None


def row_bytes_of(rows: Tensor) -> int:
    return rows.shape[1] * rows.element_size()


def fresh_rows(num_rows: int, like: Tensor) -> Tensor:
    """Rows of the size and dtype of those of `like`, with anything in them."""
    rows = like.new_empty((num_rows, like.shape[1]))
    if rows.nbytes >= _LARGE_BYTES and _LIBC is not None:
        first_page = -(-rows.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE
        num_bytes = rows.data_ptr() + rows.nbytes - first_page
        _LIBC.madvise(ctypes.c_void_p(first_page), ctypes.c_size_t(num_bytes), mmap.MADV_HUGEPAGE)
    return rows


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
