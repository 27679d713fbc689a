"""What each failure of a provider means to the desk: its class, its bill, its lane, and when to return.

`TAXONOMY` lists every way in which a call is known to go wrong. The statuses are tested here, lost
and odd answers in `test_lost_answers`, answers that cannot be used in `test_replies`.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any

import pytest

from nightdesk.errors import Blocked, JobError, Lane, LaneKind, NeedsPerson, Permanent, ToldToWait, Transient
from nightdesk.llm.failures import DEFAULT_WAIT_S
from nightdesk.llm.port import Billing
from tests.integration.llm.conftest import RawBench, SandboxBench, failure, request
from tests.integration.llm.raw_server import http, sends

pytestmark = pytest.mark.asyncio(loop_scope="session")

BOTH = ("anthropic", "openai")
both = pytest.mark.parametrize("provider", BOTH)
HERE, LOST, REPLIES = ".test_taxonomy", ".test_lost_answers", ".test_replies"
STATUS = f"{HERE}:test_a_status_means_its_class_and_its_bill_and_is_sent_once"
NO_STREAM = "not reachable: the adapters do not stream"
NO_BATCH = "not reachable: the adapters make no batches"

#: Row → what happens, and the test that makes it happen (or why it cannot).
TAXONOMY: dict[str, tuple[str, str]] = {
    "1": ("400 invalid request", STATUS),
    "2": ("400 context too long", STATUS),
    "3": ("400 schema rejected", STATUS),
    "4": ("400 spend limit, credit too low", STATUS),
    "5": ("400 organization on hold", STATUS),
    "6": ("400 prompt flagged", STATUS),
    "7": ("401", STATUS),
    "8": ("402", STATUS),
    "9": ("403", STATUS),
    "10": ("404 model retired", STATUS),
    "10b": ("404 on a batch just created", NO_BATCH),
    "11": ("408", STATUS),
    "12": ("409", STATUS),
    "13": ("413", STATUS),
    "14": ("422", STATUS),
    "15": ("429 rate limit", STATUS),
    "16": ("429 ramp", STATUS),
    "17": ("429 billing", STATUS),
    "18": ("429 with a wait of hours", STATUS),
    "19": ("500", STATUS),
    "20": ("502, 520 with a page", f"{HERE}:test_a_gateways_page_is_an_error_like_any_other"),
    "21": ("503", STATUS),
    "22": ("504", STATUS),
    "23": ("529", STATUS),
    "24": ("error event in a stream", NO_STREAM),
    "25": ("stream ends early", NO_STREAM),
    "26": ("stream is reset", NO_STREAM),
    "27": ("stream stalls", NO_STREAM),
    "28": ("malformed event in a stream", NO_STREAM),
    "29": ("empty stream, page as stream", NO_STREAM),
    "30": ("connection refused", f"{LOST}:test_a_refused_connection_costs_nothing"),
    "31": ("reset, cut body", f"{LOST}:test_a_lost_answer_may_have_been_billed"),
    "32": ("read timeout", f"{LOST}:test_silence_ends_at_the_deadline"),
    "33": ("one byte at a time", f"{LOST}:test_dripping_bytes_do_not_outlast_the_deadline"),
    "34": ("200 with cut or empty JSON", f"{LOST}:test_a_lost_answer_may_have_been_billed"),
    "35": ("200 with a page", f"{LOST}:test_a_lost_answer_may_have_been_billed"),
    "36": ("200 with an error, null", f"{LOST}:test_a_lost_answer_may_have_been_billed"),
    "37": ("refusal", f"{REPLIES}:test_a_refusal_is_a_reply_with_its_explanation_and_its_bill"),
    "38": ("content filter", f"{REPLIES}:test_a_content_filter_is_a_reply_of_its_own_kind"),
    "39": ("output limit, context full", f"{REPLIES}:test_a_cut_answer_says_so"),
    "40": ("answer does not fit the schema", f"{REPLIES}:test_unusable_text_reaches_the_desk_with_its_bill"),
    "41": ("unfinished: queued, paused", f"{LOST}:test_an_answer_that_is_not_finished_is_no_answer"),
    "42": ("an item of a batch fails", NO_BATCH),
    "43": ("our own limits refuse", "not reachable: the metered client refuses before an adapter is asked"),
}


async def test_every_row_of_the_taxonomy_has_its_test_or_the_reason_why_not() -> None:
    assert list(TAXONOMY) == [*map(str, range(1, 11)), "10b", *map(str, range(11, 44))]
    for row, (_, where) in TAXONOMY.items():
        if where == STATUS:
            assert any(row in case.row.split() for case in CASES), f"row {row} has no case"
        elif not where.startswith("not reachable: "):
            module, _, name = where.partition(":")
            assert hasattr(importlib.import_module(module, __package__), name), where


@dataclass(frozen=True)
class Case:
    """One error response and what it must come to."""

    row: str
    status: int
    error: type[JobError]
    body: dict[str, Any] = field(default_factory=dict)  #: fields of the provider's error object
    billing: Billing = Billing.NOTHING
    retry_after: str | None = None  #: the header
    wait_s: float | None = None  #: what a `ToldToWait` must say
    providers: tuple[str, ...] = BOTH

    def __str__(self) -> str:
        codes = self.body.get("code") or self.body.get("type") or self.body.get("details") or ""
        after = f" after {self.retry_after}" if self.retry_after else ""
        return f"row {self.row}: {self.status} {codes}{after}"


def anthropic(row: str, status: int, error: type[JobError], **more: Any) -> Case:
    return Case(row, status, error, providers=("anthropic",), **more)


def openai(row: str, status: int, error: type[JobError], **more: Any) -> Case:
    return Case(row, status, error, providers=("openai",), **more)


def details(code: str) -> dict[str, Any]:
    """Where Anthropic puts an error's code."""
    return {"details": {"error_code": code}}


