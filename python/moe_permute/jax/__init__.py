"""Token permutation for JAX on the CPU: differentiable, under jit, with windows that may change.

`moe_token_permute` brings tokens to their experts, `moe_token_unpermute` brings rows back. Shapes
under jit are fixed, so the rows of a window live in `capacity` rows, which is static; begin and end
are ordinary values, and another window compiles nothing.

In shapes, T is the number of tokens, K the experts of each, H the length of a token, L = T * K the
number of slots. What is wrong with shapes and dtypes is a ValueError or TypeError while tracing; a
window that has no place in its rows is known only when it runs: then XLA's error of kind
INVALID_ARGUMENT names `ep_range` or `permuted_tokens`. Under vmap the calls run one after another.
"""

from ._functions import moe_token_permute, moe_token_unpermute

__all__ = ["moe_token_permute", "moe_token_unpermute"]
