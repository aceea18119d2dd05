"""Jobs of several ranks: each a process of its own, all of them gone when the time is up."""

from __future__ import annotations

import datetime
import multiprocessing
import os
import tempfile
import time
import traceback
from pathlib import Path

# How long a whole job may take, and a collective that waits for a rank. Importing PyTorch in eight
# processes is most of the former.
JOB_SECONDS = 300
COLLECTIVE_SECONDS = 60


class RankFailed(AssertionError):
    """What went wrong, on which rank."""


def run_ranks(work, num_ranks, *args, dies=(), stops=(), collective_seconds=COLLECTIVE_SECONDS):
    """Run work(rank, num_ranks, *args) on each rank, in a Gloo group: what each gave back.

    Ranks in `dies` must end without giving back anything, ranks in `stops` hang; any other rank
    that raises, dies or is not through in time fails the test. `work` is a function of a module
    that ranks can import.
    """
    context = _context()
    answers = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        setup = f"file://{folder}/store", collective_seconds
        processes = [
            context.Process(
                target=_rank, args=(answers, work, rank, num_ranks, *setup, args), daemon=True
            )
            for rank in range(num_ranks)
        ]
        for process in processes:
            process.start()
        try:
            return _gather(answers, processes, set(dies), set(stops))
        finally:
            for process in processes:
                process.kill()
                process.join()


def _context():
    """Processes that come from one that has imported PyTorch, but has run nothing."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "torch.distributed", "moe_permute.torch.ep"])
    return context


def _rank(answers, work, rank, num_ranks, store, collective_seconds, args):
    # Read when an operator first runs. More threads would wait for the other ranks' processors.
    os.environ["MOE_NUM_THREADS"] = "1"
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    try:
        dist.init_process_group(
            "gloo",
            init_method=store,
            rank=rank,
            world_size=num_ranks,
            timeout=datetime.timedelta(seconds=collective_seconds),
        )
        answers.put((rank, True, work(rank, num_ranks, *args)))
    except BaseException:
        answers.put((rank, False, traceback.format_exc()))
    # What a group with a dead rank does at its end is not the subject here.
    answers.close()
    answers.join_thread()
    os._exit(0)


def _gather(answers, processes, dies, stops):
    results = {}
    end = time.monotonic() + JOB_SECONDS
    while len(results) < len(processes) - len(dies | stops):
        waiting = [rank for rank in range(len(processes)) if rank not in results]
        if time.monotonic() > end:
            raise RankFailed(f"ranks {waiting} are not through after {JOB_SECONDS} seconds")
        if not answers.empty():
            rank, good, result = answers.get()
            if not good:
                raise RankFailed(f"rank {rank}:\n{result}")
            results[rank] = result
            continue
        for rank in waiting:
            if rank not in dies and processes[rank].exitcode not in (None, 0):
                raise RankFailed(f"rank {rank} died with exit code {processes[rank].exitcode}")
        time.sleep(0.01)
    for rank in dies:
        processes[rank].join(JOB_SECONDS)
        assert processes[rank].exitcode not in (None, 0), f"rank {rank} did not die"
    return [results.get(rank) for rank in range(len(processes))]


def examples_folder(name):
    return str(Path(__file__).resolve().parents[2] / "examples" / name)
