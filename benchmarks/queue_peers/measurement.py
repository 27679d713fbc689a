"""One measurement: what is timed, and what is not. It runs in the process that its system has for itself."""

from __future__ import annotations

from importlib import import_module

import psycopg
from sqlalchemy.engine import URL, make_url

from benchmarks.queue_peers.system import Explainable, System

#: Imported when asked for: no system pays for another's libraries.
SYSTEMS = {
    "bare": "bare:Bare",
    "nightdesk": "shipped:Shipped",
    "pgqueuer": "on_pgqueuer:OnPgQueuer",
    "procrastinate": "on_procrastinate:OnProcrastinate",
    "dbos": "on_dbos:OnDbos",
}


def open_system(name: str, url: URL) -> System:
    """A queue on the database at `url`."""
    module, cls = SYSTEMS[name].split(":")
    system: System = getattr(import_module(f"benchmarks.queue_peers.{module}"), cls)(url)
    return system


def measure(name: str, address: str, backlog: int, jobs: int) -> dict[str, float]:
    """Enqueue the last `jobs` jobs of the backlog, then drain as many.

    Returns the seconds of both, and for Nightdesk the pages that a claim touches.

    Raises:
        RuntimeError: if something was not done that should have been.
    """
    url = make_url(address)
    system = open_system(name, url)
    system.install()
    if (missing := backlog - jobs - system.waiting()) > 0:
        system.stock(missing)
    figures = {"enqueue": system.enqueue(jobs)}
    settle(url)
    if isinstance(system, Explainable):
        figures["claim_buffers"] = system.claim_buffers()
    before = system.waiting()
    if before < backlog:
        raise RuntimeError(f"{name}: {before} jobs wait, {backlog} should")
    figures["drain"] = system.drain(jobs)
    if (gone := before - system.waiting()) < jobs:
        raise RuntimeError(f"{name}: {gone} jobs are gone from the backlog, {jobs} were to be done")
    system.close()
    return figures


def settle(url: URL) -> None:
    """Nothing of the filling is left to do for the server while a drain is timed."""
    conninfo = url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")
