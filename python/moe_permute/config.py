"""Threads, and what this build is."""

from __future__ import annotations

from typing import Any

from moe_permute import _native


def set_num_threads(num_threads: int | None) -> None:
    """Limit the threads that any call may use from now on."""
    _native.set_num_threads(num_threads)


def num_threads() -> int:
    """Tell the most threads that a call may use."""
    return _native.num_threads()


def show_config() -> dict[str, Any]:
    """Tell what this build is."""
    return _native.config()
