"""DBOS with worker concurrency 10, polled every 10 ms (at its default of 1 s: ten jobs a second)."""

from __future__ import annotations

import threading
from collections.abc import Callable

import psycopg
from dbos import DBOS, DBOSClient, DBOSConfig  # type: ignore[import-not-found,unused-ignore]
from sqlalchemy.engine import URL

from benchmarks.queue_peers.system import CONCURRENCY, Shares, Stopwatch, run_threads

QUEUE = "benchmark"
WORKFLOW = "nothing"
POLL_S = 0.01
DRAIN_TIMEOUT_S = 300
_CLONE = """
    WITH model AS (SELECT w FROM dbos.workflow_status w WHERE status = 'ENQUEUED' LIMIT 1),
        copies AS MATERIALIZED (
            SELECT jsonb_build_object('workflow_uuid', gen_random_uuid()) AS id FROM generate_series(1, %s)
        ), inputs AS (
            INSERT INTO dbos.workflow_input
            SELECT made.* FROM model JOIN dbos.workflow_input i ON i.workflow_uuid = (model.w).workflow_uuid,
                copies, jsonb_populate_record(i, copies.id) made
        )
    INSERT INTO dbos.workflow_status
    SELECT made.* FROM model, copies, jsonb_populate_record(model.w, copies.id) made
"""


class OnDbos:
    """Version 3; it has no enqueueing in batches."""

    def __init__(self, url: URL) -> None:
        self._url = url.render_as_string(hide_password=False)
        self._conninfo = url.set(drivername="postgresql").render_as_string(hide_password=False)

    def _configure(self) -> None:
        config: DBOSConfig = {
            "name": "benchmark",
            "system_database_url": self._url,
            "log_level": "ERROR",
            "executor_id": "benchmark",
            "application_version": "1",
        }
        DBOS(config=config)

    def install(self) -> None:
        self._configure()
        DBOS.listen_queues([])  # there is no workflow yet that could run what waits
        DBOS.launch()
        DBOS.register_queue(QUEUE, worker_concurrency=CONCURRENCY, polling_interval_sec=POLL_S)
        DBOS.destroy()

    def close(self) -> None:
        pass

    def waiting(self) -> int:
        with psycopg.connect(self._conninfo) as connection:
            row = connection.execute(
                "SELECT count(*) FROM dbos.workflow_status WHERE status = 'ENQUEUED'"
            ).fetchone()
            return int(row[0]) if row else 0

    def stock(self, count: int) -> None:
        self.enqueue(1)
        with psycopg.connect(self._conninfo) as connection:
            connection.execute(_CLONE, (count - 1,))

    def enqueue(self, jobs: int) -> float:
        shares = Shares(jobs, 1)
        client = DBOSClient(system_database_url=self._url)

        def work(ready: Callable[[], object]) -> None:
            ready()
            while shares.take():
                client.enqueue({"workflow_name": WORKFLOW, "queue_name": QUEUE, "app_version": "1"})

        try:
            return run_threads(work)
        finally:
            client.destroy()

    def drain(self, jobs: int) -> float:
        done = threading.Event()
        stopwatch = Stopwatch(jobs, done.set)

        def nothing() -> None:
            stopwatch.job()

        DBOS.workflow(name=WORKFLOW)(nothing)
        self._configure()
        DBOS.launch()
        try:
            done.wait(DRAIN_TIMEOUT_S)
        finally:
            DBOS.destroy(destroy_registry=True, workflow_completion_timeout_sec=10)
        return stopwatch.seconds
