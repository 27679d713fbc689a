"""The floor: psycopg connections in threads that send the very statements of Nightdesk's queue, no more."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import psycopg
from sqlalchemy.engine import URL

from benchmarks.queue_peers.shipped import Sent, Shipped
from benchmarks.queue_peers.system import Shares, run_threads


class Bare:
    """No SQLAlchemy, no pool, no limits set per transaction, no objects made of rows."""

    def __init__(self, url: URL) -> None:
        self._shipped = Shipped(url)
        self._conninfo = url.set(drivername="postgresql").render_as_string(hide_password=False)

    def install(self) -> None:
        self._shipped.install()

    def waiting(self) -> int:
        return self._shipped.waiting()

    def stock(self, count: int) -> None:
        self._shipped.stock(count)

    def enqueue(self, jobs: int) -> float:
        adding, _, _ = self._shipped.sent_by()
        articles, shares = iter(self._shipped.add_articles(jobs)), Shares(jobs)

        def work(ready: Callable[[], object]) -> None:
            with psycopg.connect(self._conninfo) as connection:
                ready()
                while size := shares.take():
                    for _ in range(size):
                        _send(connection, adding, article_id=next(articles))
                    connection.commit()

        return run_threads(work)

    def drain(self, jobs: int) -> float:
        _, [(claim, values)], finishing = self._shipped.sent_by()
        shares = Shares(jobs)

        def work(ready: Callable[[], object]) -> None:
            with psycopg.connect(self._conninfo) as connection:
                ready()
                while size := shares.take():
                    rows = connection.execute(claim, values | {"limit": size}).fetchall()
                    connection.commit()
                    if len(rows) < size:
                        raise RuntimeError(
                            f"{len(rows)} jobs claimed, {size} asked for: the backlog is too small"
                        )
                    for job_id, claim_no, *_ in rows:
                        _send(connection, finishing, job_id=job_id, claim_no=claim_no)
                        connection.commit()

        return run_threads(work)

    def close(self) -> None:
        self._shipped.close()


def _send(connection: psycopg.Connection, statements: Sequence[Sent], **values: object) -> None:
    """Each statement must have changed one row."""
    for statement, given in statements:
        if connection.execute(statement, given | values).rowcount != 1:
            raise RuntimeError(
                f"no row was changed: the floor is not what it claims to be ({statement.strip()[:60]} …)"
            )
