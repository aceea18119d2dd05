"""Hosts in network namespaces, on links that take their time.

The kernel's own delay (netem) is often not there; so each host's device is a TAP, and all are
plugged into a hub in this process that holds each frame back before it passes it on.
"""

from __future__ import annotations

import collections
import fcntl
import os
import select
import struct
import subprocess
import threading
import time

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
FRAME_BYTES = 65536


def ip(*words, check=True):
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True)


class DelayedNetwork:
    """`num_hosts` namespaces whose frames to each other arrive `seconds` late.

    Raises OSError or CalledProcessError where that is not permitted or not there.
    """

    def __init__(self, num_hosts, seconds):
        self._prefix = f"moe{os.getpid() % 1000000}"
        self._seconds, self._closing = seconds, False
        self.num_frames = 0
        self._devices = []
        self.hosts = [f"{self._prefix}h{number}" for number in range(num_hosts)]
        try:
            for number in range(num_hosts):
                self._plug_in(number)
        except BaseException:
            self.close()
            raise
        self._hub = threading.Thread(target=self._pass_on, daemon=True)
        self._hub.start()

    @staticmethod
    def address(number):
        return f"10.77.0.{number + 1}"

    def _plug_in(self, number):
        device, host = f"{self._prefix}t{number}", self.hosts[number]
        tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        self._devices.append(tap)
        fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TAP | IFF_NO_PI))
        ip("netns", "add", host)
        ip("link", "set", device, "netns", host, "name", "eth0")
        ip("-n", host, "address", "add", f"{self.address(number)}/24", "dev", "eth0")
        for name in ("lo", "eth0"):
            ip("-n", host, "link", "set", name, "up")

    def _pass_on(self):
        held = collections.deque()  # (when it is due, where it came from, frame)
        while not self._closing:
            wait = max(0, held[0][0] - time.monotonic()) if held else 0.05
            for source in select.select(self._devices, [], [], wait)[0]:
                frame = os.read(source, FRAME_BYTES)
                held.append((time.monotonic() + self._seconds, source, frame))
            while held and held[0][0] <= time.monotonic():
                _, source, frame = held.popleft()
                self._deliver(source, frame)

    def _deliver(self, source, frame):
        """To all others: who is not meant takes no notice."""
        self.num_frames += 1
        for device in self._devices:
            if device != source:
                try:
                    os.write(device, frame)
                except OSError:
                    pass  # a full queue drops the frame, and TCP sends it again

    def close(self):
        self._closing = True
        if hasattr(self, "_hub"):
            self._hub.join()
        for device in self._devices:
            os.close(device)
        for host in self.hosts:
            ip("netns", "delete", host, check=False)
