"""A job that comes back from the dead letters begins a new life, but for its fence."""

from __future__ import annotations

from nightdesk.db import Database
from nightdesk.desk import queue
from nightdesk.desk.dead_letters import requeue, route_failed
from tests.integration.desk_fixtures import add_articles
from tests.integration.test_queue_reports import claim, rows


def test_a_requeued_job_starts_afresh_but_for_its_fence(database: Database) -> None:
    add_articles(database, "a")
    for _ in range(2):
        with database.transaction() as session:
            claim(session)
            queue.rescue_run(session, "run-a")
    with database.transaction() as session:
        (old,) = claim(session, suspects=True)
        queue.rescue_run(session, "run-a", most_deaths=3)
        route_failed(session, [old.job_id], "event")
    (letter,) = rows(database, "dead_letters")
    assert (letter.message, letter.error_class) == ("its run was killed (3 times so far)", "run_killed")
    assert [one["run"] for one in letter.attempts] == ["run-a"] * 3
    with database.transaction() as session:
        requeue(session, letter.id, who="ana", why="more memory")
    (job,) = rows(database, "jobs")
    assert (job.state, job.attempts, job.deaths, job.claim_no) == ("ready", 0, 0, 3)
    assert {job.locked_by, job.locked_until, job.due_at, job.reason, job.reasons, job.error_class} == {None}
    with database.transaction() as session:
        (fresh,) = claim(session)
    assert (fresh.claim_no, fresh.attempts) == (4, 1)
