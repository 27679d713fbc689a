"""What a queue must offer to be measured, and threads that start together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, runtime_checkable

CONCURRENCY = 10
BATCH = 10


class System(Protocol):
    """One queue on a database of its own."""

    def install(self) -> None:
        """Make the tables; nothing happens if they are there."""
        ...

    def waiting(self) -> int:
        """Jobs that could be claimed now."""
        ...

    def stock(self, count: int) -> None:
        """Put `count` waiting jobs there, in whatever way is quick; not timed."""
        ...

    def enqueue(self, jobs: int) -> float:
        """Enqueue `jobs` through the queue's own interface; returns seconds."""
        ...

    def drain(self, jobs: int) -> float:
        """Claim and finish at least `jobs` jobs that do nothing; returns seconds per `jobs`."""
        ...

    def close(self) -> None:
        """Close what is open."""
        ...


@runtime_checkable
class Explainable(Protocol):
    """A queue whose claim can be looked into."""

    def claim_buffers(self) -> int:
        """Pages that the claim of a batch touches; nothing stays claimed."""
        ...


class Shares:
    """`total` jobs, handed out in batches to whichever thread asks next."""

    def __init__(self, total: int, batch: int = BATCH) -> None:
        self._left = total
        self._batch = batch
        self._lock = threading.Lock()

    def take(self) -> int:
        """The size of the next batch, 0 at the end."""
        with self._lock:
            size = min(self._batch, self._left)
            self._left -= size
            return size


def run_threads(work: Callable[[Callable[[], object]], None], threads: int = CONCURRENCY) -> float:
    """Run `work(ready)` in threads, each of which calls `ready()` once it is connected.

    Returns seconds from the moment when all are ready; raises what a thread raised.
    """
    started: list[float] = []
    barrier = threading.Barrier(threads, action=lambda: started.append(time.perf_counter()), timeout=60)

    def one() -> None:
        try:
            work(barrier.wait)
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(threads) as pool:
        errors = [running.exception() for running in [pool.submit(one) for _ in range(threads)]]
    took = time.perf_counter() - started[0] if started else 0.0
    # The others only say that they waited in vain.
    for error in sorted(filter(None, errors), key=lambda one: isinstance(one, threading.BrokenBarrierError)):
        raise error
    return took


class Stopwatch:
    """Seconds from the first job's body to the body of the last one asked for; `on_last` is called then."""

    def __init__(self, jobs: int, on_last: Callable[[], object]) -> None:
        self._jobs = jobs
        self._on_last = on_last
        self._count = 0
        self._lock = threading.Lock()
        self._first_s = self._last_s = 0.0

    def job(self) -> None:
        """A job's body ran."""
        now_s = time.perf_counter()
        with self._lock:
            self._count += 1
            if self._count == 1:
                self._first_s = now_s
            if self._count == self._jobs:
                self._last_s = now_s
                self._on_last()

    @property
    def seconds(self) -> float:
        """For all jobs asked for.

        Raises:
            RuntimeError: if fewer ran.
        """
        if self._count < self._jobs:
            raise RuntimeError(f"{self._count} of {self._jobs} jobs ran: the worker stopped too early")
        return self._last_s - self._first_s
