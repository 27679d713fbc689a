"""What other queues' users reported, as promises of this one.

Kept elsewhere: a zombie after the next claim, the cap on jobs that kill their worker, renewal
(`test_queue`, `test_suspects`); a requeue under a grown fence, one letter for two layers, one bad row in a
sweep (`test_dead_letters`); answers lost at a commit (`test_queue_lost_answers`); plans and pages
(`test_queue_plans`); renewal from a thread, cancelled work, keepalives (`test_runner`); what an idle tick
costs. Everything of the queue also runs through a pooler in transaction mode.

Not ours:
* a unique key that a rescue violates: states have no unique index, a rescue can meet no conflict;
* a reaper that is a job of its own and gets stuck, leader election: each tick rescues in its own transaction;
* empty or huge idempotency keys: a job's key is its article, phase and round;
* jobs of an unknown kind: the phase is checked by the table;
* exceptions that do not unpickle: only their text is kept;
* starvation of low priorities: the highest first is the promise, whoever sets priorities decides;
* retention, one NOTIFY per row, cron in summer time: jobs are kept, nothing is notified, Prefect schedules;
* a recycled pid in `postmaster.pid`: `test_embedded`.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlmodel import Session

from nightdesk.db import Database, now, transact
from nightdesk.desk import dead_letters, queue
from nightdesk.desk.dead_letters import route_failed, route_run, sweep_failed
from nightdesk.desk.failure_record import FailureRecord, record_failure
from nightdesk.desk.policy import Verdict
from nightdesk.desk.queue import Claim
from nightdesk.errors import Fenced, NeedsPerson, Permanent, Reason, Transient
from nightdesk.states import JobState, Phase
from tests.integration.desk_fixtures import PIN, SeededWorld, add_articles, claim_one, scalar

FAILED = Verdict(JobState.FAILED)


def claim(session: Session, run: str = "run-a", limit: int = 1, **more: Any) -> list[Claim]:
    return queue.claim(
        session, **{"run": run, "phase": Phase.RESEARCH, "limit": limit, "lease_s": 900, "pin": PIN} | more
    )


def rows(database: Database, table: str) -> list[Any]:
    with database.reading() as session:
        return list(session.connection().execute(text(f"SELECT * FROM nightdesk.{table} ORDER BY id")))


def jump(database: Database, **delta: float) -> datetime:
    with database.reading() as session:
        database.simulated_now = now(session) + timedelta(**delta)
    return database.simulated_now


def fail(database: Database, run: str = "run-a") -> Claim:
    held = claim_one(database, run)
    with database.transaction() as session:
        queue.give_up(session, held, FAILED, record_failure(Permanent("it cannot be")))
    return held


def cut_all(database: Database) -> None:
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )


# ── leases, zombies, stuck rows ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("end", ["finish", "renew"])
def test_a_rescue_leaves_alone_what_its_worker_is_just_finishing_or_renewing(
    database: Database, end: str
) -> None:
    add_articles(database, "a")
    held = claim_one(database)
    jump(database, minutes=16)
    with database.transaction() as worker:
        if end == "finish":
            queue.finish(worker, held)
        else:
            queue.renew(worker, held, 900)
        with database.transaction() as rescuer:
            assert queue.rescue_expired(rescuer) == []
    with database.transaction() as rescuer:
        assert queue.rescue_expired(rescuer) == []
    assert scalar(database, "SELECT state FROM nightdesk.jobs") == ("done" if end == "finish" else "leased")


def test_the_rescue_itself_looks_again_at_a_row_that_changed_after_it_was_found(database: Database) -> None:
    """The same statement, made to wait for the row instead of passing it by."""
    add_articles(database, "a")
    held = claim_one(database)
    jump(database, minutes=16)
    waiting = text(queue._RESCUE_EXPIRED.text.replace("SKIP LOCKED", ""))
    with ThreadPoolExecutor(1) as pool, database.transaction() as worker:
        queue.renew(worker, held, 900)

        def rescue() -> list[int]:
            with database.transaction() as session:
                values = {"limit": 10, "phase": None}
                return list(session.connection().execute(waiting, values).scalars())

        rescued = pool.submit(rescue)
        await_lock(database)
        worker.commit()
        assert rescued.result() == []
    assert scalar(database, "SELECT state FROM nightdesk.jobs") == "leased"


def await_lock(database: Database) -> None:
    """Until some backend of this database waits for a lock."""
    deadline = time.monotonic() + 10
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    while not scalar(database, query):
        assert time.monotonic() < deadline, "nothing waits"
        time.sleep(0.02)


def test_a_zombie_that_fails_after_a_newer_attempt_died_changes_neither_job_nor_letter(
    database: Database,
) -> None:
    add_articles(database, "a")
    zombie = claim_one(database, "run-zombie")
    jump(database, minutes=16)
    with database.transaction() as session:
        queue.rescue_expired(session)
    newer = fail(database, "run-newer")
    with database.transaction() as session:
        route_failed(session, [newer.job_id], "event")
    before = [rows(database, table) for table in ("jobs", "dead_letters", "job_attempts")]
    late = record_failure(Transient("late"))
    for verdict in (Verdict(JobState.WAITING, wait_s=1), Verdict(JobState.READY, counted=False), FAILED):
        with pytest.raises(Fenced), database.transaction() as session:
            queue.give_up(session, zombie, verdict, late)
    with database.transaction() as session:
        assert queue.hand_back_run(session, "run-zombie") == 0
        assert queue.rescue_run(session, "run-zombie") == []
        assert route_run(session, "run-zombie", "event") == 0
    assert [rows(database, table) for table in ("jobs", "dead_letters", "job_attempts")] == before


def test_a_lease_that_lapses_while_its_worker_finishes_has_one_outcome(database: Database) -> None:
    add_articles(database, *(f"topic {n}" for n in range(12)))
    with database.transaction() as session:
        held = claim(session, limit=12)
    jump(database, minutes=16)
    finished: set[int] = set()

    def finish() -> None:
        for one in held:
            try:
                with database.transaction() as session:
                    queue.finish(session, one)
                finished.add(one.job_id)
            except Fenced:
                pass

    def rescue() -> None:
        for _ in range(12):
            with database.transaction() as session:
                queue.rescue_expired(session, limit=1)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(finish), pool.submit(rescue)]:
            done.result()
    for job in rows(database, "jobs"):
        assert job.state == ("done" if job.id in finished else "ready")
    outcomes = {row.job_id: row.outcome for row in rows(database, "job_attempts")}
    assert {job for job, outcome in outcomes.items() if outcome == "done"} == finished
    assert len(rows(database, "job_attempts")) == 12


def test_what_a_worker_of_the_same_name_held_before_is_not_taken_for_its_own(database: Database) -> None:
    add_articles(database, "old", "new")
    old = claim_one(database, "same-name")
    jump(database, minutes=10)
    new = claim_one(database, "same-name")
    jump(database, minutes=10)
    with database.transaction() as session:
        assert queue.renew_all(session, [new], 900) == {new.job_id}
        assert queue.rescue_expired(session) == [old.job_id]


def test_a_rescuer_that_is_killed_holds_nothing_up(database: Database) -> None:
    add_articles(database, "a")
    held = claim_one(database)
    jump(database, minutes=16)
    with pytest.raises(DBAPIError), database.transaction() as session:
        assert queue.rescue_expired(session) == [held.job_id]
        cut_all(database)
    with database.transaction() as session:
        assert queue.rescue_expired(session) == [held.job_id]


@pytest.mark.parametrize("bring", [sweep_failed, route_failed])
async def test_a_database_that_breaks_off_within_a_letter_is_tried_again(
    database: Database, monkeypatch: pytest.MonkeyPatch, bring: Callable[..., int]
) -> None:
    add_articles(database, "a", "b")
    jobs = [fail(database).job_id for _ in range(2)]
    real, cuts = dead_letters._phase_input, [jobs[1], jobs[0]]

    def breaking(session: Session, job: Any) -> Any:
        if cuts and job.id == cuts[-1]:
            cuts.pop()
            cut_all(database)
        return real(session, job)

    monkeypatch.setattr(dead_letters, "_phase_input", breaking)

    def work(session: Session) -> int:
        return sweep_failed(session, 0, "sweep") if bring is sweep_failed else bring(session, jobs, "event")

    assert await transact(database, SeededWorld(), work) == 2
    assert cuts == []
    letters = rows(database, "dead_letters")
    assert [letter.job_id for letter in letters] == jobs
    assert all(isinstance(letter.input["phase"], dict) for letter in letters)


def test_a_clock_that_jumps_loses_no_job_and_gives_none_to_two(database: Database) -> None:
    add_articles(database, "waits", "is held")
    with database.transaction() as session:
        waits, held = claim(session, limit=2)
        verdict = Verdict(JobState.WAITING, wait_s=1_800)
        queue.give_up(session, waits, verdict, FailureRecord("503"))
    start = jump(database, days=-2)
    with database.transaction() as session:
        assert (queue.wake_due(session), queue.rescue_expired(session)) == (0, [])
        queue.renew(session, held, 900)  # By the clock of two days ago it ends long before it did.
        assert claim(session, "run-b", 5) == []
    database.simulated_now = start + timedelta(minutes=14)
    with database.transaction() as session:
        assert queue.rescue_expired(session) == []
    database.simulated_now = start + timedelta(days=400)
    with database.transaction() as session:
        assert queue.rescue_expired(session) == [held.job_id]
        assert queue.wake_due(session) == 1
        assert {one.job_id for one in claim(session, "run-b", 5)} == {waits.job_id, held.job_id}
    database.simulated_now = start
    with pytest.raises(Fenced), database.transaction() as session:
        queue.finish(session, held)


# ── saving errors ────────────────────────────────────────────────────────────────────────────────


def chain(depth: int) -> Exception:
    error: Exception = ValueError("the first cause")
    for number in range(depth):
        outer = ValueError(f"cause {number}")
        outer.__cause__ = error
        error = outer
    return error


class Exploding(Exception):
    def __str__(self) -> str:
        raise ValueError("no text for you")


class Endless(Exception):
    def __str__(self) -> str:
        return str(self)


class NoText(Exception):
    def __str__(self) -> str:
        return float("nan")  # type: ignore[return-value]


def circle() -> Exception:
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    return one


def nested_groups(depth: int) -> Exception:
    error: Exception = ValueError("inside")
    for _ in range(depth):
        error = ExceptionGroup("around", [error])
    return error


HOSTILE: dict[str, Callable[[], Exception]] = {
    "NUL": lambda: ValueError("a\x00b"),
    "surrogate": lambda: ValueError("\ud83d"),
    "escape sequences": lambda: ValueError("\\u0000 \x1b[31m \\ud800"),
    "not text": lambda: ValueError(b"\xff\x00", float("nan"), {1, 2}),
    "explodes": Exploding,
    "endless": Endless,
    "no text": NoText,
    "causes": lambda: chain(1_000),
    "circle": circle,
    "groups": lambda: nested_groups(1_500),
    "reasons": lambda: NeedsPerson("\x00", reasons=(Reason("r\x00", "m\ud800", "p\x00" * 1_000),) * 500),
}


def test_a_failure_is_recorded_whatever_it_holds_and_its_neighbours_move_on(database: Database) -> None:
    add_articles(database, *(f"topic {n}" for n in range(len(HOSTILE) + 1)))
    with database.transaction() as session:
        *held, neighbour = claim(session, limit=len(HOSTILE) + 1)
    with database.transaction() as session:
        for one, make in zip(held, HOSTILE.values(), strict=True):
            queue.give_up(session, one, FAILED, record_failure(make()))
        queue.finish(session, neighbour)
    with database.transaction() as session:
        assert sweep_failed(session, 0, "sweep") == len(HOSTILE)
    letters = rows(database, "dead_letters")
    assert all(letter.message and letter.error_class for letter in letters)
    assert all("unreadable" not in letter.input for letter in letters)


def test_a_record_of_any_size_is_cut_and_its_class_is_kept(database: Database) -> None:
    add_articles(database, "a")
    held = claim_one(database)
    vast = "x" * 300_000_000
    record = FailureRecord(vast, "needs_person", vast, ({"rule": "r", "message": vast, "passage": "\x00"},))
    with database.transaction() as session:
        queue.give_up(session, held, FAILED, record)
        assert route_failed(session, [held.job_id], "event") == 1
    (letter,) = rows(database, "dead_letters")
    assert len(letter.message) + len(letter.stack) < 100_000
    assert letter.error_class == "needs_person"
    assert scalar(database, "SELECT pg_column_size(reasons) < 10000 FROM nightdesk.jobs") is True


@pytest.mark.parametrize("note", ["a\x00b", "\ud800", "n" * 100_000])
def test_no_note_keeps_a_job_from_being_done(database: Database, note: str) -> None:
    add_articles(database, "a")
    held = claim_one(database)
    with database.transaction() as session:
        queue.finish(session, held, note)
    assert scalar(database, "SELECT state FROM nightdesk.jobs") == "done"


@pytest.mark.parametrize("name", ["run\x00", "run-\ud800"])
def test_a_run_whose_name_cannot_be_stored_takes_nothing(database: Database, name: str) -> None:
    add_articles(database, "a")
    with pytest.raises((DBAPIError, UnicodeEncodeError)), database.transaction() as session:
        claim(session, name)
    assert scalar(database, "SELECT state || claim_no FROM nightdesk.jobs") == "ready0"


# ── SQL, scale, fairness ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("suspects", [False, True])
def test_no_plan_makes_a_claim_take_more_than_it_asked_for(database: Database, suspects: bool) -> None:
    add_articles(database, *(f"topic {n}" for n in range(50)))
    with database.transaction() as session:
        connection = session.connection()
        connection.execute(text("UPDATE nightdesk.jobs SET deaths = :n"), {"n": 2 if suspects else 1})
        for kind in ("hashjoin", "mergejoin", "material", "sort", "seqscan", "bitmapscan", "hashagg"):
            connection.execute(text(f"SET LOCAL enable_{kind} = off"))
        assert len(claim(session, limit=3, suspects=suspects)) == 3
        held = connection.execute(text("SELECT count(*) FROM nightdesk.jobs WHERE state = 'leased'"))
        assert held.scalar() == 3
        connection.execute(text("UPDATE nightdesk.jobs SET locked_until = '-infinity' WHERE locked_by > ''"))
        assert len(queue.rescue_expired(session, limit=1)) == 1


def test_what_cannot_be_claimed_takes_no_place_from_what_can(database: Database) -> None:
    add_articles(database, *(f"head {n}" for n in range(5)), priority=9)
    add_articles(database, *(f"closed {n}" for n in range(5)), priority=8)
    add_articles(database, *(f"not due {n}" for n in range(5)), priority=7)
    (good,) = add_articles(database, "good")
    with database.transaction() as session:
        move = "UPDATE nightdesk.jobs SET {} WHERE article_id IN (SELECT id FROM nightdesk.articles WHERE topic LIKE :t)"
        for change, topics in (
            ("deaths = 2", "head %"),
            ("site = 'kitchen'", "closed %"),
            ("state = 'waiting', due_at = nightdesk.now() + interval '1 day'", "not due %"),
        ):
            session.connection().execute(text(move.format(change)), {"t": topics})
        assert [one.article_id for one in claim(session, closed_sites=["kitchen"])] == [good]


def test_a_snapshot_held_elsewhere_neither_stops_nor_misleads_a_claim(database: Database) -> None:
    add_articles(database, *(f"topic {n}" for n in range(20)))
    with database.engine.connect().execution_options(isolation_level="REPEATABLE READ") as holder:
        count = text("SELECT count(*) FROM nightdesk.jobs WHERE state = 'ready'")
        assert holder.execute(count).scalar() == 20
        taken: list[int] = []
        for _ in range(20):
            held = claim_one(database)
            taken.append(held.job_id)
            with database.transaction() as session:
                queue.finish(session, held)
        assert holder.execute(count).scalar() == 20
        holder.rollback()
    assert len(set(taken)) == 20
    assert scalar(database, "SELECT count(*) FROM nightdesk.jobs WHERE state = 'done'") == 20


def test_sweeps_rescues_and_routes_of_the_same_rows_do_not_deadlock(database: Database) -> None:
    """The sweep goes by age, a run's route by id: here the ages run against the ids."""
    add_articles(database, *(f"topic {n}" for n in range(16)))
    jobs = [fail(database).job_id for _ in range(16)]
    faults: list[BaseException] = []
    with database.transaction() as session:
        session.connection().execute(
            text("UPDATE nightdesk.jobs SET updated_at = updated_at - make_interval(mins => id::int)")
        )
    start = threading.Barrier(4)

    def bring(work: Callable[[Session], Any]) -> None:
        try:
            with database.transaction() as session:
                start.wait()
                work(session)
        except BaseException as error:
            faults.append(error)

    works: list[Callable[[Session], Any]] = [
        lambda session: sweep_failed(session, 0, "sweep"),
        lambda session: sweep_failed(session, 0, "sweep"),
        lambda session: route_run(session, "run-a", "event"),
        lambda session: route_failed(session, list(reversed(jobs)), "automation"),
    ]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(bring, works))
    assert faults == []
    assert sorted(letter.job_id for letter in rows(database, "dead_letters")) == jobs


