#!/usr/bin/env python3
"""usage: bench/perf_gate.py TOOLCHAIN COUNTS JSON true|false

Compares instruction counts ("name count" lines) with those stored for the toolchain, or stores them.
"""
import json
import sys


def read_counts(path):
    with open(path, encoding="utf-8") as file:
        return {name: int(count) for name, count in (line.split() for line in file)}


def verdict(count, stored, tolerance):
    """What to print of a count, and whether it passes."""
    if stored is None:
        return "no stored figure", True
    change = count / stored - 1
    text = f"stored {stored:>12,}  {change:+.2%}"
    if change > tolerance:
        return text + f"  FAILED, at most +{tolerance:.0%}", False
    return text + ("  better: store it with --update" if change < -tolerance else "  ok"), True


def main(toolchain, counts_path, stored_path, update):
    counts = read_counts(counts_path)
    with open(stored_path, encoding="utf-8") as file:
        stored = json.load(file)
    if update:
        stored["instructions"][toolchain] = counts
        with open(stored_path, "w", encoding="utf-8") as file:
            file.write(json.dumps(stored, indent=2) + "\n")
    print(f"instructions, {toolchain}:")
    passes = True
    for name, count in counts.items():
        text, is_good = verdict(count, stored["instructions"].get(toolchain, {}).get(name),
                                stored["tolerance"])
        passes = passes and is_good and count > 0
        print(f"  {name:24} {count:>12,}  {text}")
    return 0 if passes and counts else 1


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:4], sys.argv[4] == "true"))
