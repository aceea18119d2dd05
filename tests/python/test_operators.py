"""The operators against the oracle: all dtypes, layouts, windows, sizes, given outputs."""

import moe_permute as mp
import numpy as np
import oracle
import pytest
from cases import assert_same_bits, cases
from hypothesis import given, settings
from hypothesis import strategies as st

thorough = settings(max_examples=300, deadline=None, derandomize=True)
given_outputs = st.booleans()


def poisoned(shape, dtype):
    """Make an output that holds NaN, or large integers."""
    return np.full(shape, 77 if np.dtype(dtype).kind == "i" else np.nan).astype(dtype)


def check(results, wanted, out):
    for result, want, array in zip(results, wanted, out or [None] * len(results), strict=True):
        if want is None:
            assert result is None
            continue
        assert array is None or result is array
        assert_same_bits(result, want)


@thorough
@given(cases(), given_outputs, st.booleans())
def test_permute(case, with_out, with_num_experts):
    tokens = case.floats((case.num_tokens, case.hidden_size), case.dtype)
    indices, probs = case.indices(), case.probs()
    num_experts = case.num_experts if with_num_experts else None
    rows, out = case.rows, None
    if with_out:
        # Without a window, given rows are the window.
        rows += case.extra_rows
        out = (
            poisoned((rows, case.hidden_size), case.dtype),
            poisoned(case.num_slots, np.int64),
            None if probs is None else poisoned(rows, probs.dtype),
        )
    results = mp.permute(
        tokens, indices, probs, ep_range=case.ep_range, num_experts=num_experts, out=out
    )
    want, want_probs = oracle.permute(tokens, indices, probs, case.window, rows, num_experts)
    ranks = np.array(oracle.sort_indices(indices, num_experts)[0], np.int64 if out else np.int32)
    check(results, (want, ranks, want_probs), out)


@thorough
@given(cases(), given_outputs)
def test_permute_grad(case, with_out):
    num_rows = case.rows + (case.extra_rows if case.ep_range else 0)
    rows = case.floats((num_rows, case.hidden_size), case.dtype)
    probs = case.floats(num_rows, case.probs_dtype) if case.probs_dtype else None
    sorted_indices = case.sorted_indices()
    out = None
    if with_out:
        out = (
            poisoned((case.num_tokens, case.hidden_size), case.dtype),
            None if probs is None else poisoned((case.num_tokens, case.top_k), probs.dtype),
        )
    results = mp.permute_grad(
        rows, sorted_indices, case.top_k, probs, ep_range=case.ep_range, out=out
    )
    want = oracle.permute_grad(rows, sorted_indices, case.top_k, probs, case.window)
    check(results, want, out)


@thorough
@given(cases(), given_outputs)
def test_unpermute(case, with_out):
    rows = case.floats((case.rows + case.extra_rows, case.hidden_size), case.dtype)
    window = case.ep_range or (0, len(rows))
    sorted_indices, probs = case.sorted_indices(), case.probs()
    out = poisoned((case.num_tokens, case.hidden_size), case.dtype) if with_out else None
    result = mp.unpermute(
        rows,
        sorted_indices,
        probs,
        top_k=None if probs is not None else case.top_k,
        ep_range=case.ep_range,
        out=out,
    )
    want = oracle.unpermute(rows, sorted_indices, probs, case.top_k, window)
    check([result], [want], [out])


@thorough
@given(cases(), given_outputs, st.booleans())
def test_unpermute_grad(case, with_out, with_rows):
    grad = case.floats((case.num_tokens, case.hidden_size), case.dtype)
    num_rows = case.rows + (case.extra_rows if with_rows or with_out else 0)
    rows = case.floats((num_rows, case.hidden_size), case.dtype) if with_rows else None
    sorted_indices, probs = case.sorted_indices(), case.probs()
    out = None
    if with_out:
        has_probs_grad = with_rows and probs is not None
        out = (
            poisoned((num_rows, case.hidden_size), case.dtype),
            poisoned(probs.shape, probs.dtype) if has_probs_grad else None,
        )
    results = mp.unpermute_grad(
        grad, sorted_indices, rows, probs, top_k=case.top_k, ep_range=case.ep_range, out=out
    )
    want = oracle.unpermute_grad(
        grad, sorted_indices, rows, probs, case.top_k, case.window, num_rows
    )
    check(results, want, out)


