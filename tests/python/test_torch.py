"""moe_permute.torch: results, and what is said of arguments that do not fit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch_oracle as oracle  # noqa: E402
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from moe_permute.torch import moe_token_permute, moe_token_unpermute  # noqa: E402

FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]


@st.composite
def cases(draw):
    dtype = draw(st.sampled_from(FLOATS))
    others = [torch.float64] if dtype == torch.float64 else FLOATS[:3]
    return oracle.Case(
        num_tokens=draw(st.integers(0, 9)),
        top_k=draw(st.integers(1, 4)),
        hidden_size=draw(st.integers(1, 70)),
        num_experts=draw(st.integers(1, 6)),
        dtype=dtype,
        probs_dtype=draw(st.sampled_from(others)),
        seed=draw(st.integers(0, 2**31)),
    )


@st.composite
def cases_with_windows(draw):
    case = draw(cases())
    begin = draw(st.integers(0, case.num_slots))
    end = draw(st.integers(begin, case.num_slots))
    return case, draw(st.sampled_from([None, (begin, end)]))


def same(got, want):
    """Equal, of one dtype, and laid out without gaps."""
    if want is None:
        return got is None
    return got.dtype == want.dtype and torch.equal(got, want) and got.is_contiguous()


@settings(max_examples=150, deadline=None)
@given(cases_with_windows(), st.booleans(), st.sampled_from([torch.int32, torch.int64]))
def test_permute_agrees_with_the_oracle(case_and_window, with_probs, index_dtype):
    case, window = case_and_window
    probs = case.probs if with_probs else None
    got = moe_token_permute(case.tokens, case.indices.to(index_dtype), probs, ep_range=window)
    want = oracle.permute(case.tokens, case.indices, probs, window)
    assert all(same(g, w) for g, w in zip(got, want, strict=True))


@settings(max_examples=150, deadline=None)
@given(cases_with_windows(), st.booleans(), st.integers(0, 3))
def test_unpermute_agrees_with_the_oracle(case_and_window, with_probs, spare_rows):
    case, window = case_and_window
    begin, end = window or (0, case.num_slots)
    rows = case.rows(end - begin + (spare_rows if window else 0))
    sorted_indices = oracle.sorted_indices_of(case.indices)
    probs = case.probs if with_probs else None
    shape = (case.num_tokens, case.hidden_size)
    got = moe_token_unpermute(rows, sorted_indices, probs, ep_range=window, restore_shape=shape)
    top_k = case.top_k if case.num_slots or with_probs else 1
    assert same(got, oracle.unpermute(rows, sorted_indices, probs, top_k, window))


@settings(max_examples=40, deadline=None)
@given(cases(), st.integers(1, 40))
def test_num_out_tokens_keeps_the_first_rows(case, num_out_tokens):
    got = moe_token_permute(case.tokens, case.indices, case.probs, num_out_tokens=num_out_tokens)
    end = min(num_out_tokens, case.num_slots)
    want = oracle.permute(case.tokens, case.indices, case.probs, (0, end))
    assert all(same(g, w) for g, w in zip(got, want, strict=True))


@settings(max_examples=30, deadline=None)
@given(cases())
def test_truncated_rows_come_back_as_zeros_for_the_rest(case):
    end = case.num_slots // 2
    if end == 0:
        return
    rows, sorted_indices, _ = moe_token_permute(case.tokens, case.indices, num_out_tokens=end)
    got = moe_token_unpermute(rows, sorted_indices, case.probs)
    assert same(got, oracle.unpermute(rows, sorted_indices, case.probs, case.top_k, (0, end)))


def test_one_expert_per_token_may_come_without_a_dimension():
    case = oracle.Case(7, 1, 5, 3)
    flat = moe_token_permute(case.tokens, case.indices[:, 0], case.probs[:, 0])
    whole = moe_token_permute(case.tokens, case.indices, case.probs)
    assert all(same(f, w) for f, w in zip(flat, whole, strict=True))
    back = moe_token_unpermute(flat[0], flat[1], case.probs[:, 0])
    assert same(back, moe_token_unpermute(whole[0], whole[1], case.probs))


def test_strided_tensors_need_no_copy():
    case = oracle.Case(6, 3, 8, 4)
    tokens = case.tokens.repeat(2, 2)[::2, 1::2]
    indices = case.indices.t().contiguous().t()
    probs = case.probs[:1].expand(6, 3)
    got = moe_token_permute(tokens, indices, probs, ep_range=(2, 11))
    want = oracle.permute(tokens, indices, probs, (2, 11))
    assert all(same(g, w) for g, w in zip(got, want, strict=True))
    rows = got[0].t().contiguous().t()
    back = moe_token_unpermute(rows, got[1], probs, ep_range=(2, 11))
    assert same(back, oracle.unpermute(rows, got[1], probs, 3, (2, 11)))


def test_windows_may_be_written_in_any_way():
    case = oracle.Case(6, 2, 4, 3)
    want = moe_token_permute(case.tokens, case.indices, ep_range=(2, 7))[0]
    spellings = [
        [2, 7],
        torch.tensor([2, 7]),
        torch.tensor([2, 7], dtype=torch.int32),
        np.array([2, 7]),
    ]
    for window in spellings:
        assert same(moe_token_permute(case.tokens, case.indices, ep_range=window)[0], want)


def test_windows_that_tile_the_rows_add_up():
    case = oracle.Case(12, 3, 9, 5)
    parts = []
    for window in [(0, 10), (10, 10), (10, 25), (25, 36)]:
        rows, sorted_indices, _ = moe_token_permute(case.tokens, case.indices, ep_range=window)
        parts.append(moe_token_unpermute(rows, sorted_indices, case.probs, ep_range=window))
    rows, sorted_indices, _ = moe_token_permute(case.tokens, case.indices)
    assert torch.equal(sum(parts), moe_token_unpermute(rows, sorted_indices, case.probs))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_autocast_changes_nothing(dtype):
    case = oracle.Case(5, 2, 8, 3, dtype=dtype, probs_dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rows, sorted_indices, row_probs = moe_token_permute(case.tokens, case.indices, case.probs)
        out = moe_token_unpermute(rows, sorted_indices, case.probs)
    assert rows.dtype == out.dtype == dtype and row_probs.dtype == torch.float32


def test_meta_tensors_give_shapes():
    tokens, indices = (
        torch.empty(5, 8, device="meta"),
        torch.empty(5, 2, device="meta", dtype=torch.int64),
    )
    probs = torch.empty(5, 2, device="meta")
    rows, sorted_indices, row_probs = moe_token_permute(tokens, indices, probs, ep_range=(3, 7))
    assert rows.shape == (4, 8) and sorted_indices.shape == (10,) and row_probs.shape == (4,)
    assert sorted_indices.dtype == torch.int32 and rows.device.type == "meta"
    assert moe_token_unpermute(rows, sorted_indices, probs, ep_range=(3, 7)).shape == (5, 8)


# --- what does not fit ----------------------------------------------------------------------------

TOKENS, INDICES, PROBS = torch.ones(4, 3), torch.zeros(4, 2, dtype=torch.int64), torch.ones(4, 2)
ROWS, SORTED = torch.ones(8, 3), torch.arange(8)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the interface may change, PyTorch says
    NESTED = torch.nested.nested_tensor([TOKENS[:2], TOKENS])

BAD_PERMUTES = [
    ((TOKENS.numpy(), INDICES), {}, TypeError, "tokens: ndarray"),
    ((None, INDICES), {}, TypeError, "tokens: NoneType"),
    ((TOKENS, INDICES.tolist()), {}, TypeError, "indices: list"),
    ((TOKENS, INDICES, 0.5), {}, TypeError, "probs: float"),
    ((TOKENS.long(), INDICES), {}, TypeError, "tokens: torch.int64"),
    ((TOKENS.to(torch.complex64), INDICES), {}, TypeError, "tokens: torch.complex64"),
    ((TOKENS, INDICES.short()), {}, TypeError, "indices: torch.int16"),
    ((TOKENS, INDICES.float().requires_grad_()), {}, TypeError, "indices: .*requires_grad"),
    ((TOKENS, INDICES, PROBS.long()), {}, TypeError, "probs: torch.int64"),
    ((TOKENS, INDICES, PROBS.double()), {}, (TypeError, ValueError), "probs: .*float64"),
    ((TOKENS[0], INDICES), {}, ValueError, "tokens: "),
    ((TOKENS, INDICES[None]), {}, ValueError, "indices: "),
    ((TOKENS, INDICES[:3]), {}, ValueError, "indices: "),
    ((TOKENS, INDICES[:, :0]), {}, ValueError, "indices: "),
    ((TOKENS, INDICES, PROBS[:, :1]), {}, ValueError, "probs: "),
    ((TOKENS, INDICES, PROBS[:, 0]), {}, ValueError, "probs: "),
    ((TOKENS.to_sparse(), INDICES), {}, ValueError, "tokens: layout torch.sparse_coo"),
    ((TOKENS.to("meta"), INDICES), {}, ValueError, "indices: on cpu"),
    ((NESTED, INDICES), {}, ValueError, "tokens: a nested tensor"),
    ((TOKENS, INDICES), {"ep_range": {0, 4}}, TypeError, "ep_range: set"),
    ((TOKENS, INDICES), {"ep_range": {0: 1, 4: 5}}, TypeError, "ep_range: dict"),
    ((TOKENS, INDICES), {"ep_range": slice(0, 4)}, TypeError, "ep_range: slice"),
    ((TOKENS, INDICES), {"ep_range": torch.tensor(3)}, ValueError, "ep_range: shape"),
    ((TOKENS, INDICES), {"ep_range": (0, 9)}, ValueError, "ep_range: "),
    ((TOKENS, INDICES), {"ep_range": (-1, 4)}, ValueError, "ep_range: "),
    ((TOKENS, INDICES), {"ep_range": (5, 4)}, ValueError, "ep_range: "),
    ((TOKENS, INDICES), {"ep_range": (0, 2**64)}, ValueError, "ep_range: "),
    ((TOKENS, INDICES), {"ep_range": (1, 2, 3)}, ValueError, "ep_range: 3 numbers"),
    ((TOKENS, INDICES), {"ep_range": 4}, TypeError, "ep_range: int"),
    ((TOKENS, INDICES), {"ep_range": (0.0, 4.0)}, TypeError, "ep_range: float"),
    ((TOKENS, INDICES), {"ep_range": "04"}, TypeError, "ep_range: str"),
    ((TOKENS, INDICES), {"ep_range": (False, True)}, TypeError, "ep_range: bool"),
    ((TOKENS, INDICES), {"ep_range": torch.ones(2)}, TypeError, "ep_range: torch.float32"),
    ((TOKENS, INDICES), {"ep_range": torch.ones(2, 1).long()}, ValueError, "ep_range: shape"),
    ((TOKENS, INDICES), {"num_out_tokens": 0}, ValueError, "num_out_tokens: 0"),
    ((TOKENS, INDICES), {"num_out_tokens": 2.5}, TypeError, "num_out_tokens: float"),
    ((TOKENS, INDICES), {"num_out_tokens": 2, "ep_range": (0, 2)}, ValueError, "num_out_tokens: "),
]

BAD_UNPERMUTES = [
    ((None, SORTED), {}, TypeError, "permuted_tokens: NoneType"),
    ((ROWS, SORTED.tolist()), {}, TypeError, "sorted_indices: list"),
    ((ROWS.long(), SORTED), {}, TypeError, "permuted_tokens: torch.int64"),
    ((ROWS, SORTED.float()), {}, TypeError, "sorted_indices: torch.float32"),
    ((ROWS, SORTED[None]), {}, ValueError, "sorted_indices: "),
    ((ROWS[0], SORTED), {}, ValueError, "permuted_tokens: "),
    ((ROWS, SORTED, PROBS[:3]), {}, ValueError, "probs: "),
    ((ROWS, SORTED, PROBS[None]), {}, ValueError, "probs: "),
    ((ROWS, SORTED, PROBS.double()), {}, (TypeError, ValueError), "probs: .*float64"),
    ((ROWS, SORTED), {"ep_range": (0, 9)}, ValueError, "ep_range: "),
    ((ROWS[:3], SORTED), {"ep_range": (0, 4)}, ValueError, "permuted_tokens: 3 rows"),
    ((ROWS, SORTED), {"restore_shape": (3, 3)}, ValueError, "restore_shape: 3 tokens"),
    ((ROWS, SORTED), {"restore_shape": (16, 3)}, ValueError, "restore_shape: 16 tokens"),
    ((ROWS, SORTED), {"restore_shape": (0, 3)}, ValueError, "restore_shape: 0 tokens"),
    ((ROWS, SORTED), {"restore_shape": (4, 5)}, ValueError, "restore_shape: hidden size 5"),
    ((ROWS, SORTED), {"restore_shape": (4,)}, ValueError, "restore_shape: 1 number"),
    ((ROWS, SORTED), {"restore_shape": 4}, TypeError, "restore_shape: int"),
    ((ROWS, SORTED, PROBS), {"restore_shape": (8, 3)}, ValueError, "restore_shape: 8 tokens"),
]


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize(("args", "keywords", "error", "words"), BAD_PERMUTES)
def test_permute_says_what_does_not_fit(args, keywords, error, words, requires_grad):
    with pytest.raises(error, match=words):
        moe_token_permute(*with_grad(args, requires_grad), **keywords)


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize(("args", "keywords", "error", "words"), BAD_UNPERMUTES)
def test_unpermute_says_what_does_not_fit(args, keywords, error, words, requires_grad):
    with pytest.raises(error, match=words):
        moe_token_unpermute(*with_grad(args, requires_grad), **keywords)


def with_grad(args, requires_grad):
    """The last floating tensor as one that takes the road through autograd."""
    floats = [a for a in args if isinstance(a, torch.Tensor) and a.is_floating_point()]
    chosen = floats[-1:] if requires_grad else []
    return [a.detach().clone().requires_grad_() if any(a is c for c in chosen) else a for a in args]


def test_meta_tensors_are_checked_too():
    tokens, indices = TOKENS.to("meta"), INDICES.to("meta")
    for keywords, words in [({"ep_range": (0, 9)}, "ep_range"), ({"ep_range": (3, 2)}, "ep_range")]:
        with pytest.raises(ValueError, match=words):
            moe_token_permute(tokens, indices, **keywords)
    with pytest.raises(ValueError, match="indices"):
        moe_token_permute(tokens, indices[:2])
    no_experts = torch.empty(4, 0, device="meta")
    with pytest.raises(ValueError, match="top_k: 0, but needs at least 1"):
        moe_token_unpermute(tokens, indices.flatten()[:0].int(), no_experts)


def test_other_devices_are_named():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(allow_non_fake_inputs=True):
        tokens = torch.empty(4, 3, device="cuda")
        with pytest.raises(ValueError, match="tokens: on cuda:0"):
            moe_token_permute(tokens, torch.empty(4, 2, device="cuda", dtype=torch.int64))
