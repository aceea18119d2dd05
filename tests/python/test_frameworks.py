"""Tensors of PyTorch and arrays of JAX through the functions for arrays."""

import moe_permute as mp
import numpy as np
import pytest
from test_arrays import INDICES, PROBS, TOKENS, WANTED, check


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture
def jnp():
    return pytest.importorskip("jax.numpy", reason="JAX is not installed")


def test_torch_in_torch_out(torch):
    results = mp.permute(*(torch.from_numpy(a) for a in (TOKENS, INDICES, PROBS)))
    assert all(type(result) is torch.Tensor for result in results)
    assert not any(result.requires_grad for result in results)
    check([result.numpy() for result in results])


def test_the_first_argument_decides(torch):
    assert type(mp.permute(TOKENS, torch.from_numpy(INDICES))[0]) is np.ndarray
    assert all(type(r) is torch.Tensor for r in mp.permute(torch.from_numpy(TOKENS), INDICES)[:2])


def test_torch_bfloat16_and_strides(torch):
    wide = torch.arange(48, dtype=torch.bfloat16).reshape(4, 12)
    tokens = wide[:, 1::4]
    rows, sorted_indices, _ = mp.permute(tokens, torch.from_numpy(INDICES))
    assert rows.dtype == torch.bfloat16
    back = mp.unpermute(rows, sorted_indices, torch.full((4, 2), 0.5))
    assert torch.equal(back, tokens)


def test_torch_outputs_in_place(torch):
    out = tuple(torch.zeros(want.shape, dtype=torch.from_numpy(want).dtype) for want in WANTED)
    results = mp.permute(TOKENS, INDICES, PROBS, out=out)
    assert all(result is tensor for result, tensor in zip(results, out, strict=True))
    check([tensor.numpy() for tensor in out])


def test_torch_outputs_that_autograd_saved(torch):
    """Their gradient would be that of other values: autograd has to know."""
    rows, sorted_indices = torch.ones(8, 3), torch.zeros(8, dtype=torch.int32)
    loss = (rows * torch.ones(3, requires_grad=True)).sum()
    with pytest.raises(ValueError):
        mp.permute(TOKENS, INDICES, ep_range=(0, 99), out=(rows, sorted_indices, None))
    assert rows._version == 0
    mp.permute(TOKENS, INDICES, out=(rows, sorted_indices, None))
    assert (rows._version, sorted_indices._version) == (1, 1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_torch_tensor_as_window(torch):
    rows = mp.permute(TOKENS, INDICES, ep_range=torch.tensor([1, 6]))[0]
    np.testing.assert_array_equal(rows, WANTED[0][1:6])


@pytest.mark.parametrize("name", ["tokens", "probs"])
def test_torch_gradients_are_refused(torch, name):
    arrays = {"tokens": torch.from_numpy(TOKENS), "probs": torch.from_numpy(PROBS)}
    arrays[name] = arrays[name].clone().requires_grad_()
    with pytest.raises(ValueError, match=rf"^{name}: requires a gradient.*moe_permute\.torch"):
        mp.permute(arrays["tokens"], INDICES, arrays["probs"])
    out = torch.zeros(8, 3, requires_grad=True)
    with pytest.raises(ValueError, match=r"^out\[0\].*requires a gradient"):
        mp.permute(TOKENS, INDICES, out=(out, None, None))


def test_torch_tensors_without_plain_memory_are_refused(torch):
    tokens = torch.from_numpy(TOKENS)
    with pytest.raises(ValueError, match=r"^tokens: .*meta.*CPU"):
        mp.permute(tokens.to("meta"), INDICES)
    with pytest.raises(ValueError, match=r"^tokens: .*sparse"):
        mp.permute(tokens.to_sparse(), INDICES)
    negated = torch.view_as_complex(torch.ones(4, 3, 2)).conj().imag
    assert negated.is_neg()
    with pytest.raises(ValueError, match=r"^tokens: .*resolve_neg"):
        mp.permute(negated, INDICES)
    emptied = torch.ones(4, 3)
    emptied.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match=r"^tokens: "):
        mp.permute(emptied, INDICES)
    with pytest.raises(TypeError, match=r"^tokens: .*complex64"):
        mp.permute(tokens.to(torch.complex64), INDICES)


def test_torch_fake_and_transformed_tensors_are_refused(torch):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.ones(4, 3)
    with pytest.raises(ValueError, match=r"^tokens: "):
        mp.permute(fake, INDICES)
    with pytest.raises(ValueError, match=r"^tokens_per_expert: "):
        mp.expert_range(fake.int()[0], 0, 3)

    def inside(tokens):
        with pytest.raises(ValueError, match=r"^tokens: "):
            mp.permute(tokens, INDICES)
        return tokens.sum()

    torch.func.grad(inside)(torch.ones(4, 3))
    torch.func.vmap(inside)(torch.ones(2, 4, 3))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_jax_in_jax_out(jnp, dtype):
    import jax

    tokens = jnp.asarray(TOKENS, dtype)
    results = mp.permute(tokens, jnp.asarray(INDICES), jnp.asarray(PROBS))
    assert all(isinstance(result, jax.Array) for result in results)
    assert results[0].dtype == tokens.dtype
    np.testing.assert_array_equal(np.asarray(results[0], np.float32), WANTED[0])
    np.testing.assert_array_equal(results[1], WANTED[1])


def test_jax_arrays_never_change(jnp):
    out = jnp.zeros((8, 3), jnp.float32)
    with pytest.raises(ValueError, match=r"^out\[0\].*read-only"):
        mp.permute(TOKENS, INDICES, out=(out, None, None))
    np.testing.assert_array_equal(out, 0)


def test_jax_tracers_are_refused(jnp):
    import jax

    with pytest.raises(TypeError, match=r"__dlpack__\(\) method was called on traced array"):
        jax.jit(lambda tokens: mp.permute(tokens, INDICES)[0])(jnp.asarray(TOKENS))
