"""Threads, and what this build is."""

from __future__ import annotations

import os
from typing import Any, SupportsIndex

from moe_permute import _native

_VARIABLES = ("MOE_KERNEL", "MOE_NUM_THREADS")


def set_num_threads(num_threads: SupportsIndex | None) -> None:
    """Limit the threads of every call from now on, in all threads of the process.

    Args:
        num_threads: 1 or more. None: the default, which is the environment variable
            MOE_NUM_THREADS, or all processors that the process may run on.

    Raises:
        TypeError, ValueError: num_threads is no int, or less than 1.

    Example:
        >>> set_num_threads(1)
        >>> num_threads()
        1
        >>> set_num_threads(None)
    """
    _native.set_num_threads(num_threads)


def num_threads() -> int:
    """Tell the most threads that a call uses. Results do not depend on it.

    Example:
        >>> num_threads() >= 1
        True
    """
    return _native.num_threads()


def config() -> dict[str, Any]:
    """Tell what this build is and what it finds on this machine, as a dict.

    Returns:
        version, library ("built in" or "installed"), compiler, num_threads; kernels: for each
        operator the names of those that this machine can run, the first of which is taken where it
        accepts the case; jax: whether moe_permute.jax was compiled in; cache_bytes of the processor
        (None where the system does not say); environment: the variables that are set.

    Example:
        >>> "portable" in config()["kernels"]["permute"]
        True
    """
    environment = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    return {**_native.config(), "environment": environment}


def show_config() -> None:
    """Print what config() tells, for people: worth adding to a bug report.

    Example:
        >>> show_config()  # doctest: +ELLIPSIS
        version         ...
    """
    for name, value in config().items():
        if isinstance(value, dict):
            print(name)
            for key, item in value.items():
                text = ", ".join(item) if isinstance(item, list) else item
                print(f"  {key:<16} {text}")
        else:
            print(f"{name:<18} {value}")
