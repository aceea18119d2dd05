"""XLA's custom calls and their gradients. Shapes have been checked; windows have not.

Each gradient is made of the others: gradients of any order exist.
"""

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


# --- permute --------------------------------------------------------------------------------------


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
    rows_grad, _, row_probs_grad = grads
    static = static[0], rows_grad.shape[0]
    tokens_grad, probs_grad = permute_grad(static, rows_grad, kept[0], row_probs_grad, kept[1])
    return tokens_grad, None, probs_grad, None


permute.defvjp(_permute_forward, _permute_backward)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def permute_grad(
    static: tuple[int, int],
    rows_grad: jax.Array,
    sorted_indices: jax.Array,
    row_probs_grad: Probs,
    window: Window,
) -> tuple[jax.Array, Probs]:
    """Go back through permute. `static` is top_k and the rows that there are."""
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
    return tokens_grad, probs_grad[0] if probs_grad else None


def _permute_grad_forward(static: Any, *arguments: Any) -> tuple[Any, Any]:
    return permute_grad(static, *arguments), (arguments[1], arguments[3])


def _permute_grad_backward(static: Any, kept: Any, grads: Any) -> tuple[Any, ...]:
    """Bring the gradients to the rows again, each slot's as it is."""
    sorted_indices, window = kept
    tokens_gg, probs_gg = grads
    top_k, num_rows = static

    def to_rows(top_k: int, slots: jax.Array) -> jax.Array:
        return unpermute_grad((top_k, num_rows), slots, sorted_indices, None, None, window)[0]

    row_probs_gg = None if probs_gg is None else to_rows(1, probs_gg.reshape(-1, 1)).reshape(-1)
    return to_rows(top_k, tokens_gg), None, row_probs_gg, None


permute_grad.defvjp(_permute_grad_forward, _permute_grad_backward)


# --- unpermute ------------------------------------------------------------------------------------


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
    # The rows themselves are read for the gradient of probs only.
    read = None if probs is None else rows
    static = static[0], rows.shape[0]
    rows_grad, probs_grad = unpermute_grad(static, grad, sorted_indices, read, probs, window)
    return rows_grad, None, probs_grad, None


unpermute.defvjp(_unpermute_forward, _unpermute_backward)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def unpermute_grad(
    static: tuple[int, int],
    tokens_grad: jax.Array,
    sorted_indices: jax.Array,
    rows: jax.Array | None,
    probs: Probs,
    window: Window,
) -> tuple[jax.Array, Probs]:
    """Go back through unpermute; rows and probs are both there or both None."""
    top_k, num_rows = static
    tensors = [tokens_grad, sorted_indices]
    results = [_like(tokens_grad, (num_rows, tokens_grad.shape[1]))]
    if rows is not None and probs is not None:
        tensors += [rows, probs]
        results.append(_like(probs, probs.shape))
    rows_grad, *probs_grad = _call(
        "unpermute_grad", window, tensors, results, top_k=top_k, has_probs=probs is not None
    )
    return rows_grad, probs_grad[0] if probs_grad else None


def _unpermute_grad_forward(static: Any, *arguments: Any) -> tuple[Any, Any]:
    return unpermute_grad(static, *arguments), arguments


def _unpermute_grad_backward(static: Any, kept: Any, grads: Any) -> tuple[Any, ...]:
    """Use that the operator is linear in each of tokens_grad, rows and probs."""
    tokens_grad, sorted_indices, rows, probs, window = kept
    rows_gg, probs_gg = grads
    forth = static[0], tokens_grad.shape[0]
    tokens_ggg = unpermute(forth, rows_gg, sorted_indices, probs, window)
    if probs is None:
        return tokens_ggg, None, None, None, None
    tokens_ggg += unpermute(forth, rows, sorted_indices, probs_gg, window)
    rows_ggg, _ = unpermute_grad(static, tokens_grad, sorted_indices, rows, probs_gg, window)
    _, probs_ggg = unpermute_grad(static, tokens_grad, sorted_indices, rows_gg, probs, window)
    return tokens_ggg, None, rows_ggg, probs_ggg, None


unpermute_grad.defvjp(_unpermute_grad_forward, _unpermute_grad_backward)
