"""Whether a tick would find anything to do: one statement, asked without importing what work would need.

Most ticks of a quiet night end here. SQLAlchemy and the domain cost more CPU to import than the question.
"""

from __future__ import annotations

import time
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

#: A database that starts again is back by then.
RETRIES_S = (1.0, 3.0, 10.0)

# Jobs that wait for a closed lane are no work: a tick could not claim them. The order is that of the index,
# so that the first job that may be claimed answers.
IS_THERE_WORK = """
    WITH closed AS MATERIALIZED (
        SELECT kind, name FROM nightdesk.lane_pauses WHERE closed_at IS NULL AND until > nightdesk.now()
    )
    SELECT (SELECT id FROM nightdesk.jobs WHERE state = 'ready' AND phase = %(phase)s
            AND (phase <> 'publish' OR site <> ALL(ARRAY(SELECT name FROM closed WHERE kind = 'site')))
            AND (provider IS NULL OR provider <> ALL(ARRAY(SELECT name FROM closed WHERE kind = 'provider')))
            ORDER BY priority DESC, created_at, id LIMIT 1) IS NOT NULL
        OR EXISTS (SELECT 1 FROM nightdesk.jobs
                   WHERE state = 'waiting' AND due_at <= nightdesk.now() AND phase = %(phase)s)
        OR EXISTS (SELECT 1 FROM nightdesk.jobs
                   WHERE state = 'leased' AND locked_until <= nightdesk.now() AND phase = %(phase)s)
"""


def is_there_work(database_url: str, phase: str) -> bool:
    """True if a tick of this phase would find something to do.

    Raises:
        psycopg.Error: if the database cannot be asked, or does not come back.
    """
    import psycopg

    for delay_s in (*RETRIES_S, None):
        try:
            with psycopg.connect(
                libpq_url(database_url), prepare_threshold=None, connect_timeout=10
            ) as connection:
                row = connection.execute(IS_THERE_WORK, {"phase": phase}).fetchone()
                return row is not None and bool(row[0])
        except psycopg.OperationalError:
            if delay_s is None:
                raise
            time.sleep(delay_s)
    raise AssertionError("the last try returns or raises")


def libpq_url(database_url: str) -> str:
    """The address as libpq takes it, without the marks that others put in it."""
    parts = urlsplit(database_url)
    kept = [(name, value) for name, value in parse_qsl(parts.query) if name != "pgbouncer"]
    return urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(kept), ""))
