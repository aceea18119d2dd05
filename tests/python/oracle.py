"""What the operators compute, written naively with NumPy. Shares nothing with the library.

Arrays are NumPy arrays; bfloat16 is that of ml_dtypes. Sums are taken in float32 (float64 for
float64), slot after slot, and rounded once at the end, as docs/ops says.
"""

from __future__ import annotations

import numpy as np


def accumulator(dtype):
    return np.float64 if np.dtype(dtype) == np.float64 else np.float32


def sort_indices(indices, num_experts=None):
    """Give (sorted_indices, order, tokens_per_expert)."""
    ids = [int(i) for i in np.asarray(indices).reshape(-1)]
    limit = 2**31 if num_experts is None else num_experts

    def is_routed(expert):
        return 0 <= expert < limit

    def group(slot):
        return ids[slot] if is_routed(ids[slot]) else limit

    order = sorted(range(len(ids)), key=group)
    rank = [0] * len(ids)
    for row, slot in enumerate(order):
        rank[slot] = row
    counts = None
    if num_experts is not None:
        counts = [ids.count(expert) for expert in range(num_experts)]
    return rank, order, counts


def permute(tokens, indices, probs, window, rows, num_experts=None):
    """Give (permuted_tokens, permuted_probs), `rows` of each, zeros past the window."""
    top_k = indices.shape[1] if indices.ndim == 2 else 1
    _, order, _ = sort_indices(indices, num_experts)
    begin, end = window
    permuted = np.zeros((rows, tokens.shape[1]), tokens.dtype)
    permuted_probs = None if probs is None else np.zeros(rows, probs.dtype)
    for row, slot in enumerate(order[begin:end]):
        permuted[row] = tokens[slot // top_k]
        if probs is not None:
            permuted_probs[row] = probs.reshape(-1)[slot]
    return permuted, permuted_probs


def slots(sorted_indices, top_k, window):
    """Give (token, k, row or None) for each slot, in order."""
    begin, end = window
    for slot, s in enumerate(np.asarray(sorted_indices).tolist()):
        yield slot // top_k, slot % top_k, s - begin if begin <= s < end else None


def permute_grad(rows, sorted_indices, top_k, probs, window):
    num_tokens = len(sorted_indices) // top_k
    wide = accumulator(rows.dtype)
    sums = -np.zeros((num_tokens, rows.shape[1]), wide)  # -0 + x is x, whatever x is
    probs_grad = None if probs is None else np.zeros((num_tokens, top_k), probs.dtype)
    for token, k, row in slots(sorted_indices, top_k, window):
        sums[token] += 0 if row is None else rows[row].astype(wide)
        if row is not None and probs is not None:
            probs_grad[token, k] = probs[row]
    return sums.astype(rows.dtype), probs_grad


def unpermute(rows, sorted_indices, probs, top_k, window):
    wide = accumulator(rows.dtype)
    sums = -np.zeros((len(sorted_indices) // top_k, rows.shape[1]), wide)
    for token, k, row in slots(sorted_indices, top_k, window):
        weight = wide(1 if probs is None else probs[token, k])
        is_skipped = row is None or weight == 0
        sums[token] += 0 if is_skipped else rows[row].astype(wide) * weight
    return sums.astype(rows.dtype)


def dot(a, b, wide):
    """Add up in 64 partial sums, then those in halves."""
    partial = np.zeros(64, wide)
    for h in range(len(a)):
        partial[h % 64] += wide(a[h]) * wide(b[h])
    for step in (32, 16, 8, 4, 2, 1):
        partial[:step] += partial[step : 2 * step]
    return partial[0]


def unpermute_grad(grad, sorted_indices, permuted, probs, top_k, window, rows):
    wide = accumulator(grad.dtype)
    rows_grad = np.zeros((rows, grad.shape[1]), grad.dtype)
    probs_grad = None
    if probs is not None and permuted is not None:
        probs_grad = np.zeros(probs.shape, probs.dtype)
    for token, k, row in slots(sorted_indices, top_k, window):
        if row is None:
            continue
        weight = wide(1 if probs is None else probs[token, k])
        if weight != 0:
            rows_grad[row] = (grad[token].astype(wide) * weight).astype(grad.dtype)
        if probs_grad is not None:
            value = dot(permuted[row], grad[token], wide)
            probs_grad[token, k] = np.array(value, wide).astype(probs.dtype)
    return rows_grad, probs_grad
