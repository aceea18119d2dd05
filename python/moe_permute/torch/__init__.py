"""Token permutation for PyTorch: differentiable, and whole under `torch.compile`.

`moe_token_permute` brings the tokens to their experts, `moe_token_unpermute` brings the experts'
rows back. Both take an expert-parallel window. `MoE` is a small layer that uses them.

In shapes, T is the number of tokens, K the experts of each, H the length of a token, L = T*K the
number of slots, and R the rows of the window.
"""

from ._functions import moe_token_permute, moe_token_unpermute
from ._layer import MoE

__all__ = ["MoE", "moe_token_permute", "moe_token_unpermute"]
