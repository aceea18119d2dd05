#!/usr/bin/env python3
"""usage: bench/table.py OUT JSON...

Merges what the benchmarks wrote with --benchmark_out into the file OUT, and prints it as one table with
what is asked of each group of cases. Exit code 1 when a bound is missed, 2 when nothing ran.
"""
import json
import statistics
import sys
from dataclasses import dataclass
from typing import Callable


@dataclass
class Group:
    title: str
    contains: Callable[[dict], bool]
    at_least: float  # of the floor, every case
    aim: float  # of the floor, the median of the cases


def is_sweep(case, strided=False):
    return (case["name"].startswith("sweep/") and bool(case["strided"]) == strided
            and case["num_tokens"] >= 512)


GROUPS = [
    Group("rows of 4 KiB and more", lambda c: is_sweep(c) and c["row_bytes"] >= 4096, 0.80, 0.90),
    Group("rows of 1 KiB", lambda c: is_sweep(c) and c["row_bytes"] == 1024, 0.70, 0.80),
    Group("rows of 256 bytes, all experts",
          lambda c: is_sweep(c) and c["row_bytes"] == 256 and c["num_ranks"] == 1, 0.60, 0.70),
    Group("rows of 256 bytes, a rank of 8",
          lambda c: is_sweep(c) and c["row_bytes"] == 256 and c["num_ranks"] == 8, 0.45, 0.60),
    Group("strided input", lambda c: is_sweep(c, strided=True), 0.75, 0.85),
]


def family_groups(at_least):
    """What is asked of the operator's siblings: one figure, less of narrow rows, a tenth more as the aim."""
    def group(title, least, contains):
        return Group(title, lambda c: is_sweep(c) and contains(c["row_bytes"]), least, least + 0.10)
    return [
        group("rows of 4 KiB and more", at_least, lambda row_bytes: row_bytes >= 4096),
        group("rows of 1 KiB", at_least - 0.10, lambda row_bytes: row_bytes == 1024),
        group("rows of 256 bytes", at_least - 0.25, lambda row_bytes: row_bytes == 256),
    ]


# The forward's index stage is timed apart.
GROUPS_OF_OP = {
    "permute_with_ep_grad": GROUPS,
    "permute_with_ep": family_groups(0.80),
    "unpermute_with_ep": family_groups(0.80),
    "unpermute_with_ep_grad": family_groups(0.75),
}
DECODE_US, DECODE_SHARE = 3.0, 0.20  # above the floor: the larger of the two
LIMITS_US = {"phase_1": 2.0, "phase_2_above_empty_enqueue": 1.0}


def load(paths):
    cases, context = [], {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            run = json.load(file)
        context = {**run["context"], **context}
        for case in run["benchmarks"]:
            case["name"] = case["name"].split("/iterations:")[0]
            case["op"] = run["context"].get("op")
            if case.get("time_unit") == "ns":
                case["us"] = case["real_time"] / 1e3
            cases.append(case)
    return cases, context


def groups_of(op):
    return GROUPS_OF_OP.get(op, GROUPS)


def group_of(case):
    return next((group for group in groups_of(case.get("op")) if group.contains(case)), None)


def decode_limit_us(case):
    return case["floor_us"] + max(DECODE_US, DECODE_SHARE * case["floor_us"])


def is_bounded_decode(case):
    return case["name"].startswith("decode/") and case["op"] == "permute_with_ep_grad"


def met(case):
    """True or False where the case has a bound of its own, None where it has none."""
    if is_bounded_decode(case):
        return case["operator_us"] <= decode_limit_us(case)
    if case["name"] in LIMITS_US:
        return case["us"] <= LIMITS_US[case["name"]]
    group = group_of(case)
    return case["share_of_floor"] >= group.at_least if group else None


def verdict(is_met):
    return {True: "ok", False: "MISSED", None: ""}[is_met]


def print_case(case):
    if "share_of_floor" not in case:
        limit = LIMITS_US.get(case["name"])
        note = f"at most {limit:g} us" if limit else ""
        print(f"{case['name']:52} {'':>9} {case['us']:>11.2f} {'':>7} {'':>11} {'':>6}  {note} "
              f"{verdict(met(case))}")
        return
    group = group_of(case)
    bound = f">= {group.at_least:.2f}" if group else ""
    if is_bounded_decode(case):
        bound = f"<= {decode_limit_us(case):.1f} us"
    place = "L2" if case["output_in_l2"] else ""
    print(f"{case['name']:52} {case['bytes'] / 1e6:>9.2f} {case['operator_us']:>11.1f} "
          f"{case['gb_per_s']:>7.2f} {case['floor_us']:>11.1f} {case['share_of_floor']:>6.2f} "
          f"{place:>3} {bound} {verdict(met(case))}")


def print_cases(cases):
    print(f"{'case':52} {'MB moved':>9} {'us':>11} {'GB/s':>7} {'floor us':>11} {'share':>6} "
          f"{'out':>3} bound")
    for case in cases:
        print_case(case)


def print_groups(cases):
    lines = []
    for group in groups_of(cases[0]["op"]):
        for place, in_l2 in (("", 0), (", output in L2", 1)):
            shares = [c["share_of_floor"] for c in cases
                      if group_of(c) is group and c["output_in_l2"] == in_l2]
            if not shares:
                continue
            least, middle = min(shares), statistics.median(shares)
            aim = "" if middle >= group.aim else "aim not reached"
            lines.append(f"{group.title + place:46} {len(shares):>5} {least:>6.2f} {group.at_least:>6.2f} "
                         f"{verdict(least >= group.at_least):6} {middle:>7.2f} {group.aim:>5.2f} {aim}")
    if lines:
        print(f"\n{'share of floor':46} {'cases':>5} {'least':>6} {'bound':>6} {'':6} {'median':>7} {'aim':>5}")
        print("\n".join(lines))


def main(out, paths):
    cases, context = load(paths)
    with open(out, "w", encoding="utf-8") as file:
        json.dump({"context": context, "benchmarks": cases}, file, indent=1)
    wrong = [case for case in cases if case.get("error_occurred")]
    cases = [case for case in cases if not case.get("error_occurred")]
    if not cases and not wrong:
        print("no case ran")
        return 2
    print(f"kernel {context.get('kernel', '?')}, {context.get('threads', '?')} threads, "
          f"L2 {int(context.get('l2_bytes', 0)) >> 10} KiB, {context['date']}\n")
    print_cases(cases)
    print_groups(cases)
    missed = [case["name"] for case in cases if met(case) is False]
    for case in wrong:
        print(f"FAILED {case['name']}: {case['error_message']}")
    print(f"\n{len(missed)} of {sum(met(c) is not None for c in cases)} bounds missed"
          + "".join(f"\n  {name}" for name in missed))
    return 1 if missed or wrong else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
