"""A budget as a block: how much money may be spent, on what, within which time."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from prefect.blocks.core import Block
from pydantic import ConfigDict, Field

from nightdesk.spend import budgets
from nightdesk.states import OnError, ScopeKind, WindowKind


class Budget(Block):
    """What may be spent. A document is used only whole: with a field too many or too few it is refused."""

    model_config = ConfigDict(extra="forbid")
    _block_type_name = "Budget"
    _block_type_slug = "budget"

    cap_usd: Decimal = Field(description="The most that may be spent, in USD.")
    window: WindowKind = Field(
        default=WindowKind.ROLLING, description="`rolling`: the last `window_s`; `day`: since midnight."
    )
    window_s: int | None = Field(default=None, description="Seconds; empty: five hours.")
    time_zone: str | None = Field(default=None, description="For `day`, such as Europe/Berlin; empty: UTC.")
    warn_ratio: Decimal = Field(default=Decimal("0.8"), description="The part of the cap at which to warn.")
    scope: ScopeKind = Field(default=ScopeKind.ALL, description="Whose money it counts.")
    scope_name: str = Field(default="", description="The site or the phase, if the scope is one.")
    cheap_at_warn: bool = Field(default=False, description="Over the warning, draft with the cheap model.")
    priority_at_warn: int | None = Field(
        default=None, description="Over the warning, topics below this priority wait."
    )
    on_error: OnError = Field(
        default=OnError.OPEN, description="What happens to new work when the gate itself is out of order."
    )

    @classmethod
    def read(cls, name: str, data: dict[str, Any]) -> budgets.Budget:
        """The budget that a document describes; the document's name is the budget's.

        Raises:
            ValueError: if a field is missing, unknown, or makes no sense. Nothing is filled in: a renamed
                field would be read as its default.
        """
        missing = sorted(set(cls.model_fields) - set(data))
        if missing:
            raise ValueError(f"{', '.join(missing)}: missing")
        return budgets.Budget.model_validate({"name": name} | data)

    @classmethod
    def of(cls, budget: budgets.Budget) -> Budget:
        """The document that describes a budget."""
        return cls.model_validate(budget.model_dump(exclude={"name"}))
