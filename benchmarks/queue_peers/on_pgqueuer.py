"""PgQueuer on asyncpg and uvloop, as its own command line runs it: claims of 10, at most 10 jobs at a time.

It keeps finished jobs in memory and writes them ten at a time, so that a kill loses what was done.
"""

from __future__ import annotations

import asyncio

import asyncpg  # type: ignore[import-untyped]
import psycopg
import uvloop  # type: ignore[import-not-found,unused-ignore]
from pgqueuer import PgQueuer  # type: ignore[import-not-found,unused-ignore]
from pgqueuer.models import Job  # type: ignore[import-not-found,unused-ignore]
from pgqueuer.queries import Queries  # type: ignore[import-not-found,unused-ignore]
from sqlalchemy.engine import URL

from benchmarks.queue_peers.system import BATCH, CONCURRENCY, Shares, Stopwatch

ENTRYPOINT = "nothing"


class OnPgQueuer:
    """Version 1 with its default settings and schema."""

    def __init__(self, url: URL) -> None:
        self._conninfo = url.set(drivername="postgresql").render_as_string(hide_password=False)

    def install(self) -> None:
        async def make() -> None:
            connection = await asyncpg.connect(self._conninfo)
            queries = Queries.from_asyncpg_connection(connection)
            if not await queries.schema_is_installed():
                await queries.install()
            await connection.close()

        uvloop.run(make())

    def close(self) -> None:
        pass

    def waiting(self) -> int:
        with psycopg.connect(self._conninfo) as connection:
            row = connection.execute("SELECT count(*) FROM pgqueuer WHERE status = 'queued'").fetchone()
            return int(row[0]) if row else 0

    def stock(self, count: int) -> None:
        async def fill() -> None:
            connection = await asyncpg.connect(self._conninfo)
            await _enqueue(Queries.from_asyncpg_connection(connection), count)
            await connection.close()

        uvloop.run(fill())

    def enqueue(self, jobs: int) -> float:
        return float(uvloop.run(self._enqueue(jobs)))

    async def _enqueue(self, jobs: int) -> float:
        shares, clock = Shares(jobs), asyncio.get_running_loop()

        async def work(connection: asyncpg.Connection) -> None:
            queries = Queries.from_asyncpg_connection(connection)
            while size := shares.take():
                await _enqueue(queries, size)

        connections = [await asyncpg.connect(self._conninfo) for _ in range(CONCURRENCY)]
        started = clock.time()
        await asyncio.gather(*map(work, connections))
        took = clock.time() - started
        for connection in connections:
            await connection.close()
        return float(took)

    def drain(self, jobs: int) -> float:
        return float(uvloop.run(self._drain(jobs)))

    async def _drain(self, jobs: int) -> float:
        connection = await asyncpg.connect(self._conninfo)
        worker = PgQueuer.from_asyncpg_connection(connection)
        stopwatch = Stopwatch(jobs, worker.shutdown.set)

        async def nothing(_: Job) -> None:
            stopwatch.job()

        worker.entrypoint(ENTRYPOINT, concurrency_limit=CONCURRENCY)(nothing)
        await worker.run(batch_size=BATCH)
        await connection.close()
        return stopwatch.seconds


async def _enqueue(queries: Queries, count: int) -> None:
    await queries.enqueue([ENTRYPOINT] * count, [None] * count, [0] * count)
