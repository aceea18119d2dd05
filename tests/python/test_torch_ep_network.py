"""moe_permute.torch.ep between hosts: network namespaces, joined by links that take their time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch")

from delayed_network import DelayedNetwork

NUM_HOSTS, DELAY, SECONDS, PORT = 3, 0.005, 150, 29400


@pytest.fixture
def network():
    try:
        hosts = DelayedNetwork(NUM_HOSTS, DELAY)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = (getattr(error, "stderr", None) or str(error)).strip()
        pytest.skip(f"network namespaces with links of their own cannot be made here: {reason}")
    yield hosts
    hosts.close()


def start(network, host, *words):
    return subprocess.Popen(
        ["ip", "netns", "exec", network.hosts[host], sys.executable, *map(str, words)],
        env=os.environ | {"GLOO_SOCKET_IFNAME": "eth0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


# A port where nobody listens: the other host says so, after a way there and one back.
KNOCK = """
import socket, sys, time
start = time.monotonic()
try:
    socket.create_connection((sys.argv[1], 9), timeout=20)
except ConnectionRefusedError:
    print(time.monotonic() - start)
"""


def test_links_are_delayed(network):
    knock = start(network, 0, "-c", KNOCK, network.address(1))
    output, _ = knock.communicate(timeout=60)
    assert float(output) >= 2 * DELAY


def test_hosts_exchange_tokens_across_delayed_links(network):
    program = Path(__file__).with_name("ep_host.py")
    setup = NUM_HOSTS, network.address(0), PORT, SECONDS
    ranks = [start(network, rank, program, rank, *setup) for rank in range(NUM_HOSTS)]
    end = time.monotonic() + SECONDS
    try:
        for rank, process in enumerate(ranks):
            output, _ = process.communicate(timeout=max(0.1, end - time.monotonic()))
            assert process.returncode == 0 and "right" in output, (rank, output)
    finally:
        for process in ranks:
            process.kill()
            process.wait()
    assert network.num_frames > 100
