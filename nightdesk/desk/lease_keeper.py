"""Renews the leases of the jobs at work, from a thread of its own.

A busy event loop or a slow handler must not cost a lease. A renewal that finds no row, or that cannot
be made for two thirds of the lease, cancels the work: its result would be dropped anyway.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import SQLAlchemyError

from nightdesk.db import Database
from nightdesk.desk import queue
from nightdesk.desk.queue import Claim
from nightdesk.errors import Fenced

log = logging.getLogger(__name__)


class LeaseKeeper:
    """Context manager; `keeping(claim)` registers the current task for as long as a block lasts."""

    def __init__(self, database: Database, lease_s: float) -> None:
        self._database = database
        self._lease_s = lease_s
        self._lock = threading.Lock()
        self._kept: dict[int, _Kept] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease-keeper", daemon=True)

    def __enter__(self) -> LeaseKeeper:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=self._lease_s)

    @contextmanager
    def keeping(self, claim: Claim) -> Iterator[None]:
        """Keep a claim alive while the current task works on it."""
        task = asyncio.current_task()
        assert task is not None
        with self._lock:
            self._kept[claim.job_id] = _Kept(claim, task, asyncio.get_running_loop(), time.monotonic())
        try:
            yield
        finally:
            with self._lock:
                self._kept.pop(claim.job_id, None)

    def _run(self) -> None:
        while not self._stop.wait(self._lease_s / 3):
            with self._lock:
                kept = list(self._kept.values())
            for one in kept:
                self._renew(one)

    def _renew(self, kept: _Kept) -> None:
        try:
            with self._database.transaction() as session:
                queue.renew(session, kept.claim, self._lease_s)
            kept.renewed = time.monotonic()
        except Fenced:
            self._cancel(kept, "its claim has ended")
        except SQLAlchemyError as error:
            if time.monotonic() - kept.renewed > self._lease_s * 2 / 3:
                self._cancel(kept, f"its lease cannot be renewed: {error}")

    def _cancel(self, kept: _Kept, why: str) -> None:
        with self._lock:
            if self._kept.pop(kept.claim.job_id, None) is None:
                return
        log.warning("job %s is cancelled: %s", kept.claim.job_id, why)
        kept.loop.call_soon_threadsafe(kept.task.cancel)


class _Kept:
    def __init__(
        self,
        claim: Claim,
        task: asyncio.Task[object],
        loop: asyncio.AbstractEventLoop,
        renewed: float,
    ) -> None:
        self.claim = claim
        self.task = task
        self.loop = loop
        self.renewed = renewed
