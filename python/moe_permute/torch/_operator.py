"""Custom operators in the namespace moe_permute, and the roads that lead to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from moe_permute import _native

_library = torch.library.Library("moe_permute", "DEF")

_is_compiling = torch.compiler.is_compiling
# How a call gets to its operator, as the native code has them.
DISPATCHER, TRANSFORM, AUTOGRAD, DIRECT = range(4)


def road_of(*args: Any) -> int:
    """Tell how a call with these arguments gets to its operator."""
    return DISPATCHER if _is_compiling() else _native.torch_road(*args)


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
        overload = getattr(torch.ops.moe_permute, name).default
        record = _recorder(overload, kernel, save, backward)
        transformed = _transformed(overload, self, save, backward)

        def by(road: int, *args: Any) -> Any:
            if road == AUTOGRAD:
                return record(*args)
            if road == DIRECT:
                return kernel(*args)
            return overload(*args) if road == DISPATCHER else transformed(*args)

        self.by = by

    def __call__(self, *args: Any) -> Any:
        return self.by(road_of(*args), *args)


def _recorder(overload: Any, kernel: Any, save: Any, backward: Any) -> Callable[..., Any]:
    def forward(ctx: Any, *args: Any) -> Any:
        output = kernel(*args)
        save(ctx, args, output)
        return output

    function = _function(overload, forward=forward, backward=backward)
    # The `apply` of autograd.Function itself looks for transforms first, which takes as long as all
    # of the recording, and which a plain call has none of.
    apply: Callable[..., Any] = super(torch.autograd.Function, function).apply  # type: ignore[misc]
    return apply


def _transformed(overload: Any, operator: Any, save: Any, backward: Any) -> Callable[..., Any]:
    def vmap(*_: Any) -> None:
        raise NotImplementedError(
            f"{overload.name()}: torch.vmap, but needs the batch folded into the tokens"
        )

    return _function(
        overload,
        forward=lambda *args: operator(*args),
        setup_context=save,
        backward=backward,
        vmap=vmap,
    ).apply


def _function(overload: Any, **members: Any) -> type[torch.autograd.Function]:
    methods = {name: staticmethod(member) for name, member in members.items()}
    return type(overload.name(), (torch.autograd.Function,), methods)
