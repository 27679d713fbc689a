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

log = logging.getLogger(__name__)


class LeaseKeeper:
    """Context manager; `keeping(claim)` registers the current task for as long as a block lasts."""

    def __init__(self, database: Database, lease_s: float) -> None:
        self._database = database
        self._lease_s = lease_s
        self._lock = threading.Lock()
        self._kept: dict[tuple[int, int], _Kept] = {}
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
            self._kept[claim.job_id, claim.claim_no] = _Kept(
                claim, task, asyncio.get_running_loop(), time.monotonic()
            )
        try:
            yield
        finally:
            with self._lock:
                self._kept.pop((claim.job_id, claim.claim_no), None)

    def _run(self) -> None:
        while not self._stop.wait(self._lease_s / 3):
            with self._lock:
                kept = list(self._kept.values())
            if kept:
                self._renew(kept)

    def _renew(self, kept: list[_Kept]) -> None:
        """All in one statement: one slow answer must not cost the leases of the others."""
        try:
            with self._database.transaction() as session:
                held = queue.renew_all(session, [one.claim for one in kept], self._lease_s)
        except SQLAlchemyError as error:
            for one in kept:
                if time.monotonic() - one.renewed > self._lease_s * 2 / 3:
                    self._cancel(one, f"its lease cannot be renewed: {error}")
            return
        for one in kept:
            if one.claim.job_id in held:
                one.renewed = time.monotonic()
            else:
                self._cancel(one, "its claim has ended")

    def _cancel(self, kept: _Kept, why: str) -> None:
        key = (kept.claim.job_id, kept.claim.claim_no)
        with self._lock:
            if self._kept.pop(key, None) is None:
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
