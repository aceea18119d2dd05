"""Experts spread over the ranks of a process group, forward and backward.

Every rank has tokens of its own, as many as it likes; all together are the concatenation of the
ranks' tokens in rank order. Rank r of n owns the experts from r*E//n up to (r+1)*E//n.
`ExpertParallelMoE` is a layer; `ExpertExchange` is what it is made of, for layers of your own.

What one rank of a group does, all must do, in the same order; what is wrong with one rank's tensors
is an error on all.
Give the exchange a group that nothing else uses (`torch.distributed.new_group`) where other
collectives run at the same time, DistributedDataParallel's for instance.
"""

from ._checkpoint import load_checkpoint, save_checkpoint
from ._exchange import ExpertExchange, ExpertRows, RoutedTokens
from ._layer import ExpertParallelMoE
from ._wire import Bytes, Traffic

__all__ = [
    "Bytes",
    "ExpertExchange",
    "ExpertParallelMoE",
    "ExpertRows",
    "RoutedTokens",
    "Traffic",
    "load_checkpoint",
    "save_checkpoint",
]
