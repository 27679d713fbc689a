"""Knowing at once that a synchronous run on this machine has died.

Each run holds a lock on a file of its own; the kernel gives it up however the process ends. So the
next run can take back what a dead one held without waiting for its leases, and without trusting
process ids, which are used again.
"""

from __future__ import annotations

import fcntl
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nightdesk.db import Database
from nightdesk.desk import queue, site_lease
from nightdesk.desk.dead_letters import route_failed
from nightdesk.llm.calls import write_off_run


@contextmanager
def registered_run(folder: Path, run_id: uuid.UUID) -> Iterator[str]:
    """The name of this run, `run-<uuid>`, registered as alive until the block or the process ends."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"run-{run_id}.lock"
    with open(path, "a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield path.stem
        finally:
            path.unlink(missing_ok=True)


def take_back_dead_runs(folder: Path, database: Database) -> list[str]:
    """Rescue what runs that died on this machine held; returns their names."""
    dead = []
    for path in sorted(folder.glob("run-*.lock")):
        try:
            with open(path, "r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                with database.transaction() as session:
                    write_off_run(session, path.stem)
                    route_failed(session, queue.rescue_run(session, path.stem), layer="runner")
                    site_lease.release_run(session, path.stem)
                path.unlink(missing_ok=True)
                dead.append(path.stem)
        except (BlockingIOError, FileNotFoundError):
            continue
    return dead
