"""What a process must know about itself: whether it was forked, and a clock that goes on while the machine sleeps."""

from __future__ import annotations

import os
import sys
import time
import weakref
from typing import Callable, Protocol


class ForkAware(Protocol):
    """An object that a forked process must not use as its parent left it."""

    def after_fork(self) -> None: ...


_known: "weakref.WeakSet[ForkAware]" = weakref.WeakSet()


def watch_forks(object: ForkAware) -> None:
    """Calls after_fork of the object in each process that is forked from this one. Its locks may be held by threads
    that the new process does not have, and its connections belong to the parent: two processes that read from one
    connection take each other's answers."""
    _known.add(object)


def _after_fork() -> None:
    for object in list(_known):
        object.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _choose_clock() -> Callable[[], float]:
    """Returns a monotonic clock that counts the time in which the machine is suspended, as the servers do. On Linux
    time.monotonic does not count it. On macOS neither does it, but CLOCK_MONOTONIC does."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    if boot is None and sys.platform == "darwin":
        boot = getattr(time, "CLOCK_MONOTONIC", None)
    if boot is None:
        return time.monotonic
    clock: int = boot
    try:
        time.clock_gettime(clock)
    except OSError:
        return time.monotonic
    return lambda: time.clock_gettime(clock)


now = _choose_clock()
"""The time in seconds by which leases end for their holders."""
