"""moe_permute.jax: values, gradients, and what may change without compiling again."""

import moe_permute as mp
import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed")
if not mp.config()["jax"]:
    pytest.skip("moe_permute was built without jaxlib", allow_module_level=True)

import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402
from moe_permute.jax import moe_token_permute, moe_token_unpermute  # noqa: E402

T, K, H, E = 5, 3, 4, 4
RNG = np.random.default_rng(11)
INDICES = RNG.integers(0, E, (T, K)).astype(np.int32)
SORTED = mp.sort_indices(INDICES)[0]
WINDOWS = [None, (0, T * K), (3, 11), (7, 7)]


def values(*shape, dtype=jnp.float32):
    return jnp.asarray(RNG.standard_normal(shape), dtype)


@pytest.fixture
def x64():
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        yield


def same(got, want):
    np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("with_probs", [True, False])
def test_values_are_those_of_the_core(window, dtype, with_probs):
    tokens, probs = values(T, H, dtype=dtype), values(T, K) if with_probs else None
    got = moe_token_permute(tokens, INDICES, probs, ep_range=window)
    want = mp.permute(tokens, INDICES, probs, ep_range=window)
    for a, b in zip(got, want, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == b.dtype
            same(a, b)
    back = moe_token_unpermute(got[0], got[1], probs, ep_range=window, restore_shape=(T, H))
    same(back, mp.unpermute(want[0], want[1], probs, top_k=K, ep_range=window))


def test_float64(x64):
    tokens, probs = values(T, H, dtype="float64"), values(T, K, dtype="float64")
    rows, sorted_indices, _ = moe_token_permute(tokens, INDICES.astype(np.int64), probs)
    assert rows.dtype == jnp.float64 and sorted_indices.dtype == jnp.int32
    same(rows, mp.permute(tokens, INDICES)[0])


def test_rows_past_the_window_are_zero():
    tokens, probs = values(T, H), values(T, K)
    rows, _, row_probs = moe_token_permute(tokens, INDICES, probs, ep_range=(3, 7), capacity=9)
    want, _, want_probs = mp.permute(tokens, INDICES, probs, ep_range=(3, 7))
    same(rows, np.vstack([want, np.zeros((5, H))]))
    same(row_probs, np.append(want_probs, np.zeros(5)))


def test_capacity_without_a_window_keeps_the_first_rows():
    tokens = values(T, H)
    rows = moe_token_permute(tokens, INDICES, capacity=4)[0]
    same(rows, mp.permute(tokens, INDICES)[0][:4])
    grown = moe_token_permute(tokens, INDICES, capacity=20)[0]
    same(grown, np.vstack([mp.permute(tokens, INDICES)[0], np.zeros((5, H))]))


def test_a_new_window_compiles_nothing():
    traces = []

    @jax.jit
    def layer(tokens, probs, begin, end):
        traces.append(None)
        window = (begin, end)
        rows, ranks, _ = moe_token_permute(tokens, INDICES, ep_range=window, capacity=T * K)
        return moe_token_unpermute(rows, ranks, probs, ep_range=window)

    step = jax.jit(jax.value_and_grad(lambda *a: layer(*a).sum(), argnums=(0, 1)))
    tokens, probs = values(T, H), values(T, K)
    total = 0
    for begin, end in [(0, 4), (4, 4), (4, 11), (11, 15)]:
        total += layer(tokens, probs, begin, end)
        step(tokens, probs, begin, end)
    assert len(traces) <= 2  # once for the values, once for the gradients
    whole = probs.sum(axis=1, keepdims=True) * tokens
    np.testing.assert_allclose(total, whole, rtol=1e-5, atol=1e-6)


def test_a_window_as_one_array():
    rows = jax.jit(lambda w: moe_token_permute(values(T, H), INDICES, ep_range=w)[0])
    assert rows(jnp.array([2, 9])).shape == (T * K, H)


def dense_permute(tokens, probs, window, capacity):
    """The same by gathers that JAX differentiates itself."""
    order = jnp.argsort(INDICES.reshape(-1), stable=True)
    begin, end = window or (0, capacity)
    picked = order[begin:end]
    room = ((0, capacity - len(picked)), (0, 0))
    row_probs = probs.reshape(-1)[picked]
    return jnp.pad(tokens[picked // K], room), jnp.pad(row_probs, room[:1])


def dense_unpermute(rows, probs, window):
    begin, end = window or (0, len(rows))
    inside = (begin <= SORTED) & (SORTED < end)
    picked = rows[jnp.where(inside, SORTED - begin, 0)] * inside[:, None]
    return (picked.reshape(T, K, H) * probs[..., None]).sum(1)


@pytest.mark.parametrize("window", WINDOWS)
def test_gradients_are_those_of_gathers(window):
    tokens, probs = values(T, H), values(T, K)
    weights, row_weights = values(T * K, H), values(T * K)

    def loss(permute):
        def of(tokens, probs):
            rows, row_probs = permute(tokens, probs)
            return (rows * weights).sum() + (row_probs * row_weights).sum()

        return jax.grad(of, argnums=(0, 1))(tokens, probs)

    got = loss(
        lambda *a: moe_token_permute(a[0], INDICES, a[1], ep_range=window, capacity=T * K)[::2]
    )
    want = loss(lambda *a: dense_permute(*a, window, T * K))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)

    rows, weights = values(T * K, H), values(T, H)

    def back(unpermute):
        return jax.grad(lambda *a: (unpermute(*a) * weights).sum(), argnums=(0, 1))(rows, probs)

    got = back(lambda r, p: moe_token_unpermute(r, SORTED, p, ep_range=window))
    want = back(lambda r, p: dense_unpermute(r, p, window))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("window", WINDOWS)
def test_gradients_agree_with_finite_differences(x64, window):
    tokens, probs = values(T, H, dtype="float64"), values(T, K, dtype="float64")

    def permuted(tokens, probs):
        return moe_token_permute(tokens, INDICES, probs, ep_range=window)[::2]

    check_grads(permuted, (tokens, probs), order=2, modes=["rev"])
    check_grads(lambda t: moe_token_permute(t, INDICES)[0], (tokens,), order=2, modes=["rev"])
    rows = values(T * K, H, dtype="float64")

    def restored(rows, probs):
        return moe_token_unpermute(rows, SORTED, probs, ep_range=window)

    check_grads(restored, (rows, probs), order=2, modes=["rev"])

    def unweighted(rows):
        return moe_token_unpermute(rows, SORTED, ep_range=window, restore_shape=(T, H))

    check_grads(unweighted, (rows,), order=2, modes=["rev"])


def test_gradients_agree_with_torch_s():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from moe_permute import torch as moe_torch

    arrays = [np.array(values(T, H)), np.array(values(T, K))]

    def layer(module, tokens, probs, **restore):
        rows, ranks, _ = module.moe_token_permute(tokens, restore["indices"], ep_range=(3, 11))
        out = module.moe_token_unpermute(rows * rows, ranks, probs, ep_range=(3, 11))
        return (out * out).sum()

    import moe_permute.jax as moe_jax

    got = jax.grad(lambda *a: layer(moe_jax, *a, indices=INDICES), argnums=(0, 1))(*arrays)
    leaves = [torch.tensor(a, requires_grad=True) for a in arrays]
    layer(moe_torch, *leaves, indices=torch.from_numpy(INDICES)).backward()
    for a, leaf in zip(got, leaves, strict=True):
        np.testing.assert_allclose(a, leaf.grad.numpy(), rtol=1e-5, atol=1e-6)


def test_a_rank_without_tokens():
    tokens = jnp.zeros((0, H))
    indices = jnp.zeros((0, K), jnp.int32)

    def loss(tokens, probs):
        rows, ranks, _ = moe_token_permute(tokens, indices, probs, ep_range=(0, 0), capacity=2)
        return moe_token_unpermute(rows, ranks, probs, ep_range=(0, 0)).sum()

    tokens_grad, probs_grad = jax.grad(loss, argnums=(0, 1))(tokens, jnp.zeros((0, K)))
    assert tokens_grad.shape == (0, H) and probs_grad.shape == (0, K)


def test_vmap_calls_one_after_another():
    batch, windows = values(3, T, H), jnp.array([[0, 4], [2, 2], [5, 15]])

    def rows(tokens, window):
        return moe_token_permute(tokens, INDICES, ep_range=window)[0]

    got = jax.vmap(rows)(batch, windows)
    for i in range(3):
        same(got[i], rows(batch[i], windows[i]))
    grads = jax.vmap(jax.grad(lambda t, w: (rows(t, w) ** 2).sum()))(batch, windows)
    assert grads.shape == batch.shape


@pytest.mark.parametrize(
    ("window", "words"),
    [((1, 9), "permuted_tokens: 4 rows.*at least 8"), ((5, 3), "ep_range"), ((0, 99), "ep_range")],
)
def test_a_traced_window_that_does_not_fit(window, words):
    rows = jax.jit(
        lambda t, b, e: moe_token_permute(t, INDICES, ep_range=(b, e), capacity=4)[0].sum()
    )
    with pytest.raises(Exception, match=words):
        rows(values(T, H), *window).block_until_ready()
    assert np.isfinite(rows(values(T, H), 1, 5))


@pytest.mark.parametrize(
    ("error", "name", "call"),
    [
        (TypeError, "tokens", lambda t, i, p: moe_token_permute(t.astype(int), i)),
        (ValueError, "tokens", lambda t, i, p: moe_token_permute(t[0], i)),
        (TypeError, "tokens", lambda t, i, p: moe_token_permute([1.0], i)),
        (TypeError, "indices", lambda t, i, p: moe_token_permute(t, p)),
        (ValueError, "indices", lambda t, i, p: moe_token_permute(t, i[:3])),
        (ValueError, "probs", lambda t, i, p: moe_token_permute(t, i, p[:, :2])),
        (ValueError, "capacity", lambda t, i, p: moe_token_permute(t, i, capacity=-1)),
        (TypeError, "capacity", lambda t, i, p: moe_token_permute(t, i, capacity=2.0)),
        (ValueError, "capacity", lambda t, i, p: moe_token_permute(t, i, capacity=2**62)),
        (ValueError, "indices", lambda t, i, p: moe_token_permute(t, i[:, :0])),
        (ValueError, "num_experts", lambda t, i, p: moe_token_permute(t, i, num_experts=-5)),
        (ValueError, "num_experts", lambda t, i, p: moe_token_permute(t, i, num_experts=2**70)),
        (TypeError, "num_experts", lambda t, i, p: moe_token_permute(t, i, num_experts="4")),
        (ValueError, "probs", lambda t, i, p: moe_token_unpermute(t, SORTED, p[:, :0])),
        (TypeError, "restore_shape", lambda t, i, p: moe_token_unpermute(t, i[0], restore_shape=5)),
        (
            TypeError,
            "restore_shape",
            lambda t, i, p: moe_token_unpermute(t, SORTED, p, restore_shape=()),
        ),
        (
            ValueError,
            "capacity",
            lambda t, i, p: moe_token_permute(t, i, ep_range=(0, 9), capacity=8),
        ),
        (ValueError, "ep_range", lambda t, i, p: moe_token_permute(t, i, ep_range=(0, 16))),
        (ValueError, "ep_range", lambda t, i, p: moe_token_permute(t, i, ep_range=(0, 1, 2))),
        (TypeError, "ep_range", lambda t, i, p: moe_token_permute(t, i, ep_range=(0.0, 1.0))),
        (ValueError, "sorted_indices", lambda t, i, p: moe_token_unpermute(t, i)),
        (ValueError, "probs", lambda t, i, p: moe_token_unpermute(t, SORTED, p[:, :2])),
        (
            ValueError,
            "restore_shape",
            lambda t, i, p: moe_token_unpermute(t, SORTED, restore_shape=(4, H)),
        ),
        (
            ValueError,
            "restore_shape",
            lambda t, i, p: moe_token_unpermute(t, SORTED, p, restore_shape=(T, 9)),
        ),
    ],
)
def test_rejected_while_tracing(error, name, call):
    with pytest.raises(error, match=rf"^{name}: "):
        jax.jit(call)(values(T, H), INDICES, values(T, K))