@thorough
@given(cases(), given_outputs)
def test_sort_indices(case, with_out):
    indices = case.indices()
    out = None
    if with_out:
        out = (
            poisoned(case.num_slots, case.index_dtype),
            poisoned(case.num_experts, case.index_dtype),
        )
    results = mp.sort_indices(indices, num_experts=case.num_experts, out=out)
    ranks, _, counts = oracle.sort_indices(indices, case.num_experts)
    dtype = case.index_dtype if with_out else np.int32
    check(results, (np.array(ranks, dtype), np.array(counts, dtype)), out)


@thorough
@given(cases(), st.integers(1, 4))
def test_ranks_tile_the_whole(case, num_ranks):
    """What ranks make of their windows adds up to what one makes of all rows."""
    tokens = np.round(4 * case.floats((case.num_tokens, case.hidden_size), np.float32))
    indices = np.abs(case.indices()) % case.num_experts
    counts = mp.sort_indices(indices, num_experts=case.num_experts)[1]
    whole, sorted_indices, _ = mp.permute(tokens, indices)
    total = np.zeros_like(tokens)
    for rank in range(num_ranks):
        window = mp.ep_range_of_rank(counts, rank, num_ranks)
        rows = mp.permute(tokens, indices, ep_range=window)[0]
        np.testing.assert_array_equal(rows, whole[slice(*window)])
        total += mp.permute_grad(rows, sorted_indices, case.top_k, ep_range=window)[0]
    np.testing.assert_array_equal(total, case.top_k * tokens)


def test_top_k_comes_from_probs_then_top_k_then_1():
    rows = np.ones((6, 2), np.float32)
    sorted_indices = np.arange(6, dtype=np.int32)
    assert mp.unpermute(rows, sorted_indices, np.ones((2, 3), np.float32)).shape == (2, 2)
    assert mp.unpermute(rows, sorted_indices, top_k=2).shape == (3, 2)
    assert mp.unpermute(rows, sorted_indices).shape == (6, 2)
    with pytest.raises(ValueError, match=r"probs"):
        mp.unpermute(rows, sorted_indices, np.ones((2, 3), np.float32), top_k=2)


def test_one_dimensional_indices_mean_top_k_1():
    tokens = np.arange(6, dtype=np.float32).reshape(3, 2)
    rows, sorted_indices, probs = mp.permute(
        tokens, np.array([2, 0, 1]), np.array([1, 2, 3], np.float32)
    )
    np.testing.assert_array_equal(rows, tokens[[1, 2, 0]])
    np.testing.assert_array_equal(sorted_indices, [2, 0, 1])
    np.testing.assert_array_equal(probs, [2, 3, 1])


def test_unpermute_takes_out_bare_or_in_a_tuple():
    rows, sorted_indices = np.ones((2, 3), np.float32), np.arange(2)
    out = np.zeros((2, 3), np.float32)
    assert mp.unpermute(rows, sorted_indices, out=out) is out
    assert mp.unpermute(rows, sorted_indices, out=(out,)) is out
    assert mp.unpermute(rows, sorted_indices, out=(None,)) is not out


@pytest.mark.parametrize("kernel_threads", [1, 2, 5])
def test_results_do_not_depend_on_threads(kernel_threads):
    rng = np.random.default_rng(7)
    rows = rng.standard_normal((4096, 65)).astype(np.float16)
    sorted_indices = rng.permutation(4096)
    probs = rng.standard_normal((1024, 4)).astype(np.float32)
    want = mp.unpermute(rows, sorted_indices, probs)
    mp.set_num_threads(kernel_threads)
    try:
        assert_same_bits(mp.unpermute(rows, sorted_indices, probs), want)
    finally:
        mp.set_num_threads(None)
