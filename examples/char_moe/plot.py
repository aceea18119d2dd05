"""The picture of a training: losses over time, and how far apart they are at each step."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

WIDTH, HEIGHT = 880, 400
TOP, BOTTOM, PANEL_WIDTH = 72, 336, 340
LEFT_EDGES = (64, 508)
LARGEST_DIFFERENCE = 1e-5
SMALLEST_SHOWN = 1e-9  # below lies what is equal: a scale of powers has no 0

# One drawing for light and dark pages: colours follow the reader's scheme.
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .paper { fill: #fff } .title { font-size: 15px; font-weight: 600 } .quiet { fill: #59636e }
  .grid { stroke: #d4dae1 } .line { fill: none; stroke-width: 2 }
  .c0 { stroke: #0b62c4 } .c1 { stroke: #a8540f } .t0 { fill: #0b62c4 } .t1 { fill: #a8540f }
  .bound { stroke: #a8540f; stroke-width: 1.5; stroke-dasharray: 6 4 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .paper { fill: #0d1117 } .quiet { fill: #9aa6b3 }
    .grid { stroke: #343d49 }
    .c0 { stroke: #6cb2ff } .c1 { stroke: #e8a05c } .t0 { fill: #6cb2ff } .t1 { fill: #e8a05c }
    .bound { stroke: #e8a05c }
  }
"""


@dataclass
class Axis:
    """Where values lie between two pixels."""

    low: float
    high: float
    first: float
    last: float
    of: Callable[[float], float] = float

    def at(self, value: float) -> float:
        low, high = self.of(self.low), self.of(self.high)
        share = (self.of(min(max(value, self.low), self.high)) - low) / (high - low)
        return self.first + share * (self.last - self.first)


def text(x: float, y: float, words: str, css: str = "", anchor: str = "start") -> str:
    return f'<text class="{css}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'


def curve(x: Axis, y: Axis, xs: Sequence[float], ys: Sequence[float], css: str) -> str:
    points = " ".join(f"{x.at(a):.1f},{y.at(b):.1f}" for a, b in zip(xs, ys, strict=True))
    return f'<polyline class="line {css}" points="{points}"/>'


def round_steps(high: float) -> list[float]:
    """From 0 to about `high` in 3 to 6 steps of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(high / 3))
    step = max(size * power for size in (1, 2, 5) if size * power <= high / 3)
    return [step * number for number in range(int(high / step) + 1)]


def frame(
    x: Axis, y: Axis, ticks: tuple[list[float], list[float]], title: str, below: str
) -> list[str]:
    out = [text(x.first, 34, title, "title")]
    for value in ticks[0]:
        out.append(f'<path class="grid" d="M{x.at(value):.1f} {TOP}V{BOTTOM}"/>')
        out.append(text(x.at(value), BOTTOM + 20, f"{value:g}", "quiet", "middle"))
    for value in ticks[1]:
        out.append(f'<path class="grid" d="M{x.first} {y.at(value):.1f}H{x.last}"/>')
        out.append(text(x.first - 8, y.at(value) + 4, label(value), "quiet", "end"))
    return [*out, text((x.first + x.last) / 2, BOTTOM + 44, below, "quiet", "middle")]


def label(value: float) -> str:
    return "equal" if value == SMALLEST_SHOWN else f"{value:g}".replace("e-0", "e-")


def loss_panel(curves: dict[str, tuple[list[float], list[float]]]) -> list[str]:
    left = LEFT_EDGES[0]
    longest = max(sum(seconds) for seconds, _ in curves.values())
    highest = max(max(losses) for _, losses in curves.values())
    x = Axis(0, longest, left, left + PANEL_WIDTH)
    y = Axis(0, highest, BOTTOM, TOP)
    ticks = round_steps(longest), round_steps(highest)
    out = frame(x, y, ticks, "Loss over time", "seconds of training steps")
    for number, (name, (seconds, losses)) in enumerate(curves.items()):
        out.append(curve(x, y, list(accumulate(seconds)), losses, f"c{number}"))
        words = f"{name}: {statistics.median(seconds) * 1e3:.1f} ms a step"
        out.append(text(left + PANEL_WIDTH - 8, TOP + 20 + 20 * number, words, f"t{number}", "end"))
    return out


def difference_panel(differences: list[float]) -> list[str]:
    left = LEFT_EDGES[1]
    x = Axis(0, len(differences), left, left + PANEL_WIDTH)
    y = Axis(SMALLEST_SHOWN, 1e-4, BOTTOM, TOP, math.log10)
    ticks = round_steps(len(differences)), [float(f"1e{power}") for power in range(-9, -3)]
    out = frame(x, y, ticks, "Difference of the losses, relative", "step")
    for step, difference in enumerate(differences, 1):
        place = f'cx="{x.at(step):.1f}" cy="{y.at(difference):.1f}"'
        out.append(f'<circle class="t0" {place} r="2.5"/>')
    height = y.at(LARGEST_DIFFERENCE)
    out.append(f'<path class="bound" d="M{x.first} {height:.1f}H{x.last}"/>')
    return out


def draw(curves: dict[str, tuple[list[float], list[float]]], differences: list[float]) -> str:
    """SVG of `curves`, name -> (seconds of each step, losses), and of their differences."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            'aria-label="Losses of two versions of a model over time, and their differences">',
            f"<style>{STYLE}</style>",
            f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
            *loss_panel(curves),
            *difference_panel(differences),
            "</svg>",
            "",
        ]
    )
