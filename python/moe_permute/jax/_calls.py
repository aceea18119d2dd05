"""XLA's custom calls and their gradients. Shapes have been checked; windows have not."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

from moe_permute import _native

Window = jax.Array | None
Probs = jax.Array | None


def _register() -> None:
    handlers = _native.xla_handlers()
    if not handlers:
        raise ImportError(
            "moe_permute was built without jaxlib's headers, but moe_permute.jax needs them: with "
            "jaxlib, nanobind, numpy and scikit-build-core installed, install moe_permute again by "
            "pip install --no-build-isolation"
        )
    for name, handler in handlers.items():
        try:
            jax.ffi.register_ffi_target(f"moe_permute_{name}", handler, platform="cpu")
        except Exception as error:
            raise ImportError(
                "moe_permute was built with headers of another jaxlib, which this one "
                f"({jax.__version__}) does not accept: install moe_permute again beside it by "
                "pip install --no-build-isolation"
            ) from error


_register()


def _like(array: jax.Array, shape: tuple[int, ...]) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, array.dtype)


def _call(
    name: str,
    window: Window,
    tensors: Sequence[jax.Array],
    results: Sequence[jax.ShapeDtypeStruct],
    *,
    top_k: int,
    has_probs: bool,
    num_experts: int = -1,
) -> list[jax.Array]:
    call = jax.ffi.ffi_call(f"moe_permute_{name}", list(results), vmap_method="sequential")
    arrays = tensors if window is None else (window, *tensors)
    return list(
        call(
            *arrays,
            top_k=np.int64(top_k),
            has_window=window is not None,
            has_probs=has_probs,
            num_experts=np.int64(num_experts),
        )
    )


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def permute(
    static: tuple[int, int, int],
    tokens: jax.Array,
    indices: jax.Array,
    probs: Probs,
    window: Window,
) -> tuple[jax.Array, jax.Array, Probs]:
    """Permute. `static` is top_k, the rows to make, and num_experts or -1."""
    top_k, num_rows, num_experts = static
    ranks = np.dtype(np.int32 if indices.size < 2**31 else np.int64)
    results = [
        _like(tokens, (num_rows, tokens.shape[1])),
        jax.ShapeDtypeStruct((indices.size,), ranks),
    ]
    tensors = [tokens, indices]
    if probs is not None:
        results.append(_like(probs, (num_rows,)))
        tensors.append(probs)
    rows, sorted_indices, *row_probs = _call(
        "permute",
        window,
        tensors,
        results,
        top_k=top_k,
        has_probs=probs is not None,
        num_experts=num_experts,
    )
    return rows, sorted_indices, row_probs[0] if row_probs else None


def _permute_forward(static: Any, *arguments: Any) -> tuple[Any, Any]:
    results = permute(static, *arguments)
    return results, (results[1], arguments[3])


def _permute_backward(static: Any, kept: Any, grads: Any) -> tuple[Any, ...]:
    sorted_indices, window = kept
    rows_grad, _, row_probs_grad = grads
    top_k = static[0]
    num_tokens = sorted_indices.shape[0] // top_k if top_k else 0
    results = [_like(rows_grad, (num_tokens, rows_grad.shape[1]))]
    tensors = [rows_grad, sorted_indices]
    if row_probs_grad is not None:
        results.append(_like(row_probs_grad, (num_tokens, top_k)))
        tensors.append(row_probs_grad)
    tokens_grad, *probs_grad = _call(
        "permute_grad",
        window,
        tensors,
        results,
        top_k=top_k,
        has_probs=row_probs_grad is not None,
    )
    return tokens_grad, None, probs_grad[0] if probs_grad else None, None


permute.defvjp(_permute_forward, _permute_backward)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def unpermute(
    static: tuple[int, int],
    rows: jax.Array,
    sorted_indices: jax.Array,
    probs: Probs,
    window: Window,
) -> jax.Array:
    """Unpermute. `static` is top_k and the number of tokens."""
    top_k, num_tokens = static
    tensors = [rows, sorted_indices] if probs is None else [rows, sorted_indices, probs]
    results = [_like(rows, (num_tokens, rows.shape[1]))]
    return _call("unpermute", window, tensors, results, top_k=top_k, has_probs=probs is not None)[0]


def _unpermute_forward(static: Any, *arguments: Any) -> tuple[Any, Any]:
    return unpermute(static, *arguments), arguments


def _unpermute_backward(static: Any, kept: Any, grad: jax.Array) -> tuple[Any, ...]:
    rows, sorted_indices, probs, window = kept
    tensors, results = [grad, sorted_indices], [_like(rows, rows.shape)]
    if probs is not None:
        # The rows themselves are read for the gradient of probs only.
        tensors += [rows, probs]
        results.append(_like(probs, probs.shape))
    rows_grad, *probs_grad = _call(
        "unpermute_grad", window, tensors, results, top_k=static[0], has_probs=probs is not None
    )
    return rows_grad, None, probs_grad[0] if probs_grad else None, None


unpermute.defvjp(_unpermute_forward, _unpermute_backward)
