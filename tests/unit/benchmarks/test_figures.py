"""A ratio compares what was measured in one round; a slow minute of the machine changes none."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.queue_peers import figures
from benchmarks.queue_peers.system import Shares, Stopwatch, run_threads

SYSTEMS = ("bare", "nightdesk", "pgqueuer", "dbos")
BACKLOGS = (5_000, 200_000)
Seconds = dict[tuple[str, int], dict[str, float]]

seconds = st.floats(min_value=0.01, max_value=100)
one_round = st.fixed_dictionaries(
    {
        (system, backlog): st.fixed_dictionaries({"enqueue": seconds, "drain": seconds})
        for backlog in BACKLOGS
        for system in SYSTEMS
    }
)
rounds_of = st.lists(one_round, min_size=1, max_size=5)


def took(**drain_s: float) -> Seconds:
    """A round at one backlog."""
    return {(system, 5_000): {"enqueue": 1.0, "drain": value} for system, value in drain_s.items()}


@given(rounds_of, st.lists(st.floats(min_value=0.1, max_value=10), min_size=5, max_size=5))
def test_a_slow_round_changes_no_ratio(rounds: list[Seconds], factors: list[float]) -> None:
    slowed = [
        {key: {op: value * factor for op, value in ops.items()} for key, ops in one.items()}
        for one, factor in zip(rounds, factors, strict=False)
    ]
    for name, value in figures.summary(rounds).items():
        assert figures.summary(slowed)[name] == pytest.approx(value, abs=0.002), name
    for before, after in zip(figures.rows(rounds, 100), figures.rows(slowed, 100), strict=True):
        assert after.ratio_to_bare == pytest.approx(before.ratio_to_bare, abs=0.002)


@given(rounds_of)
def test_each_system_has_a_row_for_each_op_and_backlog_and_bare_is_one(rounds: list[Seconds]) -> None:
    rows = figures.rows(rounds, 100)
    assert len({(row.system, row.op, row.backlog) for row in rows}) == len(rows) == 2 * len(rounds[0])
    assert all(row.ratio_to_bare == 1 for row in rows if row.system == "bare")


@given(rounds_of)
def test_no_summary_is_better_than_any_row_of_it(rounds: list[Seconds]) -> None:
    ours = [
        row.ratio_to_bare
        for row in figures.rows(rounds, 100)
        if row.system == "nightdesk" and row.op == "drain"
    ]
    assert figures.summary(rounds)["ours_over_bare"] == min(ours)


def test_the_peer_to_beat_is_the_fastest_of_its_round() -> None:
    rounds = [took(bare=1, nightdesk=2, pgqueuer=4, dbos=8), took(bare=1, nightdesk=2, pgqueuer=8, dbos=1)]
    # 4/2 in the first round, 1/2 in the second.
    assert figures.summary(rounds)["ours_over_best_peer"] == 1.25


def test_figures_are_medians_of_ratios_not_ratios_of_medians() -> None:
    rounds = [took(bare=1, nightdesk=2), took(bare=10, nightdesk=40), took(bare=100, nightdesk=100)]
    found = figures.summary(rounds)
    assert found["ours_over_bare"] == 0.5  # the medians' ratio would be 10/40
    assert found["ours_over_best_peer"] is None
    assert found["slowdown_200k"] is None


def test_the_slowdown_is_the_largest_backlog_over_the_smallest() -> None:
    one = {
        (system, backlog): {"enqueue": 1.0, "drain": drain_s}
        for backlog, drain_s in ((200_000, 3.0), (5_000, 2.0))
        for system in ("bare", "nightdesk")
    }
    assert figures.summary([one])["slowdown_200k"] == 1.5


@given(st.integers(0, 500), st.integers(1, 50))
def test_shares_add_up_to_the_jobs_asked_for(total: int, batch: int) -> None:
    shares = Shares(total, batch)
    taken = list(iter(shares.take, 0))
    assert sum(taken) == total
    assert all(size <= batch for size in taken)
    assert shares.take() == 0


def test_a_thread_that_fails_fails_the_measurement() -> None:
    def work(ready: Callable[[], object]) -> None:
        ready()
        raise RuntimeError("the backlog is too small")

    with pytest.raises(RuntimeError, match="too small"):
        run_threads(work)


def test_a_thread_that_cannot_connect_does_not_leave_the_others_waiting() -> None:
    def work(_: Callable[[], object]) -> None:
        raise ConnectionError("refused")

    with pytest.raises(ConnectionError):
        run_threads(work)


def test_a_worker_that_stops_too_early_has_no_rate() -> None:
    said: list[str] = []
    stopwatch = Stopwatch(3, lambda: said.append("last"))
    stopwatch.job()
    stopwatch.job()
    with pytest.raises(RuntimeError, match="2 of 3 jobs ran"):
        _ = stopwatch.seconds
    stopwatch.job()
    stopwatch.job()
    assert said == ["last"]
    assert stopwatch.seconds >= 0
