"""Custom operators in the namespace moe_permute, and the roads that lead to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

_library = torch.library.Library("moe_permute", "DEF")

# Where PyTorch has these no more, calls take the road that is always right.
_num_modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 1)
_tracing_state = getattr(torch._C, "_get_tracing_state", lambda: True)
_is_profiled = getattr(torch.autograd, "_profiler_enabled", lambda: True)
_NO_TENSORS = (type(None), int, tuple)
_in_transform = getattr(torch._C, "_are_functorch_transforms_active", lambda: False)


class Operator:
    """A custom operator with everything that is registered for it.

    Compilers, modes, the profiler and tensor subclasses see the operator and its registered
    autograd. Ordinary eager calls have none of these, and go around the dispatcher: a plain
    autograd.Function does the same in a third of the time. Another one serves torch.func, to which
    registered autograd is opaque.
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
        self._kernel = kernel
        self._eager = _eager_function(self.overload, kernel, save, backward)
        self._transformed = _transformed_function(self, save, backward)

    def __call__(self, *args: Any) -> Any:
        if torch.compiler.is_compiling():
            return self.overload(*args)
        if _in_transform():
            return self._transformed.apply(*args)
        if _num_modes() != 0 or _is_profiled() or _tracing_state() is not None:
            return self.overload(*args)
        needs_grad = False
        for arg in args:
            kind = type(arg)
            if kind is Tensor or kind is Parameter:
                if not arg.is_cpu:
                    return self.overload(*args)
                needs_grad = needs_grad or arg.requires_grad
            elif kind not in _NO_TENSORS and isinstance(arg, Tensor):
                return self.overload(*args)
        if needs_grad and torch.is_grad_enabled():
            return self._eager.apply(*args)
        return self._kernel(*args)


def _eager_function(
    overload: Any, kernel: Any, save: Any, backward: Any
) -> type[torch.autograd.Function]:
    def forward(ctx: Any, *args: Any) -> Any:
        output = kernel(*args)
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
    return type(overload.name(), (torch.autograd.Function,), methods)
