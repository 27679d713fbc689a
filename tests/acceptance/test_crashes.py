"""A run of a phase is killed at every step: each article is on its site exactly once, nothing is paid twice.

Six seeded points by default; all of them with NIGHTDESK_TEST_KILL_POINTS=all (`make test-kills`).
"""

from __future__ import annotations

import csv
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance import books
from tests.acceptance.demo_run import demo_database, remove_cluster, run_demo

#: Another one each time, the same in all processes of one pytest run.
SEED = os.environ.get("NIGHTDESK_TEST_KILL_SEED") or os.environ.get(
    "PYTEST_XDIST_TESTRUNUID", str(random.SystemRandom().randrange(10**6))
)
WRITING = [
    f"{when}-{point}" for point in ("claim", "ask", "persist", "finish") for when in ("before", "after")
]
PUBLISHING = [
    f"{when}-{point}"
    for point in ("claim", "judge", "post", "prove", "conclude")
    for when in ("before", "after")
]
STEPS = dict.fromkeys(("research", "outline", "draft", "optimize"), WRITING) | {"publish": PUBLISHING}


def rounds() -> Iterator[list[str]]:
    """Kill points for one demo each; at most two in a phase, as more would look like a poisoned job."""
    chance = random.Random(SEED)
    shuffled = {phase: chance.sample(steps, len(steps)) for phase, steps in STEPS.items()}
    if os.environ.get("NIGHTDESK_TEST_KILL_POINTS") != "all":
        points = [f"{phase}-{steps[0]}" for phase, steps in shuffled.items()]
        yield [*points, f"publish-{shuffled['publish'][1]}"]
        return
    while any(shuffled.values()):
        yield [f"{phase}-{steps.pop()}" for phase, steps in shuffled.items() for _ in range(2) if steps]


@pytest.mark.timeout(1000)
@pytest.mark.parametrize("points", list(rounds()), ids=lambda points: f"seed {SEED}: {' '.join(points)}")
def test_a_run_killed_at_any_step_loses_nothing_and_doubles_nothing(
    tmp_path: Path, points: list[str]
) -> None:
    armed = tmp_path / "armed"
    armed.mkdir()
    for point in points:
        (armed / point).touch()
    report, printed = run_demo(
        tmp_path,
        "--topics",
        str(some_topics(tmp_path, 4)),
        more={"TEST_KILL_DIR": str(armed), "PYTHONPATH": str(Path(__file__).parent / "kill_points")},
    )
    try:
        assert list(armed.iterdir()) == [], "these steps were not reached"
        assert {one["state"] for one in report["articles"]} == {"published"}, printed
        assert all(one["live"] for one in report["articles"])
        with demo_database(tmp_path) as database:
            books.each_article_has_exactly_one_page(tmp_path, database)
            books.no_stored_answer_was_bought_again(database)
            books.what_was_billed_is_booked(tmp_path, database)
            books.nothing_is_held(database)
    finally:
        remove_cluster(tmp_path)


def some_topics(home: Path, count: int) -> Path:
    path = home / "topics.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["topic", "keyword", "site", "language", "priority", "min_words"])
        for number in range(count):
            writer.writerow(
                [f"Growing herbs on balcony number {number}", "growing herbs", "garden", "en", number, 200]
            )
    return path
