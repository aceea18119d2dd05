"""moe_permute.torch: gradients, of every order, for every subset of inputs that needs one."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import moe_permute as mp  # noqa: E402
import torch_oracle as oracle  # noqa: E402
from moe_permute.torch import moe_token_permute, moe_token_unpermute  # noqa: E402
from torch.autograd import forward_ad, grad, gradcheck, gradgradcheck  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

F64 = oracle.Case(num_tokens=5, top_k=2, hidden_size=3, num_experts=4, dtype=torch.float64)
WINDOWS = F64.windows()
# Whether tokens (or rows) need a gradient, and whether probs do; None: there are no probs.
SUBSETS = [(True, None), (True, False), (False, True), (True, True)]


def inputs(tokens, probs, subset):
    """Fresh leaves of random values that need gradients as the subset says."""
    generator = torch.Generator().manual_seed(3)

    def leaf(like, needs_grad):
        values = torch.randn(like.shape, dtype=like.dtype, generator=generator)
        return values.requires_grad_(needs_grad)

    return leaf(tokens, subset[0]), None if subset[1] is None else leaf(probs, subset[1])


def differentiable(outputs):
    return tuple(o for o in outputs if o is not None and o.requires_grad)


def there(case, window, keywords=None):
    def run(tokens, probs):
        outputs = moe_token_permute(
            tokens, case.indices, probs, ep_range=window, **(keywords or {})
        )
        return differentiable(outputs)

    return run


def back(case, window):
    sorted_indices = oracle.sorted_indices_of(case.indices)
    shape = (case.num_tokens, case.hidden_size)

    def run(rows, probs):
        return moe_token_unpermute(
            rows, sorted_indices, probs, ep_range=window, restore_shape=shape
        )

    return run


def rows_like(case, window, spare=0):
    begin, end = window or (0, case.num_slots)
    return case.rows(end - begin + (spare if window else 0))


@pytest.mark.parametrize("subset", SUBSETS)
@pytest.mark.parametrize("window", WINDOWS)
def test_permute_passes_gradcheck(window, subset):
    tokens, probs = inputs(F64.tokens, F64.probs, subset)
    assert gradcheck(there(F64, window), (tokens, probs))
    assert gradgradcheck(there(F64, window), (tokens, probs))


@pytest.mark.parametrize("subset", SUBSETS)
def test_truncated_permute_passes_gradcheck(subset):
    tokens, probs = inputs(F64.tokens, F64.probs, subset)
    run = there(F64, None, {"num_out_tokens": 4})
    assert gradcheck(run, (tokens, probs))
    assert gradgradcheck(run, (tokens, probs))


@pytest.mark.parametrize("subset", SUBSETS)
@pytest.mark.parametrize("window", WINDOWS)
def test_unpermute_passes_gradcheck(window, subset):
    rows, probs = inputs(rows_like(F64, window, spare=2), F64.probs, subset)
    assert gradcheck(back(F64, window), (rows, probs))
    assert gradgradcheck(back(F64, window), (rows, probs))


def test_unpermute_of_truncated_rows_passes_gradcheck():
    rows, probs = inputs(F64.rows(4), F64.probs, (True, True))
    assert gradcheck(back(F64, None), (rows, probs))
    assert gradgradcheck(back(F64, None), (rows, probs))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("subset", SUBSETS)
@pytest.mark.parametrize("window", [None, (4, 11)])
def test_gradients_agree_with_the_oracle(dtype, subset, window):
    case = oracle.Case(6, 3, 5, 4, dtype=dtype, probs_dtype=torch.float32)
    tokens, probs = (
        case.tokens.requires_grad_(subset[0]),
        None if subset[1] is None else case.probs.requires_grad_(subset[1]),
    )
    leaves = [leaf for leaf in (tokens, probs) if leaf is not None and leaf.requires_grad]
    got = differentiable(moe_token_permute(tokens, case.indices, probs, ep_range=window))
    want = differentiable(oracle.permute(tokens, case.indices, probs, window))
    directions = [case.integers(-2, 3, *g.shape).to(g.dtype) for g in got]
    for g, w in zip(grad(got, leaves, directions), grad(want, leaves, directions), strict=True):
        assert g.dtype == w.dtype and torch.equal(g, w)


@pytest.mark.parametrize("subset", SUBSETS)
@pytest.mark.parametrize("window", [None, (4, 11)])
def test_gradients_of_the_way_back_agree_with_the_oracle(subset, window):
    case = oracle.Case(6, 3, 5, 4, probs_dtype=torch.float32)
    rows = rows_like(case, window, spare=1).requires_grad_(subset[0])
    probs = None if subset[1] is None else case.probs.requires_grad_(subset[1])
    leaves = [leaf for leaf in (rows, probs) if leaf is not None and leaf.requires_grad]
    direction = case.integers(-2, 3, 6, 5).float()
    sorted_indices = oracle.sorted_indices_of(case.indices)
    got = grad(back(case, window)(rows, probs), leaves, direction)
    want = grad(oracle.unpermute(rows, sorted_indices, probs, 3, window), leaves, direction)
    assert all(torch.equal(g, w) for g, w in zip(got, want, strict=True))


def round_trip(case, window, tokens, probs, weights_first=False):
    row_probs_in = probs if weights_first else None
    rows, sorted_indices, row_probs = moe_token_permute(
        tokens, case.indices, row_probs_in, ep_range=window
    )
    rows = torch.tanh(rows) if row_probs is None else torch.tanh(rows) * row_probs[:, None]
    shape = tokens.shape
    weights = None if weights_first else probs
    return moe_token_unpermute(rows, sorted_indices, weights, ep_range=window, restore_shape=shape)


@pytest.mark.parametrize("weights_first", [False, True])
@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpointing_changes_no_gradient(use_reentrant, weights_first):
    def gradients(run):
        tokens, probs = inputs(F64.tokens, F64.probs, (True, True))
        return grad(run(tokens, probs).square().sum(), (tokens, probs))

    def run(tokens, probs):
        return round_trip(F64, (2, 7), tokens, probs, weights_first)

    def run_with_backward(tokens, probs):
        return checkpoint(run, tokens, probs, use_reentrant=use_reentrant)

    def gradients_by_backward():
        tokens, probs = inputs(F64.tokens, F64.probs, (True, True))
        run_with_backward(tokens, probs).square().sum().backward()
        return tokens.grad, probs.grad

    pairs = zip(gradients(run), gradients_by_backward(), strict=True)
    assert all(torch.equal(plain, again) for plain, again in pairs)


@pytest.mark.parametrize("weights_first", [False, True])
def test_a_rank_without_rows_stays_in_the_graph(weights_first):
    tokens, probs = inputs(F64.tokens, F64.probs, (True, True))
    out = round_trip(F64, (4, 4), tokens, probs, weights_first)
    out.sum().backward()
    assert not out.any() and out.requires_grad
    for leaf in (tokens, probs):
        assert leaf.grad.shape == leaf.shape and not leaf.grad.any()


@pytest.mark.parametrize("top_k", [1, 3])
def test_no_tokens_at_all_give_gradients_without_elements(top_k):
    tokens = torch.empty(0, 6, requires_grad=True)
    probs = torch.empty(0, top_k, requires_grad=True)
    indices = torch.empty(0, top_k, dtype=torch.int64)
    rows, sorted_indices, row_probs = moe_token_permute(tokens, indices, probs)
    out = moe_token_unpermute(rows * row_probs[:, None], sorted_indices, probs)
    out.sum().backward()
    assert out.shape == (0, 6) and tokens.grad.shape == (0, 6) and probs.grad.shape == (0, top_k)


@pytest.mark.parametrize("used", [0, 2])
def test_an_output_that_nobody_uses_gives_zeros(used):
    tokens, probs = inputs(F64.tokens, F64.probs, (True, True))
    moe_token_permute(tokens, F64.indices, probs)[used].sum().backward()
    gradients = {0: tokens.grad, 2: probs.grad}
    assert gradients.pop(used).any()
    (other,) = gradients.values()
    assert other is not None and not other.any()


def test_probs_get_their_gradient_where_they_are_zero():
    case = oracle.Case(3, 2, 4, 3)
    rows, probs = case.rows(6), torch.zeros(3, 2, requires_grad=True)
    sorted_indices = oracle.sorted_indices_of(case.indices)
    out = moe_token_unpermute(rows, sorted_indices, probs)
    (got,) = grad(out, probs, torch.ones(3, 4))
    assert torch.equal(got.flatten(), rows.sum(1)[sorted_indices.long()])


def test_rows_are_kept_for_the_backward_only_where_probs_need_them():
    def shapes_kept(probs_need_grad):
        shapes = []
        rows, probs = inputs(F64.rows(10), F64.probs, (True, probs_need_grad))
        hooks = lambda t: shapes.append(t.shape) or t, lambda t: t
        with torch.autograd.graph.saved_tensors_hooks(*hooks):
            back(F64, None)(rows, probs)
        return shapes

    assert (10, 3) in shapes_kept(True) and (10, 3) not in shapes_kept(False)


def test_what_was_changed_in_place_is_noticed():
    rows, probs = inputs(F64.rows(10), F64.probs, (True, True))
    work = rows * 1
    out = back(F64, None)(work, probs)
    work.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_a_frozen_layer_builds_no_graph():
    with torch.no_grad():
        tokens, probs = inputs(F64.tokens, F64.probs, (True, True))
        outputs = moe_token_permute(tokens, F64.indices, probs)
    assert not any(o.requires_grad for o in outputs)
    with torch.inference_mode():
        rows, sorted_indices, _ = moe_token_permute(F64.tokens, F64.indices)
        assert torch.equal(moe_token_unpermute(rows, sorted_indices), rows[sorted_indices.long()])


def test_gradients_may_come_expanded():
    tokens, probs = inputs(F64.tokens, F64.probs, (True, True))
    rows, _, row_probs = moe_token_permute(tokens, F64.indices, probs)
    (rows.sum() + row_probs.sum()).backward()
    assert torch.equal(tokens.grad, torch.full_like(tokens, 2))
    assert torch.equal(probs.grad, torch.ones_like(probs))


# --- torch.func -----------------------------------------------------------------------------------


def test_torch_func_grad_agrees():
    tokens, probs = inputs(F64.tokens, F64.probs, (True, True))

    def loss(tokens, probs):
        return round_trip(F64, (2, 7), tokens, probs).square().sum()

    want = grad(loss(tokens, probs), (tokens, probs))
    got = torch.func.grad(loss, argnums=(0, 1))(tokens.detach(), probs.detach())
    assert all(torch.allclose(g, w) for g, w in zip(got, want, strict=True))


def test_torch_func_nests():
    tokens, probs = F64.tokens, F64.probs + 0.5

    def loss(tokens, probs):
        return round_trip(F64, (2, 7), tokens, probs).square().sum()

    def slope(run, by):
        return torch.func.grad(lambda p: torch.func.grad(run)(tokens, p).sum())(by)

    def by_autograd(by):
        leaf, inner = by.clone().requires_grad_(), tokens.clone().requires_grad_()
        (first,) = grad(loss(inner, leaf), inner, create_graph=True)
        return grad(first.sum(), leaf)[0]

    assert torch.allclose(slope(loss, probs), by_autograd(probs))


def test_vmap_says_what_to_do_instead():
    batch = torch.stack([F64.tokens, F64.tokens])
    with pytest.raises(NotImplementedError, match="vmap, but needs the batch folded"):
        torch.vmap(lambda tokens: moe_token_permute(tokens, F64.indices)[0])(batch)


def test_gradients_may_come_in_batches():
    tokens, probs = inputs(F64.tokens, F64.probs, (True, True))
    out = round_trip(F64, (2, 7), tokens, probs)
    directions = torch.stack([torch.ones_like(out), F64.tokens])
    got = grad(out, (tokens, probs), directions, is_grads_batched=True, retain_graph=True)
    for number, direction in enumerate(directions):
        want = grad(out, (tokens, probs), direction, retain_graph=True)
        assert all(torch.equal(g[number], w) for g, w in zip(got, want, strict=True))


@pytest.mark.parametrize("order", [("rows", "probs"), ("probs", "rows")])
def test_mixed_second_derivatives_agree_with_the_oracle(order):
    rows, probs = inputs(F64.rows(10), F64.probs, (True, True))
    sorted_indices = oracle.sorted_indices_of(F64.indices)
    leaves = {"rows": rows, "probs": probs}
    results = []
    for out in (back(F64, None)(rows, probs), oracle.unpermute(rows, sorted_indices, probs, 2)):
        (first,) = grad(out.square().sum(), leaves[order[0]], create_graph=True)
        results.append(grad(first.sin().sum(), leaves[order[1]])[0])
    assert torch.allclose(*results, rtol=1e-12)


@pytest.mark.parametrize("needs_grad", [False, True])
@pytest.mark.parametrize("call", [moe_token_permute, torch.ops.moe_permute.permute, mp.permute])
def test_tangents_are_refused(call, needs_grad):
    if call is mp.permute and needs_grad:
        pytest.skip("refused for its gradient")
    more = (None, None) if call is torch.ops.moe_permute.permute else ()
    leaf = F64.tokens.clone().requires_grad_(needs_grad)
    with forward_ad.dual_level():
        tokens = forward_ad.make_dual(leaf, torch.ones_like(leaf))
        with pytest.raises((ValueError, NotImplementedError), match=r"tangent|jvp"):
            call(tokens, F64.indices, *more)
        call(leaf, F64.indices, *more)
