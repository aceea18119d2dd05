#!/usr/bin/env python3
"""usage: bench/plot_scaling.py JSON SVG

Draws time over bytes moved, both logarithmic, for the cases named scaling/ (scripts/bench --scaling).
"""
import json
import math
import sys

WIDTH, HEIGHT = 720, 440
LEFT, RIGHT, TOP, BOTTOM = 84, 24, 48, 64

# One drawing for light and dark pages: colours follow the reader's scheme.
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #333 }
  .title { font-size: 15px; font-weight: 600 }
  .grid { stroke: #ddd } .axis { stroke: #888 }
  .line { fill: none; stroke-width: 2.5 } .ours { stroke: #0b62c4 } .floor { stroke: #c4610b; stroke-dasharray: 6 4 }
  .dot { fill: #0b62c4 } .label-ours { fill: #0b62c4 } .label-floor { fill: #c4610b }
  @media (prefers-color-scheme: dark) {
    text { fill: #ddd } .grid { stroke: #444 } .axis { stroke: #999 }
    .ours { stroke: #6cb2ff } .dot { fill: #6cb2ff } .floor { stroke: #ffad66 }
    .label-ours { fill: #6cb2ff } .label-floor { fill: #ffad66 }
  }
"""


class LogAxis:
    """Powers of ten around the values, and where a value lies between two pixels."""

    def __init__(self, values, first_pixel, last_pixel):
        self.low = math.floor(math.log10(min(values)))
        self.high = math.ceil(math.log10(max(values)))
        self.first, self.last = first_pixel, last_pixel

    def at(self, value):
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.first + share * (self.last - self.first)

    def ticks(self):
        return [10.0 ** power for power in range(self.low, self.high + 1)]


def with_unit(value, units):
    for size, unit in units:
        if value >= size * 0.999:
            return f"{value / size:g} {unit}"
    return f"{value:g}"


def byte_label(value):
    return with_unit(value, ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")))


def time_label(micros):
    return with_unit(micros, ((1e6, "s"), (1e3, "ms"), (1.0, "µs")))


def polyline(points, css):
    return f'<polyline class="line {css}" points="' + " ".join(f"{x:.1f},{y:.1f}" for x, y in points) + '"/>'


def slope(cases):
    """Of a straight line through the logarithms: 1 means that time grows linearly with the bytes."""
    xs = [math.log(case["bytes"]) for case in cases]
    ys = [math.log(case["operator_us"]) for case in cases]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    return (sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys))
            / sum((x - mean_x) ** 2 for x in xs))


def draw(cases):
    x = LogAxis([case["bytes"] for case in cases], LEFT, WIDTH - RIGHT)
    y = LogAxis([case[key] for case in cases for key in ("operator_us", "floor_us")], HEIGHT - BOTTOM, TOP)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
           f"<title>Time of PermuteWithEpGrad over bytes moved</title><style>{STYLE}</style>",
           f'<text class="title" x="{LEFT}" y="24">PermuteWithEpGrad: time over bytes moved '
           f'(slope {slope(cases):.2f})</text>']
    for value in x.ticks():
        out.append(f'<path class="grid" d="M{x.at(value):.1f} {TOP}V{HEIGHT - BOTTOM}"/>'
                   f'<text x="{x.at(value):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">'
                   f"{byte_label(value)}</text>")
    for value in y.ticks():
        out.append(f'<path class="grid" d="M{LEFT} {y.at(value):.1f}H{WIDTH - RIGHT}"/>'
                   f'<text x="{LEFT - 8}" y="{y.at(value) + 4:.1f}" text-anchor="end">{time_label(value)}</text>')
    out.append(f'<path class="axis" fill="none" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>')
    ours = [(x.at(case["bytes"]), y.at(case["operator_us"])) for case in cases]
    out.append(polyline([(x.at(case["bytes"]), y.at(case["floor_us"])) for case in cases], "floor"))
    out.append(polyline(ours, "ours"))
    out += [f'<circle class="dot" cx="{px:.1f}" cy="{py:.1f}" r="3.5"/>' for px, py in ours]
    out.append(f'<text class="label-ours" x="{LEFT + 16}" y="{TOP + 22}">operator</text>'
               f'<text class="label-floor" x="{LEFT + 16}" y="{TOP + 42}">floor</text>'
               f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 16}" text-anchor="middle">bytes moved</text></svg>')
    return "\n".join(out) + "\n"


def main(source, target):
    with open(source, encoding="utf-8") as file:
        cases = [case for case in json.load(file)["benchmarks"] if case["name"].startswith("scaling/")]
    if len(cases) < 2:
        sys.exit(f"{source}: {len(cases)} scaling cases, but a line needs 2")
    cases.sort(key=lambda case: case["bytes"])
    with open(target, "w", encoding="utf-8") as file:
        file.write(draw(cases))
    print(f"{target}: {len(cases)} cases, slope {slope(cases):.3f}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
