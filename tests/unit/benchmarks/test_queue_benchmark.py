"""The benchmark of the queue runs as the README says and answers in the shape that it promises."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "queue.py"
#: The peer is measured where it is installed.
PEERS = ["pgqueuer"] if find_spec("pgqueuer") else []

pytestmark = pytest.mark.timeout(300)


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *options], capture_output=True, text=True, timeout=280, cwd="/"
    )


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    done = run("--quick", "--json", *([] if PEERS else ["--no-peers"]))
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_each_system_is_measured_at_each_op_and_backlog(report: dict[str, Any]) -> None:
    measured = {(row["system"], row["op"], row["backlog"]) for row in report["rows"]}
    assert measured == {
        (system, op, backlog)
        for system in ("bare", "nightdesk", *PEERS)
        for op in ("enqueue", "drain")
        for backlog in (100, 400)
    }
    assert len(report["rows"]) == len(measured)


def test_rows_are_rates_and_ratios(report: dict[str, Any]) -> None:
    for row in report["rows"]:
        assert set(row) == {"system", "op", "backlog", "per_s", "ratio_to_bare"}
        assert row["per_s"] > 0
        assert row["ratio_to_bare"] > 0


def test_the_summary_answers_the_three_questions(report: dict[str, Any]) -> None:
    assert set(report["summary"]) == {"ours_over_best_peer", "ours_over_bare", "slowdown_200k"}
    assert report["summary"]["ours_over_bare"] > 0
    assert report["summary"]["slowdown_200k"] > 0
    assert (report["summary"]["ours_over_best_peer"] is not None) == bool(PEERS)


def test_a_claim_has_a_number_of_pages_at_each_backlog(report: dict[str, Any]) -> None:
    assert set(report["claim_buffers"]) == {"100", "400"}
    assert all(isinstance(pages, int) and pages > 0 for pages in report["claim_buffers"].values())


def test_a_backlog_that_cannot_be_drained_is_refused_before_anything_is_started() -> None:
    done = run("--jobs", "10", "--backlogs", "5,20")
    assert done.returncode == 2
    assert "no backlog may be less than --jobs" in done.stderr
