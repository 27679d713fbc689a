"""Procrastinate on its psycopg connector with a worker of concurrency 10; it claims one job at a time."""

from __future__ import annotations

import asyncio
import time

import psycopg
from procrastinate import App, PsycopgConnector  # type: ignore[import-not-found,unused-ignore]
from sqlalchemy.engine import URL

from benchmarks.queue_peers.system import CONCURRENCY, Shares, Stopwatch

TASK = "nothing"
# One row was made through the interface; the triggers would write an event and send a notice for each copy.
_CLONE = """
    INSERT INTO procrastinate_jobs (queue_name, task_name, priority, args, status)
    SELECT 'default', %s, 0, '{}', 'todo' FROM generate_series(1, %s)
"""


class OnProcrastinate:
    """Version 3 with its default settings and schema."""

    def __init__(self, url: URL) -> None:
        self._conninfo = url.set(drivername="postgresql").render_as_string(hide_password=False)

    def _app(self) -> App:
        return App(
            connector=PsycopgConnector(
                conninfo=self._conninfo, min_size=CONCURRENCY + 2, max_size=CONCURRENCY + 2
            )
        )

    def install(self) -> None:
        async def make() -> None:
            async with self._app().open_async() as app:
                await app.schema_manager.apply_schema_async()

        with psycopg.connect(self._conninfo) as connection:
            row = connection.execute("SELECT to_regclass('procrastinate_jobs')").fetchone()
        if row is None or row[0] is None:
            asyncio.run(make())

    def close(self) -> None:
        pass

    def waiting(self) -> int:
        with psycopg.connect(self._conninfo) as connection:
            row = connection.execute(
                "SELECT count(*) FROM procrastinate_jobs WHERE status = 'todo'"
            ).fetchone()
            return int(row[0]) if row else 0

    def stock(self, count: int) -> None:
        with psycopg.connect(self._conninfo) as connection:
            connection.execute("SET LOCAL session_replication_role = replica")
            connection.execute(_CLONE, (TASK, count))

    def enqueue(self, jobs: int) -> float:
        return asyncio.run(self._enqueue(jobs))

    async def _enqueue(self, jobs: int) -> float:
        shares = Shares(jobs)
        async with self._app().open_async() as app:
            deferrer = app.configure_task(TASK)

            async def work() -> None:
                while size := shares.take():
                    await deferrer.batch_defer_async(*({} for _ in range(size)))

            started = time.perf_counter()
            await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
            return time.perf_counter() - started

    def drain(self, jobs: int) -> float:
        return asyncio.run(self._drain(jobs))

    async def _drain(self, jobs: int) -> float:
        done = asyncio.Event()
        stopwatch = Stopwatch(jobs, done.set)

        async def nothing() -> None:
            stopwatch.job()

        app = self._app()
        app.task(name=TASK)(nothing)
        async with app.open_async():
            worker = asyncio.create_task(
                app.run_worker_async(concurrency=CONCURRENCY, install_signal_handlers=False)
            )
            await asyncio.wait([worker, asyncio.create_task(done.wait())], return_when="FIRST_COMPLETED")
            worker.cancel()
            await asyncio.gather(worker, return_exceptions=True)
        return stopwatch.seconds
