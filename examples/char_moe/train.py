#!/usr/bin/env python3
"""A mixture-of-experts language model, trained on a CPU on two chapters, in two versions.

One version permutes with moe_permute.torch, the other with PyTorch's own operators. Both start with
the same weights, see the same text and send each character to the same experts (those that the
plain version's router chooses), so their losses agree at every step; the time it takes does not.

usage: train.py [--steps N] [--plot FILE.svg] [--sample N]
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path

import torch
from model import CharModel, Sizes
from moe_permute.torch import MoE
from plain import PlainMoE
from plot import draw
from torch import Tensor
from torch.nn import functional

TEXT = Path(__file__).parent / "alice.txt"
NAMES = {"moe_permute": MoE, "plain torch": PlainMoE}


class Text:
    """The text as numbers, and random pieces of it."""

    def __init__(self, text: str, seed: int = 0) -> None:
        self.characters = sorted(set(text))
        self.codes = torch.tensor([self.characters.index(c) for c in text])
        self.generator = torch.Generator().manual_seed(seed)

    def batch(self, size: int, context: int) -> tuple[Tensor, Tensor]:
        """Pieces [size, context], and the same shifted by one: what is to be foretold."""
        last = len(self.codes) - context
        starts = torch.randint(last, (size, 1), generator=self.generator)
        at = starts + torch.arange(context)
        return self.codes[at], self.codes[at + 1]

    def spell(self, codes: Tensor) -> str:
        return "".join(self.characters[code] for code in codes.tolist())


@dataclass
class Run:
    """One version of the model, and what its training was like."""

    model: CharModel
    optimizer: torch.optim.Optimizer
    losses: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def step(self, chars: Tensor, following: Tensor, routing: list[Tensor]) -> None:
        start = time.perf_counter()
        logits, _ = self.model(chars, routing)
        loss = functional.cross_entropy(logits.flatten(0, 1), following.flatten())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.seconds.append(time.perf_counter() - start)
        self.losses.append(loss.item())


def make_run(layer: type[MoE], vocabulary: int, sizes: Sizes, learning_rate: float) -> Run:
    model = CharModel(vocabulary, sizes, layer)
    return Run(model, torch.optim.SGD(model.parameters(), lr=learning_rate))


def train(
    steps: int, sizes: Sizes, batch_size: int = 16, learning_rate: float = 0.5, log_every: int = 0
) -> tuple[dict[str, Run], Text]:
    """Both versions, step by step and in turns."""
    text = Text(TEXT.read_text(encoding="utf-8"))
    runs = {
        name: make_run(layer, len(text.characters), sizes, learning_rate)
        for name, layer in NAMES.items()
    }
    for step in range(steps):
        chars, following = text.batch(batch_size, sizes.context)
        with torch.no_grad():
            _, routing = runs["plain torch"].model(chars)
        for run in in_turns(list(runs.values()), step):
            run.step(chars, following, routing)
        if log_every and (step + 1) % log_every == 0:
            losses = ", ".join(f"{name} {run.losses[-1]:.4f}" for name, run in runs.items())
            print(f"step {step + 1:4}: loss {losses}", flush=True)
    return runs, text


def in_turns(runs: list[Run], step: int) -> list[Run]:
    """The one that goes first finds the caches as the other left them: let that be each in turn."""
    return runs if step % 2 == 0 else runs[::-1]


def differences(runs: dict[str, Run]) -> list[float]:
    """Of the losses at each step, relative."""
    ours, plain = (run.losses for run in runs.values())
    return [abs(a - b) / abs(b) for a, b in zip(ours, plain, strict=True)]


def median_ms(run: Run) -> float:
    return statistics.median(run.seconds) * 1e3


@torch.no_grad()
def sample(model: CharModel, text: Text, context: int, length: int) -> str:
    """What the model writes after the text's beginning."""
    codes = text.codes[:context]
    generator = torch.Generator().manual_seed(1)
    for _ in range(length):
        logits, _ = model(codes[None, -context:])
        chances = (logits[0, -1] / 0.7).softmax(0)
        codes = torch.cat([codes, torch.multinomial(chances, 1, generator=generator)])
    return text.spell(codes[context:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--plot", type=Path, help="draw losses and differences there, as SVG")
    parser.add_argument("--sample", type=int, default=300, help="characters to write at the end")
    options = parser.parse_args()
    sizes = Sizes()
    runs, text = train(options.steps, sizes, log_every=max(1, options.steps // 10))
    times = {name: median_ms(run) for name, run in runs.items()}
    print(f"largest difference of the losses: {max(differences(runs)):.1e}, relative")
    print("median of a step: " + ", ".join(f"{name} {ms:.1f} ms" for name, ms in times.items()))
    if options.plot:
        curves = {name: (run.seconds, run.losses) for name, run in runs.items()}
        options.plot.write_text(draw(curves, differences(runs)), encoding="utf-8")
    print(sample(runs["moe_permute"].model, text, sizes.context, options.sample))


if __name__ == "__main__":
    main()
