"""One rank as a program of its own: ep_host.py RANK NUM_RANKS ADDRESS PORT SECONDS."""

from __future__ import annotations

import datetime
import sys

import ep_cases
import torch
import torch.distributed as dist


def main(rank, num_ranks, address, port, seconds):
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"tcp://{address}:{port}",
        rank=rank,
        world_size=num_ranks,
        timeout=datetime.timedelta(seconds=seconds),
    )
    for form in ep_cases.FORMS:
        for num_chunks in (1, 3):
            case = ep_cases.Case(form=form, num_chunks=num_chunks, seed=num_chunks)
            ep_cases.check(case, rank, num_ranks, 0)
    dist.barrier()
    print("right", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))
