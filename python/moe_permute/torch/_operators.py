"""The four operators. Each one's gradient is made of the others: gradients of any order exist."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from moe_permute import _native

from . import _fakes
from ._arguments import Window
from ._operator import Operator

Tensors = _fakes.Tensors


def _mark_constant(ctx: Any, *outputs: tuple[Tensor | None, bool]) -> None:
    """Mark outputs whose own inputs need no gradient: what is made of them builds no graph."""
    constant = [tensor for tensor, needs_grad in outputs if tensor is not None and not needs_grad]
    if constant:
        ctx.mark_non_differentiable(*constant)


# --- permute --------------------------------------------------------------------------------------


def _permute_kernel(
    tokens: Tensor, indices: Tensor, probs: Tensor | None, ep_range: Window
) -> tuple[Tensor, Tensor, Tensor | None]:
    if indices.dim() == 1:
        _fakes.permute(tokens, indices, probs, ep_range)  # refuses it, in the right words
    return _native.permute(tokens, indices, probs, ep_range, None, None, False, True)


def _permute_save(ctx: Any, inputs: Any, output: Any) -> None:
    _, indices, _, ep_range = inputs
    # Zeros for an output that nobody used, as its input took part all the same; but no zeros for
    # sorted_indices, which has no gradient. Where PyTorch does not know this name: zeros too.
    ctx._materialize_non_diff_grads = False
    ctx.save_for_backward(output[1])
    ctx.call = indices.shape[1], ep_range
    needs_tokens, _, needs_probs = ctx.needs_input_grad[:3]
    if not needs_tokens or not needs_probs:
        _mark_constant(ctx, (output[0], needs_tokens), (output[2], needs_probs))


def _permute_backward(
    ctx: Any, rows_grad: Tensor, _: Tensor | None, row_probs_grad: Tensor | None
) -> Any:
    (sorted_indices,) = ctx.saved_tensors
    needs_tokens, _, needs_probs = ctx.needs_input_grad[:3]
    if not needs_tokens and row_probs_grad is not None:
        # The operator wants rows also where nobody wants their gradient: some without elements.
        rows_grad = row_probs_grad.new_empty((len(row_probs_grad), 0))
    if not needs_probs:
        row_probs_grad = None
    tokens_grad, probs_grad = permute_grad(rows_grad, sorted_indices, row_probs_grad, *ctx.call)
    return tokens_grad if needs_tokens else None, None, probs_grad, None


permute = Operator(
    "permute(Tensor tokens, Tensor indices, Tensor? probs, SymInt[]? ep_range)"
    " -> (Tensor, Tensor, Tensor)",
    _permute_kernel,
    _fakes.permute,
    _permute_save,
    _permute_backward,
)


# --- permute_grad ---------------------------------------------------------------------------------


def _permute_grad_kernel(
    rows_grad: Tensor,
    sorted_indices: Tensor,
    probs_grad: Tensor | None,
    top_k: int,
    ep_range: Window,
) -> Tensors:
    return _native.permute_grad(
        rows_grad, sorted_indices, top_k, probs_grad, ep_range, None, False, True
    )


def _permute_grad_save(ctx: Any, inputs: Any, output: Any) -> None:
    rows_grad, sorted_indices, probs_grad, ctx.top_k, ctx.ep_range = inputs
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(sorted_indices)
    ctx.num_rows = rows_grad.shape[0]
    ctx.num_probs = None if probs_grad is None else probs_grad.shape[0]
    needs_rows, _, needs_probs = ctx.needs_input_grad[:3]
    _mark_constant(ctx, (output[0], needs_rows), (output[1], needs_probs))


def _permute_grad_backward(ctx: Any, tokens_gg: Tensor | None, probs_gg: Tensor | None) -> Any:
    (sorted_indices,) = ctx.saved_tensors
    num_slots = sorted_indices.shape[0]
    window = ctx.ep_range or (0, torch.sym_min(ctx.num_rows, num_slots))
    rows_gg = row_probs_gg = None
    if tokens_gg is not None and ctx.needs_input_grad[0]:
        rows_gg, _ = unpermute_grad(
            tokens_gg, sorted_indices, None, None, ctx.top_k, window, ctx.num_rows
        )
    if probs_gg is not None and ctx.needs_input_grad[2]:
        column, _ = unpermute_grad(
            probs_gg.reshape(num_slots, 1), sorted_indices, None, None, 1, window, ctx.num_probs
        )
        row_probs_gg = column.squeeze(1)
    return rows_gg, None, row_probs_gg, None, None


permute_grad = Operator(
    "permute_grad(Tensor permuted_tokens_grad, Tensor sorted_indices, Tensor? permuted_probs_grad,"
    " SymInt top_k, SymInt[]? ep_range) -> (Tensor, Tensor)",
    _permute_grad_kernel,
    _fakes.permute_grad,
    _permute_grad_save,
    _permute_grad_backward,
)


# --- unpermute ------------------------------------------------------------------------------------


def _unpermute_kernel(
    rows: Tensor, sorted_indices: Tensor, probs: Tensor | None, top_k: int, ep_range: Window
) -> Tensor:
    return _native.unpermute(rows, sorted_indices, probs, top_k, ep_range, None, False, True)


def _unpermute_save(ctx: Any, inputs: Any, output: Any) -> None:
    rows, sorted_indices, probs, top_k, ep_range = inputs
    ctx.call = top_k, ep_range, rows.shape[0]
    ctx.save_for_backward(sorted_indices, rows if ctx.needs_input_grad[2] else None, probs)


def _unpermute_backward(ctx: Any, tokens_grad: Tensor) -> Any:
    sorted_indices, rows, probs = ctx.saved_tensors
    rows_grad, probs_grad = unpermute_grad(tokens_grad, sorted_indices, rows, probs, *ctx.call)
    return rows_grad if ctx.needs_input_grad[0] else None, None, probs_grad, None, None


unpermute = Operator(
    "unpermute(Tensor permuted_tokens, Tensor sorted_indices, Tensor? probs, SymInt top_k,"
    " SymInt[]? ep_range) -> Tensor",
    _unpermute_kernel,
    _fakes.unpermute,
    _unpermute_save,
    _unpermute_backward,
)


# --- unpermute_grad -------------------------------------------------------------------------------


def _unpermute_grad_kernel(
    tokens_grad: Tensor,
    sorted_indices: Tensor,
    rows: Tensor | None,
    probs: Tensor | None,
    top_k: int,
    ep_range: Window,
    num_rows: int,
) -> Tensors:
    # As many as the window has, unless the caller has spare ones.
    window = ep_range or (0, min(num_rows, sorted_indices.shape[0]))
    out = None
    if rows is None and num_rows != window[1] - window[0]:
        if num_rows < 0:
            raise ValueError(f"num_rows: {num_rows}, but needs 0 or more")
        out = (tokens_grad.new_empty((num_rows, *tokens_grad.shape[1:])), None)
    return _native.unpermute_grad(
        tokens_grad, sorted_indices, rows, probs, top_k, window, out, False, True
    )


def _unpermute_grad_save(ctx: Any, inputs: Any, output: Any) -> None:
    tokens_grad, sorted_indices, rows, probs, ctx.top_k, ctx.ep_range, ctx.num_rows = inputs
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(tokens_grad, sorted_indices, rows, probs)
    needs_tokens, _, needs_rows, needs_probs = ctx.needs_input_grad[:4]
    _mark_constant(
        ctx, (output[0], needs_tokens or needs_probs), (output[1], needs_tokens or needs_rows)
    )


def _unpermute_grad_backward(ctx: Any, rows_gg: Tensor | None, probs_gg: Tensor | None) -> Any:
    """Use that the operator is linear in each of tokens_grad, rows and probs."""
    tokens_grad, sorted_indices, rows, probs = ctx.saved_tensors
    needs_tokens, _, needs_rows, needs_probs = ctx.needs_input_grad[:4]
    shape = ctx.top_k, ctx.ep_range
    tokens_ggg = rows_ggg = probs_ggg = None
    if needs_tokens and rows_gg is not None:
        tokens_ggg = unpermute(rows_gg, sorted_indices, probs, *shape)
    if needs_tokens and probs_gg is not None:
        part = unpermute(rows, sorted_indices, probs_gg, *shape)
        tokens_ggg = part if tokens_ggg is None else tokens_ggg + part
    if needs_rows and probs_gg is not None:
        rows_ggg, _ = unpermute_grad(
            tokens_grad, sorted_indices, None, probs_gg, *shape, ctx.num_rows
        )
    if needs_probs and rows_gg is not None:
        _, probs_ggg = unpermute_grad(
            tokens_grad, sorted_indices, rows_gg, probs, *shape, ctx.num_rows
        )
    return tokens_ggg, None, rows_ggg, probs_ggg, None, None, None


unpermute_grad = Operator(
    "unpermute_grad(Tensor tokens_grad, Tensor sorted_indices, Tensor? permuted_tokens,"
    " Tensor? probs, SymInt top_k, SymInt[]? ep_range, SymInt num_rows) -> (Tensor, Tensor)",
    _unpermute_grad_kernel,
    _fakes.unpermute_grad,
    _unpermute_grad_save,
    _unpermute_grad_backward,
)
