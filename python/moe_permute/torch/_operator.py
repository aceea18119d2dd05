"""Custom operators in the namespace moe_permute, and the roads that lead to them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_library = torch.library.Library("moe_permute", "DEF")
# What torch.library's own autograd uses to call the kernel beneath; without it calls are slower.
_below_autograd = getattr(torch._C, "_AutoDispatchBelowAutograd", contextlib.nullcontext)
_in_transform = getattr(torch._C, "_are_functorch_transforms_active", lambda: False)


class Operator:
    """A custom operator with everything that is registered for it.

    Compilers see the operator and its registered autograd alone. In eager mode an autograd.Function
    around the operator does the same in less than half the time, and another one serves torch.func,
    which cannot see through registered autograd.
    """

    def __init__(
        self,
        schema: str,
        kernel: Callable[..., Any],
        fake: Callable[..., Any],
        save: Callable[..., None],
        backward: Callable[..., Any],
    ) -> None:
        name = schema[: schema.index("(")]
        qualified = f"moe_permute::{name}"
        _library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
        _library.impl(name, kernel, "CPU")
        torch.library.register_fake(qualified, fake, lib=_library)
        torch.library.register_autograd(qualified, backward, setup_context=save, lib=_library)
        self.overload = getattr(torch.ops.moe_permute, name).default
        self._eager = _eager_function(self.overload, save, backward)
        self._transformed = _transformed_function(self, save, backward)

    def __call__(self, *args: Any) -> Any:
        if torch.compiler.is_compiling():
            return self.overload(*args)
        if _in_transform():
            return self._transformed.apply(*args)
        if torch.is_grad_enabled() and any(isinstance(a, Tensor) and a.requires_grad for a in args):
            return self._eager.apply(*args)
        with _below_autograd():
            return self.overload(*args)


def _eager_function(overload: Any, save: Any, backward: Any) -> type[torch.autograd.Function]:
    def forward(ctx: Any, *args: Any) -> Any:
        with _below_autograd():
            output = overload(*args)
        save(ctx, args, output)
        return output

    return _function(overload, forward=forward, backward=backward)


def _transformed_function(
    operator: Operator, save: Any, backward: Any
) -> type[torch.autograd.Function]:
    def vmap(*_: Any) -> None:
        raise NotImplementedError(
            f"{operator.overload.name()}: torch.vmap, but needs the batch folded into the tokens"
        )

    return _function(
        operator.overload,
        forward=lambda *args: operator(*args),
        setup_context=save,
        backward=backward,
        vmap=vmap,
    )


def _function(overload: Any, **members: Any) -> type[torch.autograd.Function]:
    methods = {name: staticmethod(member) for name, member in members.items()}
    return type(f"Function of {overload.name()}", (torch.autograd.Function,), methods)
