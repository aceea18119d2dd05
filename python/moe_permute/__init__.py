"""Token permutation for mixture-of-experts models, with gradients.

The functions here take arrays and give arrays: of NumPy, PyTorch, JAX, or anything else that
speaks DLPack or the buffer protocol. They record no gradient; `moe_permute.torch` and
`moe_permute.jax` do.
"""

from moe_permute.core import permute, permute_grad, unpermute, unpermute_grad
from moe_permute.ranges import ep_range_of_rank, expert_range, sort_indices
from moe_permute.settings import config, num_threads, set_num_threads, show_config

__version__: str = config()["version"]

__all__ = [
    "__version__",
    "config",
    "ep_range_of_rank",
    "expert_range",
    "num_threads",
    "permute",
    "permute_grad",
    "set_num_threads",
    "show_config",
    "sort_indices",
    "unpermute",
    "unpermute_grad",
]
