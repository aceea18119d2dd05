"""Arguments, as far as they can be checked while tracing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

FLOATS = ("float32", "float16", "bfloat16", "float64")
INTS = ("int32", "int64")


def check(name: str, array: Any, dtypes: Sequence[str], dims: Sequence[int]) -> None:
    """Refuse what is no array of one of the dtypes and numbers of dimensions."""
    if not hasattr(array, "dtype") or not hasattr(array, "ndim"):
        raise TypeError(f"{name}: a {type(array).__name__}, but needs an array")
    if str(array.dtype) not in dtypes:
        raise TypeError(f"{name}: dtype {array.dtype}, but needs one of {', '.join(dtypes)}")
    if array.ndim not in dims:
        wanted = " or ".join(map(str, dims))
        raise ValueError(f"{name}: {array.ndim} dimensions, but needs {wanted}")


def check_float64(name: str, array: jax.Array, tokens: jax.Array) -> None:
    """Refuse float64 beside anything else."""
    if (array.dtype == jnp.float64) != (tokens.dtype == jnp.float64):
        raise ValueError(
            f"{name}: dtype {array.dtype} beside {tokens.dtype}, but float64 goes with float64 only"
        )


def check_num_experts(num_experts: Any) -> None:
    """Refuse what is no static int that the operator takes."""
    if num_experts is None:
        return
    if isinstance(num_experts, bool) or not isinstance(num_experts, int):
        raise TypeError(f"num_experts: a {type(num_experts).__name__}, but needs a static int")
    if not 0 <= num_experts <= 2**31:
        raise ValueError(f"num_experts: {num_experts}, but needs 0 to 2^31")


def check_top_k(name: str, array: jax.Array) -> None:
    """Refuse tokens without experts."""
    if array.ndim == 2 and array.shape[1] == 0:
        raise ValueError(f"{name}: shape {array.shape}, but needs at least one expert per token")


def check_restore_shape(restore_shape: Sequence[int], wanted: tuple[int, int]) -> None:
    """Refuse another shape than that of the tokens."""
    if tuple(restore_shape) != wanted:
        raise ValueError(f"restore_shape: {tuple(restore_shape)}, but needs {wanted}")


def num_tokens_of(num_slots: int, probs: Any, restore_shape: Sequence[int] | None) -> int:
    """Give T: of probs, else of restore_shape, else a token for each slot."""
    if restore_shape is not None and (
        not isinstance(restore_shape, tuple | list) or len(restore_shape) != 2
    ):
        raise TypeError(f"restore_shape: {restore_shape!r}, but needs (num_tokens, hidden_size)")
    if probs is not None:
        return int(probs.shape[0])
    if restore_shape is None:
        return num_slots
    num_tokens = int(restore_shape[0])
    if num_tokens < 0 or (num_slots % num_tokens if num_tokens else num_slots):
        raise ValueError(
            f"restore_shape: {num_tokens} tokens, but needs a divisor of the {num_slots} slots of "
            "sorted_indices"
        )
    return num_tokens


def top_k_of(num_slots: int, num_tokens: int, probs: Any) -> int:
    """Give K."""
    if probs is not None:
        return int(probs.shape[1])
    return num_slots // num_tokens if num_tokens else 1


def is_static(ep_range: Any) -> bool:
    """Tell whether the window is known while tracing."""
    return isinstance(ep_range, tuple | list) and all(isinstance(i, int) for i in ep_range)


def rows_of(capacity: int | None, ep_range: Any, num_slots: int) -> int:
    """Give the rows to make, which a window that is known must fit."""
    rows = num_slots
    if is_static(ep_range) and len(ep_range) == 2:
        begin, end = ep_range
        if not 0 <= begin <= end <= num_slots:
            raise ValueError(
                f"ep_range: [{begin}, {end}), but needs 0 <= begin <= end <= {num_slots}"
            )
        rows = end - begin
        if capacity is not None and capacity < rows:
            raise ValueError(
                f"capacity: {capacity} rows, but the range [{begin}, {end}) needs at least {rows}"
            )
    if capacity is None:
        return rows
    if isinstance(capacity, bool) or not isinstance(capacity, int):
        raise TypeError(f"capacity: a {type(capacity).__name__}, but needs a static int")
    if capacity < 0:
        raise ValueError(f"capacity: {capacity}, but needs 0 or more")
    return capacity


def check_rows(num_rows: int, tokens: jax.Array) -> None:
    """Refuse rows whose bytes no int of 64 bits counts: XLA ends the process over them."""
    row_bytes = max(tokens.shape[1], 1) * tokens.dtype.itemsize
    if num_rows * row_bytes >= 2**63:
        raise ValueError(
            f"capacity: {num_rows} rows of {row_bytes} bytes, but needs fewer than 2^63 bytes"
        )


def window_of(ep_range: Any) -> jax.Array | None:
    """Give begin and end as one array, which is an argument like any other."""
    if ep_range is None:
        return None
    if not isinstance(ep_range, tuple | list):
        check("ep_range", ep_range, INTS, (1,))
        if ep_range.shape != (2,):
            raise ValueError(f"ep_range: {ep_range.shape[0]} values, but needs begin and end")
        return jnp.asarray(ep_range)
    if len(ep_range) != 2:
        raise ValueError(f"ep_range: {len(ep_range)} values, but needs begin and end")
    ends = [jnp.asarray(value) for value in ep_range]
    for value in ends:
        check("ep_range", value, INTS, (0,))
    return jnp.stack(ends)