def test_rescue_and_wake_pass_by_rows_that_another_holds(database: Database) -> None:
    add_articles(database, "held", "free")
    with database.transaction() as session:
        claim(session, limit=2)
    jump(database, minutes=16)
    with database.transaction() as first, database.transaction() as second:
        assert len(queue.rescue_expired(first, limit=1)) == 1
        assert len(queue.rescue_expired(second)) == 1


# ── all at once ──────────────────────────────────────────────────────────────────────────────────


def test_concurrent_workers_some_of_which_come_back_late_end_each_job_once(database: Database) -> None:
    """Leases are shorter than some of the work: those workers are zombies when they finish."""
    add_articles(database, *(f"topic {n}" for n in range(30)))
    with database.transaction() as session:
        session.connection().execute(text("UPDATE nightdesk.jobs SET max_attempts = 1000"))
    accepted: list[tuple[int, int]] = []
    fenced: list[int] = []
    over = time.monotonic() + 40

    def finish(one: Claim) -> None:
        try:
            with database.transaction() as session:
                queue.finish(session, one)
            accepted.append((one.job_id, one.claim_no))
        except Fenced:
            fenced.append(one.job_id)

    def work(number: int) -> None:
        chance = random.Random(number)
        while len(accepted) < 30 and time.monotonic() < over:
            with database.transaction() as session:
                queue.rescue_expired(session)
                held = claim(session, f"run-{number}", 3, lease_s=0.5)
            if chance.random() < 0.3:
                time.sleep(0.7)
            for one in held:
                finish(one)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert sorted(job for job, _ in accepted) == sorted(job.id for job in rows(database, "jobs"))
    assert {(job.id, job.claim_no) for job in rows(database, "jobs")} == set(accepted)
    assert fenced, "nobody came late: this proved nothing"
