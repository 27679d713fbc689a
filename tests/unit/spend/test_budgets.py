"""A budget that makes no sense is refused, never read with a default."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from nightdesk.spend.budgets import ROLLING_S, Budget
from nightdesk.states import ScopeKind


def test_a_budget_is_five_rolling_hours_of_everything_unless_it_says_otherwise() -> None:
    budget = Budget.model_validate({"name": "fleet", "cap_usd": "100"})
    assert (budget.cap_usd, budget.window_s, budget.time_zone) == (100, ROLLING_S, None)
    assert budget.covers(site="garden", phase="draft")


def test_one_by_the_day_has_a_time_zone_and_no_length() -> None:
    budget = Budget.model_validate({"name": "fleet", "cap_usd": "100", "window": "day"})
    assert (budget.window_s, budget.time_zone) == (None, "UTC")


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"cap_usd": "0"}, "cap_usd"),
        ({"cap_usd": "-1"}, "cap_usd"),
        ({"cap_usd": "NaN"}, "cap_usd"),
        ({"cap_usd": "Infinity"}, "cap_usd"),
        ({"cap_usd": "1e12"}, "cap_usd"),
        ({"cap_usd": None}, "cap_usd"),
        ({"cap_usd": "1e-11"}, "smallest"),
        ({"name": ""}, "name"),
        ({"name": "Fleet!"}, "name"),
        ({"limit_usd": "5"}, "limit_usd"),
        ({"window": "week"}, "window"),
        ({"window": "day", "window_s": 18_000}, "no window_s"),
        ({"time_zone": "UTC"}, "no time_zone"),
        ({"window": "day", "time_zone": "Mars/Olympus"}, "no time zone"),
        ({"window": "day", "time_zone": "../../etc/passwd"}, "no time zone"),
        ({"window": "day", "time_zone": "\0"}, "no time zone"),
        ({"window": "day", "time_zone": ""}, "no time zone"),
        ({"window_s": 59}, "window_s"),
        ({"window_s": 10**9}, "window_s"),
        ({"warn_ratio": "0"}, "warn_ratio"),
        ({"warn_ratio": "1.01"}, "warn_ratio"),
        ({"warn_ratio": "nan"}, "warn_ratio"),
        ({"scope": "site"}, "scope_name"),
        ({"scope_name": "garden"}, "scope_name"),
        ({"scope": "planet", "scope_name": "earth"}, "scope"),
        ({"on_error": "perhaps"}, "on_error"),
    ],
)
def test_a_field_that_is_wrong_missing_or_unknown_is_refused(fields: dict[str, Any], where: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Budget.model_validate({"name": "fleet", "cap_usd": "100"} | fields)
    assert where in str(refused.value)


def test_no_cap_is_no_budget() -> None:
    with pytest.raises(ValidationError, match="cap_usd"):
        Budget.model_validate({"name": "fleet"})


def test_a_cap_is_kept_at_the_ledgers_scale() -> None:
    budget = Budget(name="fleet", cap_usd=Decimal("0.12345678901234"))
    assert budget.cap_usd == Decimal("0.1234567890")


def test_a_scope_is_all_one_site_or_one_phase() -> None:
    garden = Budget(name="g", cap_usd=Decimal(1), scope=ScopeKind.SITE, scope_name="garden")
    drafts = Budget(name="d", cap_usd=Decimal(1), scope=ScopeKind.PHASE, scope_name="draft")
    assert [one.covers(site="garden", phase="outline") for one in (garden, drafts)] == [True, False]
    assert [one.covers(site="kitchen", phase="draft") for one in (garden, drafts)] == [False, True]