def quota(code: str) -> dict[str, Any]:
    return {"type": "insufficient_quota", "code": code}


CASES = [
    Case("1", 400, Permanent),
    openai("1", 400, Permanent, body={"code": "unsupported_parameter", "param": "temperature"}),
    anthropic("2", 400, Permanent, body={"message": "prompt is too long: 1048612 tokens > 1000000 maximum"}),
    openai("2", 400, Permanent, body={"code": "context_length_exceeded"}),
    anthropic(
        "3", 400, Permanent, body={"message": "output_config.format.schema: 'default' is not permitted"}
    ),
    openai("3", 400, Permanent, body={"code": "invalid_json_schema"}),
    anthropic("4", 400, Blocked, body={"message": "You have reached your specified API usage limits."}),
    anthropic("4", 400, Blocked, body={"message": "Your credit balance is too low to access the API."}),
    anthropic("5", 400, Blocked, body=details("organization_on_hold")),
    openai("6", 400, NeedsPerson, body={"code": "invalid_prompt"}),
    openai("6", 400, NeedsPerson, body={"code": "content_policy_violation"}),
    Case("7", 401, Blocked),
    openai("7", 401, Blocked, body={"code": "invalid_api_key"}),
    Case("8", 402, Blocked),
    Case("8", 402, ToldToWait, retry_after="120", wait_s=120),
    Case("9", 403, Blocked),
    openai("9", 403, Blocked, body={"code": "model_not_found"}),
    Case("10", 404, Blocked),
    anthropic("10", 404, Permanent, body={"message": "model: x"}),
    openai("10", 404, Permanent, body={"code": "model_not_found"}),
    Case("11", 408, Transient, billing=Billing.UNKNOWN),
    Case("12", 409, Transient),
    Case("13", 413, Permanent),
    Case("14", 422, Permanent),
    Case("15", 429, ToldToWait, wait_s=DEFAULT_WAIT_S),
    Case("15", 429, ToldToWait, retry_after="7", wait_s=7),
    openai("15 16", 429, ToldToWait, body={"code": "slow_down"}, retry_after="1.5", wait_s=1.5),
    anthropic("16", 429, ToldToWait, body=details("ramp_limit_exceeded"), wait_s=DEFAULT_WAIT_S),
    anthropic("17", 429, Blocked, body=details("enforced_spend_limit_reached")),
    anthropic("17", 429, Blocked, body=details("contract_spend_limit_reached")),
    # A wall of money does not fall by waiting, whatever the header says.
    anthropic("17", 429, Blocked, body=details("contract_spend_limit_reached"), retry_after="5"),
    openai("17", 429, Blocked, body=quota("insufficient_quota")),
    openai("17", 429, Blocked, body=quota("a code that is not known yet")),
    openai("17", 429, Blocked, body={"code": "credit_balance_exhausted"}),
    openai("17", 429, Blocked, body={"code": "organization_spend_limit_exceeded"}),
    openai("17", 429, Blocked, body={"code": "project_spend_limit_exceeded"}),
    openai("17", 429, Blocked, body={"code": "organization_usage_limit_exceeded"}, retry_after="20"),
    Case("18", 429, ToldToWait, retry_after="171", wait_s=171),
    Case("18", 429, ToldToWait, retry_after="86400", wait_s=86_400),
    Case("19", 500, Transient, billing=Billing.UNKNOWN),
    Case("21", 503, Transient),
    Case("22", 504, Transient, billing=Billing.UNKNOWN),
    Case("23", 529, Transient),
]
EACH = [
    pytest.param(case, provider, id=f"{case}, {provider}") for case in CASES for provider in case.providers
]


