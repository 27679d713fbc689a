"""Knowing at once that a synchronous run on this machine has died.

Each run holds a lock on a file of its own; the kernel gives it up however the process ends. So the
next run can take back what a dead one held without waiting for its leases, and without trusting
process ids, which are used again.
"""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from nightdesk.db import Database
from nightdesk.desk import queue, site_lease
from nightdesk.desk.dead_letters import route_failed
from nightdesk.desk.dead_runs import take_back_run
from nightdesk.llm.calls import write_off_run


@contextmanager
def registered_run(folder: Path, database: Database, run_id: uuid.UUID) -> Iterator[str]:
    """The name of this run, `run-<uuid>`, registered as alive until the block or the process ends.

    At the end all that it still holds is given back; if that fails, its file stays and the next run
    takes it back.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"run-{run_id}.lock"
    with _locked(path):
        try:
            yield path.stem
        finally:
            with suppress(SQLAlchemyError):
                with database.transaction() as session:
                    write_off_run(session, path.stem)
                    queue.hand_back_run(session, path.stem)
                    site_lease.release_run(session, path.stem)
                path.unlink(missing_ok=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """The file, locked; made again if another process took it for a dead run's in between."""
    while True:
        with open(path, "a+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if path.exists() and os.fstat(lock.fileno()).st_ino == path.stat().st_ino:
                yield
                return


def take_back_dead_runs(folder: Path, database: Database) -> list[str]:
    """Rescue what runs that died on this machine held; returns their names."""
    dead = []
    for path in sorted(folder.glob("run-*.lock")):
        try:
            with open(path, "r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                with database.transaction() as session:
                    route_failed(session, take_back_run(session, path.stem), layer="runner")
                path.unlink(missing_ok=True)
                dead.append(path.stem)
        except (BlockingIOError, FileNotFoundError):
            continue
    return dead
