from typing import Any, TypeVar

_ArrayT = TypeVar("_ArrayT")

def permute(
    tokens: Any,
    indices: Any,
    probs: Any,
    ep_range: Any,
    num_experts: Any,
    out: Any,
    check_indices: bool,
    allow_grad: bool,
    /,
) -> tuple[Any, Any, Any]: ...
def permute_grad(
    permuted_tokens_grad: Any,
    sorted_indices: Any,
    top_k: Any,
    permuted_probs_grad: Any,
    ep_range: Any,
    out: Any,
    check_indices: bool,
    allow_grad: bool,
    /,
) -> tuple[Any, Any]: ...
def unpermute(
    permuted_tokens: _ArrayT,
    sorted_indices: Any,
    probs: Any,
    top_k: Any,
    ep_range: Any,
    out: Any,
    check_indices: bool,
    allow_grad: bool,
    /,
) -> _ArrayT: ...
def unpermute_grad(
    tokens_grad: Any,
    sorted_indices: Any,
    permuted_tokens: Any,
    probs: Any,
    top_k: Any,
    ep_range: Any,
    out: Any,
    check_indices: bool,
    allow_grad: bool,
    /,
) -> tuple[Any, Any]: ...
def sort_indices(
    indices: Any, num_experts: Any, out: Any, check_indices: bool, /
) -> tuple[Any, Any]: ...
def expert_range(
    tokens_per_expert: Any, expert_begin: Any, expert_end: Any, /
) -> tuple[int, int]: ...
def ep_range_of_rank(tokens_per_expert: Any, rank: Any, num_ranks: Any, /) -> tuple[int, int]: ...
def set_num_threads(num_threads: Any, /) -> None: ...
def num_threads() -> int: ...
def torch_road(*args: Any) -> int: ...
def xla_handlers() -> dict[str, Any]: ...
def config() -> dict[str, Any]: ...
