"""Fault plans say what they mean, or are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nightdesk.errors import ConfigError
from nightdesk.sandbox.exchange import Ask, Segment
from nightdesk.sandbox.faults import FaultInjector, load_plan, parse_plan

CUT = {"kind": "cut_body"}


def ask(text: str = "topic: a", provider: str = "anthropic", title: str = "Brief", **body: Any) -> Ask:
    return Ask(
        provider=provider, model="m", account="k", segments=(Segment(text),), user_text=text,
        schema=None, schema_title=title, max_tokens=None, body={"text": text} | body,
    )  # fmt: skip


def injector(*rules: dict[str, Any], seed: int = 1) -> FaultInjector:
    plan = {"rules": [{"name": f"rule {index}"} | rule for index, rule in enumerate(rules)]}
    return FaultInjector(parse_plan(json.dumps(plan), "test"), seed)


def strikes(faults: FaultInjector, asked: Ask, headers: dict[str, str] | None = None) -> bool:
    return faults.pick(asked, headers or {}) is not None


def test_after_and_times_frame_the_matches_that_are_struck() -> None:
    faults = injector({"action": CUT, "after": 2, "times": 3})
    assert [strikes(faults, ask()) for _ in range(7)] == [False] * 2 + [True] * 3 + [False] * 2


def test_only_what_matches_counts() -> None:
    faults = injector({"action": CUT, "times": 1, "match": {"contains": "ಬ"}})
    assert not strikes(faults, ask())
    assert strikes(faults, ask("xx ಬ"))
    assert not strikes(faults, ask("xx ಬ"))


@pytest.mark.parametrize(
    ("match", "hit", "miss"),
    [
        ({"provider": "openai"}, ask(provider="openai"), ask()),
        ({"phase": "DraftText"}, ask(title="DraftText"), ask()),
        ({"contains": "č"}, ask("c\u030c"), ask("c")),
    ],
)
def test_each_condition_tells_requests_apart(match: dict[str, str], hit: Ask, miss: Ask) -> None:
    assert strikes(injector({"action": CUT, "match": match}), hit)
    assert not strikes(injector({"action": CUT, "match": match}), miss)


def test_headers_match_by_name_or_by_name_and_value() -> None:
    headers = {"x-run": "7"}
    assert strikes(injector({"action": CUT, "match": {"header": "X-Run"}}), ask(), headers)
    assert strikes(injector({"action": CUT, "match": {"header": "X-Run: 7"}}), ask(), headers)
    assert not strikes(injector({"action": CUT, "match": {"header": "X-Run: 8"}}), ask(), headers)
    assert not strikes(injector({"action": CUT, "match": {"header": "X-Job"}}), ask(), headers)


def test_the_first_rule_that_strikes_is_the_only_one() -> None:
    faults = injector({"action": CUT, "times": 1}, {"action": {"kind": "empty"}})
    picked = [faults.pick(ask(), {}) for _ in range(2)]
    assert [rule.action.kind for rule in picked if rule] == ["cut_body", "empty"]


def test_probability_depends_on_the_seed_alone() -> None:
    def struck(seed: int) -> list[bool]:
        faults = injector({"action": CUT, "probability": 0.3}, seed=seed)
        return [strikes(faults, ask(number=number)) for number in range(200)]

    assert struck(1) == struck(1) != struck(2)
    assert 30 < sum(struck(1)) < 90


def test_faults_that_only_openai_has_leave_anthropic_alone() -> None:
    faults = injector({"action": {"kind": "content_filter"}})
    assert not strikes(faults, ask())
    assert strikes(faults, ask(provider="openai"))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "not JSON"),
        ("[]", "plan"),
        ('{"rules": [{"name": "a"}]}', "rules.0.action"),
        ('{"rules": [{"name": "a", "action": {"kind": "burn"}}]}', "rules.0.action"),
        ('{"rules": [{"name": "a", "action": {"kind": "stall"}}]}', "seconds"),
        ('{"rules": [{"name": "a", "action": {"kind": "status", "status": 200}}]}', "status"),
        ('{"rules": [{"name": "a", "time": 1, "action": {"kind": "reset"}}]}', "rules.0.time"),
        ('{"rules": [{"name": "a", "times": 0, "action": {"kind": "reset"}}]}', "times"),
        ('{"rules": [{"name": "a", "match": {"provider": "anthropic"}, '
         '"action": {"kind": "status_failed"}}]}', "OpenAI only"),
        ('{"rules": [{"name": "a", "action": {"kind": "reset"}}, '
         '{"name": "a", "action": {"kind": "reset"}}]}', "used twice"),
    ],
)  # fmt: skip
def test_an_invalid_plan_is_refused_with_the_place(content: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match="fault plan here") as caught:
        parse_plan(content, "here")
    assert complaint in str(caught.value)


def test_no_plan_means_no_faults() -> None:
    assert load_plan(None).rules == ()
