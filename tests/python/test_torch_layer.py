"""moe_permute.torch.MoE, and the language model of examples/char_moe that is made of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from moe_permute.torch import MoE  # noqa: E402

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "char_moe"


def naive(layer, tokens):
    """Each expert on each token that chose it, one at a time."""
    indices, probs = layer.route(tokens)
    out = torch.zeros_like(tokens)
    for t, k in torch.cartesian_prod(torch.arange(len(tokens)), torch.arange(layer.top_k)).tolist():
        expert = indices[t, k]
        hidden = torch.nn.functional.gelu(tokens[t] @ layer.up[expert])
        out = out.index_add(
            0, torch.tensor([t]), (probs[t, k] * (hidden @ layer.down[expert]))[None]
        )
    return out


def outcome(run, layer, tokens):
    """Output, and gradients of the tokens and of every parameter."""
    leaf = tokens.clone().requires_grad_()
    out = run(layer, leaf)
    gradients = torch.autograd.grad(out.square().sum(), [leaf, *layer.parameters()])
    return [out, *gradients]


def close(got, want):
    return all(torch.allclose(g, w, rtol=1e-9, atol=1e-11) for g, w in zip(got, want, strict=True))


@pytest.fixture
def tokens():
    return torch.randn(9, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(4))


def make_layer(**keywords):
    torch.manual_seed(5)
    return MoE(6, 10, num_experts=5, top_k=2, **keywords).double()


def test_the_layer_agrees_with_one_token_at_a_time(tokens):
    layer = make_layer()
    got = outcome(lambda layer, x: layer(x), layer, tokens)
    assert close(got, outcome(naive, layer, tokens))


def added_up(layers, tokens):
    """Output and gradients of ranks, each of which has its part of both."""
    leaf = tokens.clone().requires_grad_()
    out = sum(layer(leaf) for layer in layers)
    out.square().sum().backward()
    router = sum(layer.router.weight.grad for layer in layers)
    layers = [layer for layer in layers if layer.own_experts]
    experts = [
        torch.cat([getattr(layer, name).grad for layer in layers]) for name in ("up", "down")
    ]
    return [out, leaf.grad, router, *experts]


@pytest.mark.parametrize("num_ranks", [2, 3, 7])
def test_ranks_add_up_to_the_whole_layer(tokens, num_ranks):
    ranks = [make_layer(rank=rank, num_ranks=num_ranks) for rank in range(num_ranks)]
    assert close(added_up(ranks, tokens), added_up([make_layer()], tokens))


def test_any_shape_in_front_of_the_hidden_size(tokens):
    layer = make_layer()
    assert torch.equal(layer(tokens.view(3, 3, 6)).view(9, 6), layer(tokens))


# --- the language model ---------------------------------------------------------------------------


@pytest.fixture
def train_module(monkeypatch):
    if not EXAMPLE.exists():
        pytest.skip("the examples are not here")
    monkeypatch.syspath_prepend(str(EXAMPLE))
    import train

    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)  # steps this small lose by more
    yield train
    torch.set_num_threads(num_threads)
    for name in ("train", "model", "plain", "plot"):
        sys.modules.pop(name, None)


def test_the_language_model_learns_as_in_plain_torch(train_module):
    sizes = train_module.Sizes(hidden_size=32, expert_size=16, num_experts=8, top_k=2, context=32)
    runs, _ = train_module.train(50, sizes, batch_size=8)
    assert max(train_module.differences(runs)) < 1e-5
    losses = runs["moe_permute"].losses
    assert len(losses) == 50 and losses[-1] < losses[0] - 1


def test_the_picture_is_drawn(train_module, tmp_path):
    from xml.etree import ElementTree

    from plot import draw

    curves = {"a": ([0.1, 0.2, 0.1], [4.0, 3.0, 2.5]), "b": ([0.2, 0.2, 0.2], [4.0, 3.0, 2.5])}
    root = ElementTree.fromstring(draw(curves, [0.0, 1e-7, 2e-7]))
    lines = [e for e in root.iter() if e.tag.endswith("polyline")]
    assert [len(line.get("points").split()) for line in lines] == [3, 3]
    assert len([e for e in root.iter() if e.tag.endswith("circle")]) == 3
