"""What ranks do in test_torch_ep_training.py: functions that each rank imports."""

from __future__ import annotations

import errno
import functools
import sys

import torch
import torch.distributed as dist
from moe_permute.torch import MoE
from moe_permute.torch.ep import ExpertParallelMoE, load_checkpoint, save_checkpoint
from ranks import examples_folder
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

H, F, E, K = 6, 10, 5, 2


def expert_parameters(module):
    layers = [part for part in module.modules() if isinstance(part, ExpertParallelMoE)]
    return {parameter for layer in layers for parameter in (layer.up, layer.down)}


def average_dense_gradients(model, num_ranks):
    """What DistributedDataParallel does."""
    experts = expert_parameters(model)
    for parameter in model.parameters():
        if parameter not in experts:
            dist.all_reduce(parameter.grad)
            parameter.grad /= num_ranks


class LanguageModel:
    """examples/char_moe's, with the experts on one rank or on many."""

    def __init__(self, layer):
        sys.path.insert(0, examples_folder("char_moe"))
        from model import CharModel, Sizes
        from train import TEXT, Text

        sizes = Sizes(hidden_size=32, expert_size=16, num_experts=8, top_k=2, context=32)
        self.context = sizes.context
        self.text = Text(TEXT.read_text(encoding="utf-8"))
        self.model = CharModel(len(self.text.characters), sizes, layer)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.3)

    def backward(self, chars, following, routing=None):
        """The loss, and the experts that the model chose where it was not told."""
        self.optimizer.zero_grad()
        logits, routing = self.model(chars, routing)
        loss = functional.cross_entropy(logits.flatten(0, 1), following.flatten())
        loss.backward()
        return loss.item(), routing


def train_language_model(rank, num_ranks, form, steps):
    """Losses on all ranks, and on rank 0 those of one rank with the same seed, text and routing."""
    spread = functools.partial(
        ExpertParallelMoE, form=form, num_chunks=2, expert_gradient_scale=1 / num_ranks
    )
    many = LanguageModel(spread)
    one = LanguageModel(MoE) if rank == 0 else None
    batch = 8
    mine = slice(rank * batch // num_ranks, (rank + 1) * batch // num_ranks)
    tokens = slice(mine.start * many.context, mine.stop * many.context)
    losses = []
    for _ in range(steps):
        chars, following = many.text.batch(batch, many.context)
        routing = [torch.empty(batch * many.context, 2, dtype=torch.int64) for _ in range(2)]
        if one is not None:
            one_loss, routing = one.backward(chars, following)
            one.optimizer.step()
        for indices in routing:
            dist.broadcast(indices, 0)
        told = [indices[tokens] for indices in routing]
        loss, _ = many.backward(chars[mine], following[mine], told)
        average_dense_gradients(many.model, num_ranks)
        many.optimizer.step()
        whole = torch.tensor(loss, dtype=torch.float64)
        dist.all_reduce(whole)
        losses.append((whole.item() / num_ranks, one_loss if one is not None else None))
    return losses


class Model(nn.Module):
    """A dense layer before and one after the experts, each with DDP around it where asked for."""

    def __init__(self, layer, data_parallel):
        super().__init__()
        torch.manual_seed(3)
        self.first = nn.Linear(H, H)
        self.experts = layer(H, F, E, K)
        self.last = nn.Linear(H, H)
        if data_parallel:
            self.first = DistributedDataParallel(self.first)
            self.last = DistributedDataParallel(self.last)
            self.experts.router = DistributedDataParallel(self.experts.router)

    def forward(self, x):
        x = self.first(x)
        return self.last(x + self.experts(x))


def plain_name(name):
    return name.replace("module.", "")


def train_with_ddp(rank, num_ranks):
    """Gradients inside DDP against those of one rank, whose loss is the mean of all ranks'."""
    group = dist.new_group()
    spread = functools.partial(ExpertParallelMoE, group=group, expert_gradient_scale=1 / num_ranks)
    model, whole = Model(spread, True), Model(MoE, False)
    random = torch.Generator().manual_seed(4)
    inputs = [torch.randn(7 + 5 * r, H, generator=random) for r in range(num_ranks)]
    for _ in range(3):  # DDP settles its buckets in the first
        model.zero_grad()
        model(inputs[rank]).square().mean().backward()
    torch.stack([whole(x).square().mean() for x in inputs]).mean().backward()
    want = {name: parameter.grad for name, parameter in whole.named_parameters()}
    own = model.experts.own_experts
    for name, parameter in model.named_parameters():
        expected = want[plain_name(name)]
        if name in ("experts.up", "experts.down"):
            expected = expected[own.start : own.stop]
        assert torch.allclose(parameter.grad, expected, rtol=1e-5, atol=1e-6), name


def save_and_load(rank, num_ranks, folder):
    """Written by all ranks, read by half of them, by more than there are experts, and by one."""
    torch.manual_seed(rank)  # DDP is not here to make the dense parts the same
    model = nn.Sequential(ExpertParallelMoE(H, F, E, K), nn.Linear(H, H))
    for parameter in (model[0].router.weight, *model[1].parameters()):
        dist.broadcast(parameter.detach(), 0)
    tokens = torch.randn(9, H, generator=torch.Generator().manual_seed(1))
    want = model(tokens).detach()
    save_checkpoint(model, folder)
    for size in (num_ranks // 2, 1):
        group = dist.new_group(list(range(size)))
        if rank < size:
            torch.manual_seed(100)
            other = nn.Sequential(ExpertParallelMoE(H, F, E, K, group=group), nn.Linear(H, H))
            assert not torch.allclose(other(tokens), want)
            load_checkpoint(other, folder)
            assert torch.allclose(other(tokens), want, rtol=1e-5, atol=1e-6)
    try:
        save_checkpoint(model, folder)
    except FileExistsError as error:
        return str(error)
    return None


def state_dict_of_each(rank, num_ranks):
    return sorted(ExpertParallelMoE(H, F, E, K).state_dict())


def load_other_sizes(rank, num_ranks, folder):
    save_checkpoint(ExpertParallelMoE(H, F, E, K), folder)
    try:
        load_checkpoint(ExpertParallelMoE(H, F + 1, E, K), folder)
    except RuntimeError as error:
        return str(error)
    return "loaded"


def fail_to_save(rank, num_ranks, folder):
    """What this rank hears: no place; the last one's disk is full; its error cannot be sent."""
    model, heard = ExpertParallelMoE(H, F, E, K), []
    saves = torch.save

    def full(*_):
        raise OSError(errno.ENOSPC, "no space left")

    def odd(*_):
        class OddError(Exception):
            """Of a class that other processes do not have."""

        raise OddError("no disk")

    inside_a_file = __file__ + "/step"
    for place, save in ((inside_a_file, saves), (folder, full), (folder, odd), (folder, saves)):
        torch.save = save if rank == num_ranks - 1 else saves
        try:
            save_checkpoint(model, place)
        except OSError as error:
            heard.append(errno.errorcode[error.errno])
        except Exception as error:
            heard.append(str(error))
    load_checkpoint(model, folder)
    return heard


def die_while_saving(rank, num_ranks, folder):
    """The last rank dies before its file is whole."""
    model = ExpertParallelMoE(H, F, E, K)
    if rank == num_ranks - 1:
        import os
        import signal

        torch.save = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    try:
        save_checkpoint(model, folder)
    except RuntimeError:
        return "heard"
    return "saved"
