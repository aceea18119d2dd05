"""Random routings and operators in NumPy, from the contract alone."""

import numpy as np


def make(rng, tokens, top_k, experts):
    """Expert ids [T, K], all different within a token."""
    return (
        np.stack([rng.choice(experts, top_k, replace=False) for _ in range(tokens)])
        .astype(np.int32)
        .reshape(tokens, top_k)
    )


def order_of(indices):
    return np.argsort(indices.reshape(-1), kind="stable")


def rows_of(indices):
    """sorted_indices: the global row of each slot."""
    order = order_of(indices)
    rows = np.empty_like(order)
    rows[order] = np.arange(order.size)
    return rows.astype(np.int32)


def rank_window(indices, experts, rank, ranks):
    counts = np.bincount(indices.reshape(-1), minlength=experts)
    before = np.concatenate([[0], np.cumsum(counts)])
    return int(before[rank * experts // ranks]), int(before[(rank + 1) * experts // ranks])


def locals_of(rows, begin, end):
    """The row of the window for each slot; -1 outside."""
    return np.where((rows >= begin) & (rows < end), rows - begin, -1)


def sums(values, local, top_k, weights=None, *, narrow=False, order=None, keep=None):
    """sum over k of values[local[t, k]] * weights[t, k], as a float32 accumulator gives it.

    narrow: rounds the sum to values' dtype after each addition. order: of k. keep(token, slots in
    the window) chooses the slots that count.
    """
    tokens, hidden = local.size // top_k, values.shape[1]
    wide = np.float64 if values.dtype == np.float64 else np.float32
    out = np.zeros((tokens, hidden), values.dtype)
    for t in range(tokens):
        total = np.zeros(hidden, wide)
        slots = [s for s in range(t * top_k, (t + 1) * top_k) if local[s] >= 0]
        for s in keep(slots) if keep else slots[:: -1 if order == "descending" else 1]:
            term = values[local[s]].astype(wide)
            if weights is not None:
                if weights.reshape(-1)[s] == 0:
                    continue
                term = term * wide(weights.reshape(-1)[s])
            total = (total + term).astype(wide)
            if narrow:
                total = total.astype(values.dtype).astype(wide)
        out[t] = total.astype(values.dtype)
    return out


def copies(values, local):
    """values[local], 0 outside."""
    out = np.zeros(local.size, values.dtype)
    out[local >= 0] = values[local[local >= 0]]
    return out
