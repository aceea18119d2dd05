"""The interpreter's lock is free while a call runs, and calls may run side by side."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import moe_permute as mp
import numpy as np
import pytest


@pytest.fixture
def long_switch_interval():
    """Nobody takes the lock away from a thread that does not let it go."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(100)
    yield
    sys.setswitchinterval(before)


def test_another_thread_runs_meanwhile(long_switch_interval):
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        pytest.skip("this interpreter has no lock")
    rows = np.ones((4096, 512), np.float32)
    sorted_indices = np.arange(4096, dtype=np.int32)
    out = np.empty_like(rows)
    ready, go, ran = threading.Event(), threading.Lock(), []
    go.acquire()

    def other():
        ready.set()
        with go:
            ran.append(1)

    thread = threading.Thread(target=other)
    thread.start()
    ready.wait()
    go.release()
    for _ in range(1000):
        sum(range(1000))
    assert not ran  # plain Python does not let the lock go
    for _ in range(1000):
        if ran:
            break
        mp.unpermute(rows, sorted_indices, out=out)
    assert ran
    thread.join()


def test_calls_side_by_side():
    rng = np.random.default_rng(5)

    def problem(seed):
        tokens = np.random.default_rng(seed).standard_normal((257, 65)).astype(np.float32)
        experts = rng.integers(0, 9, (257, 3))
        return tokens, experts

    def round_trip(tokens, experts):
        rows, ranks, _ = mp.permute(tokens, experts, num_experts=8)
        return rows, mp.unpermute(rows, ranks, top_k=3), mp.permute_grad(rows, ranks, 3)[0]

    problems = [problem(seed) for seed in range(8)]
    want = [round_trip(*p) for p in problems]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(10):
            got = list(pool.map(lambda p: round_trip(*p), problems))
            for a, b in zip(got, want, strict=True):
                for x, y in zip(a, b, strict=True):
                    np.testing.assert_array_equal(x, y)


def test_threads_are_limited_while_calls_run():
    rows, ranks = np.ones((512, 64), np.float32), np.arange(512)
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(mp.unpermute, rows, ranks, top_k=2) for _ in range(50)]
        for n in (1, 3, 2, None):
            mp.set_num_threads(n)
        assert all((call.result() == 2).all() for call in calls)
    mp.set_num_threads(3)
    assert mp.num_threads() == 3
    mp.set_num_threads(None)


AT_EXIT = """
import threading, time
import moe_permute as mp
import numpy as np

tokens, experts = np.ones((512, 64), np.float32), np.zeros((512, 4), np.int32)

def forever():
    while True:
        mp.permute(tokens, experts)

for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
time.sleep(0.2)
"""


def test_daemon_threads_do_not_crash_the_end_of_the_process():
    ended = subprocess.run([sys.executable, "-c", AT_EXIT], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
