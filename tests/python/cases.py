"""Random problems for the operators, for hypothesis."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

FLOATS = [np.dtype(d) for d in (np.float32, np.float16, ml_dtypes.bfloat16, np.float64)]
INTS = [np.dtype(np.int32), np.dtype(np.int64)]


@dataclass
class Case:
    """One problem: sizes, dtypes, a window, and a generator for values and layouts."""

    num_tokens: int
    top_k: int
    hidden_size: int
    num_experts: int
    dtype: np.dtype
    probs_dtype: np.dtype | None
    index_dtype: np.dtype
    ep_range: tuple[int, int] | None
    extra_rows: int
    rng: np.random.Generator

    @property
    def num_slots(self):
        return self.num_tokens * self.top_k

    @property
    def window(self):
        return self.ep_range or (0, self.num_slots)

    @property
    def rows(self):
        return self.window[1] - self.window[0]

    def floats(self, shape, dtype):
        """Values that sums round, among them zeros, in some layout."""
        values = self.rng.standard_normal(shape) * 2.0 ** self.rng.integers(-3, 4, shape)
        values[self.rng.random(shape) < 0.1] = 0
        return self.laid_out(values.astype(dtype))

    def indices(self):
        ids = self.rng.integers(-1, self.num_experts + 1, (self.num_tokens, self.top_k))
        return self.laid_out(ids.astype(self.index_dtype))

    def probs(self):
        if self.probs_dtype is None:
            return None
        return self.floats((self.num_tokens, self.top_k), self.probs_dtype)

    def sorted_indices(self):
        return self.laid_out(self.rng.permutation(self.num_slots).astype(self.index_dtype))

    def laid_out(self, values):
        """Give the values with gaps, transposed, past an offset, read-only, or one row repeated."""
        layout = self.rng.integers(6)
        if layout == 0:
            return values
        if layout == 1:
            roomy = np.zeros([2 * n + 1 for n in values.shape], values.dtype)
            view = roomy[tuple(slice(1, 1 + 2 * n, 2) for n in values.shape)]
        elif layout == 2:
            view = np.zeros(values.shape[::-1], values.dtype).T
        elif layout == 3:
            memory = np.zeros(values.nbytes + 1, np.uint8)
            view = memory[1:].view(values.dtype).reshape(values.shape)
        elif layout == 4 and values.ndim == 2:
            return np.broadcast_to(values[:1], values.shape)
        else:
            view = np.zeros(values.shape, values.dtype)
        view[...] = values
        view.flags.writeable = layout != 5
        return view


@st.composite
def cases(draw):
    num_tokens = draw(st.integers(0, 9))
    top_k = draw(st.integers(1, 4))
    num_slots = num_tokens * top_k
    dtype = draw(st.sampled_from(FLOATS))
    is_wide = dtype == np.float64
    probs_dtypes = [None, *(d for d in FLOATS if (d == np.float64) == is_wide)]
    ep_range = None
    if draw(st.booleans()):
        begin = draw(st.integers(0, num_slots))
        ep_range = (begin, draw(st.integers(begin, num_slots)))
    return Case(
        num_tokens=num_tokens,
        top_k=top_k,
        hidden_size=draw(st.sampled_from([1, 2, 3, 7, 16, 33, 64, 100])),
        num_experts=draw(st.integers(1, 6)),
        dtype=dtype,
        probs_dtype=draw(st.sampled_from(probs_dtypes)),
        index_dtype=draw(st.sampled_from(INTS)),
        ep_range=ep_range,
        extra_rows=draw(st.integers(0, 2)),
        rng=np.random.default_rng(draw(st.integers(0, 2**32 - 1))),
    )


def assert_same_bits(got, want):
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    # -0 and 0 differ, as bits.
    bits = np.dtype(f"u{want.dtype.itemsize}")
    np.testing.assert_array_equal(
        np.ascontiguousarray(got).view(bits), np.ascontiguousarray(want).view(bits)
    )