@pytest.mark.parametrize(("case", "provider"), EACH)
async def test_a_status_means_its_class_and_its_bill_and_is_sent_once(
    bench: SandboxBench, case: Case, provider: str
) -> None:
    bench.break_with("status", status=case.status, error=case.body, retry_after=case.retry_after)
    asked = request(provider)
    failed = await failure(bench.models[provider], asked)
    assert type(failed.error) is case.error
    assert failed.billing is case.billing
    if isinstance(failed.error, ToldToWait):
        assert failed.error.retry_after_s == case.wait_s
    if case.error in (Blocked, ToldToWait, Transient):
        assert failed.error.lane == Lane(LaneKind.PROVIDER, provider)
    else:
        assert failed.error.lane is None, "one article's fault closes no provider"
    if isinstance(failed.error, NeedsPerson):
        assert [reason.rule for reason in failed.error.reasons] == ["prompt_flagged"]
    assert str(failed.error).startswith(f"{provider} answered {case.status}: ")
    (entry,) = bench.entries(asked)
    assert entry.status == case.status
    assert entry.billed_usd == 0


@both
@pytest.mark.parametrize(
    ("row", "status", "error"),
    [("20", 502, Transient), ("20", 520, Transient), ("13", 413, Permanent), ("9", 403, Blocked)],
)
async def test_a_gateways_page_is_an_error_like_any_other(
    raw: RawBench, row: str, status: int, error: type[JobError], provider: str
) -> None:
    """And it is cut short, and has nothing in it that cannot be stored."""
    page = b"<html><title>Bad Gateway</title>\x00" + b"<p>nginx</p>" * 1_000 + b"</html>"
    failed = await raw.fail(provider, sends(http(status, page, "text/html")))
    assert type(failed.error) is error
    assert failed.billing is (Billing.UNKNOWN if error is Transient else Billing.NOTHING)
    assert len(str(failed.error)) < 600
    assert "\x00" not in str(failed.error)


@both
@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b'"no"', b'{"error": "no"}', b'{"error": {"code": 5}}', b"{"]
)
async def test_an_error_whose_body_is_of_no_known_shape_is_told_by_its_status(
    raw: RawBench, body: bytes, provider: str
) -> None:
    failed = await raw.fail(provider, sends(http(429, body, Retry_After="3")))
    assert isinstance(failed.error, ToldToWait)
    assert failed.error.retry_after_s == 3


@both
async def test_milliseconds_are_preferred_where_a_provider_sends_both(raw: RawBench, provider: str) -> None:
    failed = await raw.fail(provider, sends(http(429, b"{}", Retry_After="3", Retry_After_Ms="2500")))
    assert isinstance(failed.error, ToldToWait)
    assert failed.error.retry_after_s == 2.5


@both
async def test_a_server_that_asks_for_a_retry_does_not_get_one_from_the_sdk(
    raw: RawBench, provider: str
) -> None:
    failed = await raw.fail(provider, sends(http(500, b"{}", X_Should_Retry="true", Retry_After="0")))
    assert type(failed.error) is Transient


@both
@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed(raw: RawBench, status: int, provider: str) -> None:
    """It would send the question again, and to anybody."""
    moved = http(status, b"", Location=f"{raw.server.base_url}/v1/elsewhere")
    failed = await raw.fail(provider, sends(moved))
    assert (type(failed.error), failed.billing) == (Permanent, Billing.NOTHING)
    assert str(failed.error).startswith(f"{provider} answered {status}: ")
