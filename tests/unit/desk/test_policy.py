"""The failure policy table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightdesk.desk.policy import ATTEMPTS, NEXT_ATTEMPT_S, PAUSE_S, decide, retry_after_s
from nightdesk.errors import (
    Blocked,
    JobError,
    Lane,
    LaneKind,
    NeedsPerson,
    OverJobCap,
    Permanent,
    ToldToWait,
    Transient,
)
from nightdesk.states import JobState

LANE = Lane(LaneKind.PROVIDER, "anthropic")
CHANCE = st.floats(0, 1, exclude_max=True)


def test_a_transient_error_is_retried_after_1_4_and_12_seconds_with_jitter_and_then_no_more() -> None:
    error = Transient("x")
    assert [retry_after_s(error, n, 0, 0.0) for n in range(4)] == [1.0, 4.0, 12.0, None]
    assert retry_after_s(error, 0, 0, 0.999) == pytest.approx(1.3, abs=0.01)


def test_a_short_wait_is_slept_through_and_a_long_one_gives_the_place_back() -> None:
    assert retry_after_s(ToldToWait("x", retry_after_s=30), 3, 0, 0.5) == 30
    assert retry_after_s(ToldToWait("x", retry_after_s=31), 0, 0, 0.5) is None
    assert retry_after_s(ToldToWait("x", retry_after_s=86_400), 0, 0, 0.5) is None


def test_a_provider_that_always_says_wait_does_not_hold_a_worker_for_ever() -> None:
    slept = [retry_after_s(ToldToWait("x", retry_after_s=1), 0, n, 0.5) for n in range(10)]
    assert slept.count(None) == 5


@pytest.mark.parametrize(
    "error", [Permanent("x"), Blocked("x", lane=LANE), NeedsPerson("x"), OverJobCap("x"), ValueError("x")]
)
def test_nothing_else_is_tried_again_within_an_attempt(error: Exception) -> None:
    assert retry_after_s(error, 0, 0, 0.5) is None


@given(CHANCE)
def test_a_transient_error_waits_about_half_an_hour_until_the_third_attempt(chance: float) -> None:
    for attempt in range(1, ATTEMPTS):
        verdict = decide(Transient("x"), attempts=attempt, max_attempts=ATTEMPTS, chance=chance)
        assert verdict.state is JobState.WAITING
        assert verdict.counted
        assert 0.9 * NEXT_ATTEMPT_S <= (verdict.wait_s or 0) <= 1.1 * NEXT_ATTEMPT_S
    last = decide(Transient("x"), attempts=ATTEMPTS, max_attempts=ATTEMPTS, chance=chance)
    assert last.state is JobState.FAILED


@given(CHANCE, st.integers(1, 50))
def test_what_is_not_the_jobs_fault_costs_no_attempt_and_closes_the_lane(
    chance: float, attempts: int
) -> None:
    blocked = decide(Blocked("401", lane=LANE), attempts=attempts, max_attempts=3, chance=chance)
    told = decide(
        ToldToWait("429", lane=LANE, retry_after_s=171), attempts=attempts, max_attempts=3, chance=chance
    )
    assert (blocked.state, blocked.counted, blocked.pause, blocked.wait_s) == (
        JobState.WAITING,
        False,
        LANE,
        PAUSE_S,
    )
    assert (told.state, told.counted, told.pause, told.wait_s) == (JobState.WAITING, False, LANE, 171)


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (Permanent("404"), JobState.FAILED),
        (NeedsPerson("refused"), JobState.NEEDS_REVIEW),
        (OverJobCap("cap"), JobState.FAILED),
        (OverJobCap("cap", only_unknown=True), JobState.WAITING),
        (KeyError("a bug"), JobState.FAILED),
    ],
)
def test_the_rest_of_the_table(error: Exception, state: JobState) -> None:
    assert decide(error, attempts=1, max_attempts=3, chance=0.5).state is state


def test_every_class_of_failure_is_in_the_table() -> None:
    for kind in JobError.__subclasses__():
        decide(kind("x"), attempts=1, max_attempts=3, chance=0.5)
