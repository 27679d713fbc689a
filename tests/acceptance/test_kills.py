"""Processes of the whole stack are killed at random moments, and the machine is "rebooted" again and again.

Each process is killed once in every run of the tests. NIGHTDESK_TEST_KILLS sets how often the machine is rebooted
(`make test-kills`: ten times; by default not at all), NIGHTDESK_TEST_KILL_SEED when.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from nightdesk.embedded import EmbeddedPostgres
from tests.acceptance import books
from tests.acceptance.demo_run import (
    data_folder,
    demo_database,
    kill_all,
    remove_cluster,
    run_demo,
    start_demo,
)
from tests.acceptance.test_crashes import some_topics

KILLS = int(os.environ.get("NIGHTDESK_TEST_KILLS", "0"))
SEED = os.environ.get("NIGHTDESK_TEST_KILL_SEED") or str(random.SystemRandom().randrange(10**6))


def worker(demo: psutil.Process, _home: Path) -> psutil.Process | None:
    return child(demo, "worker start")


def server(demo: psutil.Process, _home: Path) -> psutil.Process | None:
    return child(demo, "server start")


def a_run(demo: psutil.Process, _home: Path) -> psutil.Process | None:
    return child(demo, "prefect.engine")


def postgres(_demo: psutil.Process, home: Path) -> psutil.Process | None:
    return EmbeddedPostgres(data_folder(home))._postmaster()


def child(demo: psutil.Process, words: str) -> psutil.Process | None:
    with suppress(psutil.Error):
        for one in demo.children(recursive=True):
            with suppress(psutil.Error):
                if words in " ".join(one.cmdline()):
                    return one
    return None


@pytest.mark.timeout(1200)
def test_the_desk_goes_on_by_itself_whichever_of_its_processes_is_killed(tmp_path: Path) -> None:
    """Worker, server, Postgres and a run are each killed once, while articles are on their way."""
    chance = random.Random(SEED)
    victims = [worker, server, postgres, a_run]
    chance.shuffle(victims)
    demo = start_demo(tmp_path, "--topics", str(some_topics(tmp_path, 5)), "--latency", "2")
    try:
        parent = psutil.Process(demo.pid)
        until(lambda: a_run(parent, tmp_path), 120)
        for victim in victims:
            time.sleep(chance.uniform(2, 10))
            until(lambda victim=victim: killed(victim(parent, tmp_path)), 60)  # type: ignore[misc]
        printed, _ = demo.communicate(timeout=800)
        assert demo.returncode == 0, f"seed {SEED}: {printed}"
        everything_is_right(tmp_path)
    finally:
        if demo.poll() is None:
            kill_all(demo.pid)
        remove_cluster(tmp_path)


@pytest.mark.skipif(not KILLS, reason="minutes long: by `make test-kills`, which sets NIGHTDESK_TEST_KILLS")
@pytest.mark.timeout(400 + 90 * KILLS)
def test_a_machine_that_is_rebooted_again_and_again_goes_on_where_it_stood(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    topics = str(some_topics(tmp_path, 4))
    try:
        for _ in range(KILLS):
            demo = start_demo(tmp_path, "--topics", topics, "--latency", "1")
            wait(demo, chance.uniform(5, 60))
            everything = postgres(psutil.Process(), tmp_path)
            if demo.poll() is None:
                kill_all(demo.pid)
            killed(everything)
            demo.communicate(timeout=30)
        report, printed = run_demo(tmp_path, "--topics", topics)
        assert {one["state"] for one in report["articles"]} == {"published"}, f"seed {SEED}: {printed}"
        everything_is_right(tmp_path)
    finally:
        remove_cluster(tmp_path)


@pytest.mark.skipif(not KILLS, reason="minutes long: by `make test-kills`, which sets NIGHTDESK_TEST_KILLS")
@pytest.mark.timeout(400 + 60 * KILLS)
def test_a_desk_that_is_stopped_politely_leaves_nothing_running_and_nothing_held(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    topics = str(some_topics(tmp_path, 4))
    try:
        for _ in range(max(1, KILLS // 3)):
            demo = start_demo(tmp_path, "--topics", topics, "--latency", "2")
            wait(demo, chance.uniform(1, 70))
            family = psutil.Process(demo.pid).children(recursive=True) if demo.poll() is None else []
            demo.send_signal(chance.choice([signal.SIGINT, signal.SIGTERM]))
            demo.communicate(timeout=60)
            assert not [one for one in family if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
            assert postgres(psutil.Process(), tmp_path) is None
        report, printed = run_demo(tmp_path, "--topics", topics)
        assert {one["state"] for one in report["articles"]} == {"published"}, f"seed {SEED}: {printed}"
        everything_is_right(tmp_path)
        with demo_database(tmp_path) as database:
            books.no_run_died(database)
    finally:
        remove_cluster(tmp_path)


def everything_is_right(home: Path) -> None:
    with demo_database(home) as database:
        books.each_article_has_exactly_one_page(home, database)
        books.no_stored_answer_was_bought_again(database)
        books.what_was_billed_is_booked(home, database)
        books.nothing_is_held(database)


def killed(victim: psutil.Process | None) -> bool:
    if victim is None:
        return False
    with suppress(psutil.Error):
        victim.kill()
        victim.wait(10)
    return True


def until(done: object, within_s: float) -> None:
    assert callable(done)
    deadline = time.monotonic() + within_s
    while not done():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.1)


def wait(demo: subprocess.Popen[str], seconds: float) -> None:
    with suppress(subprocess.TimeoutExpired):
        demo.wait(seconds)
