"""From an error response to the failure policy: codes before statuses, words where nothing else is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightdesk.errors import (
    Blocked,
    JobError,
    Lane,
    LaneKind,
    NeedsPerson,
    Permanent,
    ToldToWait,
    Transient,
)
from nightdesk.llm.failures import (
    DEFAULT_WAIT_S,
    FLAGGED,
    OUT_OF_MONEY,
    ProviderError,
    classify,
    lost,
    misconfigured,
    not_sent,
    unsendable,
)
from nightdesk.llm.port import Billing

LANE = Lane(LaneKind.PROVIDER, "openai")
STATUSES = st.integers(400, 599)


def an_error(
    status: int, *codes: str, message: str = "no", retry_after_s: float | None = None
) -> ProviderError:
    return ProviderError("openai", status, frozenset(codes), message, retry_after_s)


@pytest.mark.parametrize(
    ("status", "error", "billing"),
    [
        (400, Permanent, Billing.NOTHING),
        (401, Blocked, Billing.NOTHING),
        (402, Blocked, Billing.NOTHING),
        (403, Blocked, Billing.NOTHING),
        (404, Blocked, Billing.NOTHING),
        (405, Blocked, Billing.NOTHING),
        (408, Transient, Billing.UNKNOWN),
        (409, Transient, Billing.NOTHING),
        (413, Permanent, Billing.NOTHING),
        (422, Permanent, Billing.NOTHING),
        (429, ToldToWait, Billing.NOTHING),
        (500, Transient, Billing.UNKNOWN),
        (502, Transient, Billing.UNKNOWN),
        (503, Transient, Billing.NOTHING),
        (504, Transient, Billing.UNKNOWN),
        (520, Transient, Billing.UNKNOWN),
        (524, Transient, Billing.UNKNOWN),
        (529, Transient, Billing.NOTHING),
    ],
)
def test_a_status_alone_has_a_class_and_a_bill(status: int, error: type[JobError], billing: Billing) -> None:
    failed = classify(an_error(status))
    assert (type(failed.error), failed.billing) == (error, billing)


@given(st.sampled_from(sorted(OUT_OF_MONEY)), STATUSES)
def test_no_money_closes_the_provider_whatever_the_status(code: str, status: int) -> None:
    failed = classify(an_error(status, code, "another"))
    assert type(failed.error) is Blocked
    assert failed.error.lane == LANE
    assert failed.billing is Billing.NOTHING


@given(st.sampled_from(sorted(FLAGGED)), st.sampled_from([400, 422, 429, 500]))
def test_a_flagged_prompt_needs_a_person_and_is_never_sent_again(code: str, status: int) -> None:
    failed = classify(an_error(status, code))
    assert isinstance(failed.error, NeedsPerson)
    assert [reason.rule for reason in failed.error.reasons] == ["prompt_flagged"]


@pytest.mark.parametrize("code", ["insufficient_quota", "enforced_spend_limit_reached"])
def test_a_retry_after_does_not_open_a_wall_of_money(code: str) -> None:
    for status in (402, 429):
        assert type(classify(an_error(status, code, retry_after_s=5)).error) is Blocked


def test_a_402_that_says_when_to_return_passes_by_itself() -> None:
    failed = classify(an_error(402, "billing_error", retry_after_s=120))
    assert isinstance(failed.error, ToldToWait)
    assert failed.error.retry_after_s == 120
    assert type(classify(an_error(402, "billing_error")).error) is Blocked


@pytest.mark.parametrize(
    "message",
    [
        "You have reached your specified API usage limits. You will regain access on 2027-01-01.",
        "Your credit balance is too low to access the API.",
    ],
)
def test_the_two_billing_messages_are_read_with_status_400_only(message: str) -> None:
    assert type(classify(an_error(400, message=message)).error) is Blocked
    assert type(classify(an_error(400, message=message.upper())).error) is Blocked
    assert type(classify(an_error(422, message=message)).error) is Permanent
    assert type(classify(an_error(500, message=message)).error) is Transient


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (["model_not_found", "invalid_request_error"], "no"),
        (["not_found_error"], "model: claude-none-1"),
        (["NotFoundError"], "The model `none` does not exist."),
    ],
)
def test_a_404_that_names_the_model_is_permanent(codes: list[str], message: str) -> None:
    failed = classify(an_error(404, *codes, message=message))
    assert (type(failed.error), failed.billing) == (Permanent, Billing.NOTHING)


@pytest.mark.parametrize(("provider", "hint"), [("openai", "ends in /v1"), ("anthropic", "ends without /v1")])
@pytest.mark.parametrize("status", [404, 405])
def test_an_address_where_nothing_answers_is_the_operators_mistake_and_says_what_to_check(
    provider: str, hint: str, status: int
) -> None:
    failed = classify(
        ProviderError(provider, status, frozenset({"not_found_error"}), "Not Found " * 99, None)
    )
    assert type(failed.error) is Blocked
    assert failed.error.lane == Lane(LaneKind.PROVIDER, provider)
    assert f"{provider}.base_url" in str(failed.error)
    assert hint in str(failed.error)


def test_a_message_that_quotes_a_code_is_not_a_code() -> None:
    quoting = an_error(400, message="unknown field: insufficient_quota, invalid_prompt")
    assert type(classify(quoting).error) is Permanent


def test_a_rate_limit_that_does_not_say_how_long_waits_the_default() -> None:
    for said in (None, 0.0):
        failed = classify(an_error(429, retry_after_s=said))
        assert isinstance(failed.error, ToldToWait)
        assert failed.error.retry_after_s == DEFAULT_WAIT_S


@given(STATUSES, st.sets(st.text()), st.text(), st.none() | st.floats(0, 1e7, exclude_max=True))
def test_every_error_has_a_class_a_lane_where_needed_and_a_message_that_can_be_stored(
    status: int, codes: set[str], message: str, wait_s: float | None
) -> None:
    failed = classify(an_error(status, *codes, message=message, retry_after_s=wait_s))
    error = failed.error
    assert (error.lane == LANE) == isinstance(error, Blocked | ToldToWait | Transient)
    assert str(error).startswith(f"openai answered {status}: ")
    assert len(str(error)) < 560
    str(error).encode("utf-8")
    assert "\x00" not in str(error)
    if failed.billing is Billing.UNKNOWN:
        assert isinstance(error, Transient), "only what is tried again can have been billed"


def test_what_never_left_costs_nothing_and_what_left_may_have() -> None:
    assert (type(not_sent("openai", "x").error), not_sent("openai", "x").billing) == (
        Transient,
        Billing.NOTHING,
    )
    assert (type(lost("openai", "x").error), lost("openai", "x").billing) == (Transient, Billing.UNKNOWN)
    failed = misconfigured("openai", "x")
    assert (type(failed.error), failed.billing, failed.error.lane) == (Blocked, Billing.NOTHING, LANE)
    failed = unsendable("openai", "x")
    assert (type(failed.error), failed.billing) == (Permanent, Billing.NOTHING)


@given(st.text())
def test_a_lost_answers_message_can_be_stored(why: str) -> None:
    said = str(lost("openai", "\x00\ud83d" + why * 50))
    said.encode("utf-8")
    assert "\x00" not in said
    assert len(said) < 560
