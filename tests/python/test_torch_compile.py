"""moe_permute.torch: the operators by PyTorch's own rules, and whole graphs in torch.compile."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import moe_permute.torch  # noqa: E402, F401
import torch_oracle as oracle  # noqa: E402
from moe_permute.torch import MoE, moe_token_permute, moe_token_unpermute  # noqa: E402
from torch._dynamo.testing import CompileCounterWithBackend  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.testing._internal.two_tensor import TwoTensor  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

CASE = oracle.Case(num_tokens=6, top_k=2, hidden_size=4, num_experts=3)
WINDOWS = CASE.windows()
SUBSETS = [(True, None), (False, None), (True, False), (False, True), (True, True)]
OPS = torch.ops.moe_permute
SORTED = oracle.sorted_indices_of(CASE.indices)


def leaf(tensor, needs_grad):
    return None if needs_grad is None else tensor.detach().clone().requires_grad_(needs_grad)


def num_rows(window):
    begin, end = window or (0, CASE.num_slots)
    return end - begin


def samples():
    """(operator, arguments) for every operator, kind of window and subset of inputs."""
    for window in WINDOWS:
        for first, second in SUBSETS:
            tokens, probs = leaf(CASE.tokens, first), leaf(CASE.probs, second)
            rows = leaf(CASE.rows(num_rows(window)), first)
            row_probs = leaf(torch.rand(num_rows(window)), second)
            yield OPS.permute.default, (tokens, CASE.indices, probs, window)
            yield OPS.permute_grad.default, (rows, SORTED, row_probs, 2, window)
            yield OPS.unpermute.default, (rows, SORTED, probs, 2, window)
            others = (leaf(CASE.rows(num_rows(window)), second), probs)
            yield OPS.unpermute_grad.default, (tokens, SORTED, *others, 2, window, num_rows(window))
    yield OPS.unpermute_grad.default, (leaf(CASE.tokens, True), SORTED, None, None, 2, (3, 9), 8)


@pytest.mark.parametrize("sample", list(samples()), ids=lambda sample: sample[0].name())
def test_operators_pass_opcheck(sample):
    operator, arguments = sample
    torch.library.opcheck(operator, arguments)


def layer(tokens, indices, probs, window=None):
    rows, sorted_indices, row_probs = moe_token_permute(tokens, indices, probs, ep_range=window)
    rows = torch.tanh(rows) * row_probs[:, None]
    out = moe_token_unpermute(
        rows, sorted_indices, probs, ep_range=window, restore_shape=tokens.shape
    )
    return out * 2


def results(run, case, window):
    tokens, probs = leaf(case.tokens, True), leaf(case.probs, True)
    out = run(tokens, case.indices, probs, window)
    out.square().sum().backward()
    return out.detach(), tokens.grad, probs.grad


def agree(got, want):
    return all(torch.allclose(g, w, rtol=1e-5, atol=1e-6) for g, w in zip(got, want, strict=True))


@pytest.fixture(autouse=True)
def forget_compiled_code():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize("window", [None, (3, 9), (4, 4)])
def test_whole_graphs_agree_with_eager(window):
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    assert agree(results(compiled, CASE, window), results(layer, CASE, window))


def test_inductor_agrees_with_eager():
    compiled = torch.compile(layer, fullgraph=True)
    assert agree(results(compiled, CASE, (3, 9)), results(layer, CASE, (3, 9)))


def test_dynamic_shapes_compile_once():
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend=counter)
    for num_tokens, window in [(6, (3, 9)), (9, (2, 11)), (13, (5, 20))]:
        case = oracle.Case(num_tokens, 2, 4, 3)
        assert agree(results(compiled, case, window), results(layer, case, window))
    assert counter.frame_count == 1


def test_truncation_compiles():
    def run(tokens, indices):
        return moe_token_permute(tokens, indices, num_out_tokens=5)[0]

    compiled = torch.compile(run, fullgraph=True, dynamic=True, backend="aot_eager")
    for num_tokens in (2, 6):
        case = oracle.Case(num_tokens, 2, 4, 3)
        assert torch.equal(compiled(case.tokens, case.indices), run(case.tokens, case.indices))


def test_windows_in_tensors_compile_with_a_break():
    compiled = torch.compile(layer, backend="aot_eager")
    window = torch.tensor([3, 9])
    assert agree(results(compiled, CASE, window), results(layer, CASE, window))


@torch._dynamo.config.patch(capture_scalar_outputs=True)
def test_windows_in_tensors_compile_whole_where_scalars_are_captured():
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend=counter)
    for window in [(3, 9), (0, 12), (4, 4), (4, 5)]:
        assert agree(results(compiled, CASE, torch.tensor(window)), results(layer, CASE, window))
    assert counter.frame_count == 1


def test_frozen_graphs_compile():
    with torch.no_grad():
        compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
        arguments = (CASE.tokens, CASE.indices, CASE.probs)
        assert torch.equal(compiled(*arguments), layer(*arguments))


def test_the_layer_compiles_around_its_counts():
    torch.manual_seed(0)
    module, tokens = MoE(4, 8, 3, 2), CASE.tokens
    compiled = torch.compile(module, backend="aot_eager")
    assert torch.allclose(compiled(tokens), module(tokens), atol=1e-6)


# --- who looks on in eager mode -------------------------------------------------------------------


def run_layer():
    tokens, probs = leaf(CASE.tokens, True), leaf(CASE.probs, True)
    layer(tokens, CASE.indices, probs, (3, 9)).sum().backward()
    return tokens.grad, probs.grad


def test_modes_see_the_operators_and_change_no_gradient():
    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    want = run_layer()
    with Watch():
        got = run_layer()
    for name in ("permute", "permute_grad", "unpermute", "unpermute_grad"):
        assert seen.count(getattr(OPS, name).default) == 1
    assert all(torch.equal(g, w) for g, w in zip(got, want, strict=True))


def test_the_profiler_names_the_operators():
    with torch.profiler.profile() as profile:
        run_layer()
    names = {event.key for event in profile.key_averages()}
    assert {"moe_permute::permute", "moe_permute::unpermute_grad"} <= names


def test_fake_tensors_need_no_compiler():
    with FakeTensorMode():
        tokens = torch.empty(6, 4, requires_grad=True)
        rows, _, _ = moe_token_permute(
            tokens, torch.empty(6, 2, dtype=torch.int64), ep_range=(3, 9)
        )
        rows.sum().backward()
        assert rows.shape == (6, 4) and tokens.grad.shape == (6, 4)


def test_subclasses_of_tensors_take_the_dispatcher():
    tokens = TwoTensor(CASE.tokens.clone(), 2 * CASE.tokens)
    rows, _, _ = moe_token_permute(tokens, TwoTensor(CASE.indices, CASE.indices))
    assert isinstance(rows, TwoTensor) and torch.equal(rows.b, 2 * rows.a)
