"""moe_permute.compat: what programs call already."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import torch_oracle as oracle  # noqa: E402
from moe_permute import compat  # noqa: E402

CASE = oracle.Case(num_tokens=6, top_k=2, hidden_size=4, num_experts=3)
WANT, SORTED, _ = oracle.permute(CASE.tokens, CASE.indices)


@pytest.mark.parametrize(
    ("num_out_tokens", "kept"),
    [(None, 12), (0, 12), (5, 5), (12, 12), (99, 12), (-3, 9), (-12, 0), (-99, 0)],
)
def test_npu_permute_keeps_rows(num_out_tokens, kept):
    rows, sorted_indices = compat.npu_moe_token_permute(CASE.tokens, CASE.indices, num_out_tokens)
    assert torch.equal(rows, WANT[:kept]) and torch.equal(sorted_indices, SORTED)


@pytest.mark.parametrize(("num_out_tokens", "kept"), [(-1, 12), (0, 12), (5, 5), (99, 12)])
def test_moe_permute_keeps_rows(num_out_tokens, kept):
    rows, row_id_map = compat.moe_permute(
        CASE.tokens, CASE.indices, num_out_tokens, map_type="index"
    )
    assert torch.equal(rows, WANT[:kept]) and torch.equal(row_id_map, SORTED)


def test_the_way_back():
    want = oracle.unpermute(WANT, SORTED, CASE.probs, 2)
    assert torch.equal(compat.npu_moe_token_unpermute(WANT, SORTED, CASE.probs), want)
    assert torch.equal(compat.moe_unpermute(WANT, SORTED, CASE.probs, map_type="index"), want)


def test_the_way_back_without_probs():
    want = oracle.unpermute(WANT, SORTED, top_k=2)
    shape = CASE.tokens.shape
    got = compat.moe_unpermute(WANT, SORTED, restore_shape=shape, map_type="index")
    assert torch.equal(got, want)
    assert torch.equal(compat.npu_moe_token_unpermute(WANT, SORTED), WANT[SORTED.long()])


def test_gradients_arrive():
    tokens, probs = CASE.tokens.clone().requires_grad_(), CASE.probs.clone().requires_grad_()
    rows, sorted_indices = compat.npu_moe_token_permute(tokens, CASE.indices)
    compat.npu_moe_token_unpermute(rows, sorted_indices, probs).sum().backward()
    assert torch.equal(tokens.grad, probs.detach().sum(1, keepdim=True).expand(6, 4))
    assert torch.equal(probs.grad, CASE.tokens.sum(1, keepdim=True).expand(6, 2))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: compat.npu_moe_token_permute(CASE.tokens, CASE.indices, None, True),
            NotImplementedError,
            "padded_mode",
        ),
        (
            lambda: compat.npu_moe_token_unpermute(WANT, SORTED, None, True),
            NotImplementedError,
            "padded_mode",
        ),
        (lambda: compat.moe_permute(CASE.tokens, CASE.indices), NotImplementedError, "map_type"),
        (lambda: compat.moe_unpermute(WANT, SORTED), NotImplementedError, "map_type"),
        (
            lambda: compat.moe_permute(CASE.tokens, CASE.indices, map_type="rows"),
            ValueError,
            "map_type",
        ),
        (
            lambda: compat.moe_permute(CASE.tokens, CASE.indices, -2, map_type="index"),
            ValueError,
            "num_out_tokens",
        ),
        (
            lambda: compat.npu_moe_token_permute(CASE.tokens.numpy(), CASE.indices),
            TypeError,
            "tokens",
        ),
        (lambda: compat.npu_moe_token_permute(CASE.tokens, [[0]], 3), TypeError, "indices"),
    ],
)
def test_what_is_not_there_is_said(call, error, words):
    with pytest.raises(error, match=words):
        call()
