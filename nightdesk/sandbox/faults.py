"""The fault plan: which requests go wrong, and how.

A plan is `{"rules": [{"name", "match", "times", "after", "probability", "action"}, …]}`. Rules are
asked in order and the first that strikes is the only one to strike. A rule matches if all that its
`match` names is so; its first `after` matches pass, and it strikes `times` times (null: always).

Some actions lose an answer that was paid for (`billed`, true unless the plan says otherwise):
`cut_body`, `reset`, `empty`, `stall`, `trickle`. Those where somebody else answers in the
provider's place bill nothing unless told to: `status`, `html200`, `error200`, `null200`,
`status_failed`. All others are answers, and answers are billed.
"""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
    field_validator,
    model_validator,
)

from nightdesk.errors import ConfigError
from nightdesk.sandbox.exchange import Ask, fraction

_OPENAI_ONLY = {"content_filter", "status_failed"}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Match(_Strict):
    """What a request must be like; what is not named may be anything."""

    provider: Literal["anthropic", "openai"] | None = None
    phase: str | None = None  #: title of the schema asked for
    contains: str | None = None  #: literal text anywhere in the prompt
    header: str | None = None  #: `Name` or `Name: value`


class Status(_Strict):
    """Answer with an HTTP error; `error` overrides fields of the provider's error object."""

    kind: Literal["status"]
    status: int = Field(ge=400, le=599)
    retry_after: str | None = None
    error: dict[str, Any] = Field(default_factory=dict)
    billed: bool = False

    @field_validator("retry_after", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        return str(value) if isinstance(value, int | float) else value


class Impostor(_Strict):
    """Status 200 with something that is no answer: a page, an error object, `null`."""

    kind: Literal["html200", "error200", "null200"]
    billed: bool = False


class Lost(_Strict):
    """The answer is lost: half a body, a connection reset, an empty body."""

    kind: Literal["cut_body", "reset", "empty"]
    billed: bool = True


class Slow(_Strict):
    """Nothing, or one byte at a time, for `seconds`; then the connection closes."""

    kind: Literal["stall", "trickle"]
    seconds: NonNegativeFloat
    billed: bool = True


class Latency(_Strict):
    """The right answer, `seconds` later."""

    kind: Literal["latency"]
    seconds: NonNegativeFloat


class Stopped(_Strict):
    """The model ends otherwise than with a whole answer."""

    kind: Literal["refusal", "refusal_empty", "truncate", "content_filter"]


class Failed(_Strict):
    """A Responses object with status `failed`."""

    kind: Literal["status_failed"]
    code: str = "server_error"
    billed: bool = False


class Spoilt(_Strict):
    """An answer with a defect in its text or usage."""

    kind: Literal["fenced", "bad_json", "wrong_schema", "empty_text", "nul", "surrogate", "no_usage"]


class Leftover(_Strict):
    """`text` in the middle of the longest text field."""

    kind: Literal["leftover"]
    text: str = "[TODO: finish this part]"  #: the defect itself, for the quality gate to find


class Replace(_Strict):
    """Every `find` in the answer's strings becomes `with`."""

    kind: Literal["replace"]
    find: str = Field(min_length=1)
    replacement: str = Field(alias="with")


Action = Annotated[
    Status | Impostor | Lost | Slow | Latency | Stopped | Failed | Spoilt | Leftover | Replace,
    Field(discriminator="kind"),
]


class Rule(_Strict):
    """One fault."""

    name: str = Field(min_length=1)
    match: Match = Match()
    times: PositiveInt | None = None
    after: NonNegativeInt = 0
    probability: float | None = Field(default=None, gt=0, le=1)
    action: Action

    @model_validator(mode="after")
    def _provider_has_it(self) -> Rule:
        if self.action.kind in _OPENAI_ONLY and self.match.provider == "anthropic":
            raise ValueError(f"'{self.action.kind}' exists at OpenAI only")
        return self


class FaultPlan(_Strict):
    """All rules, in the order in which they are asked."""

    rules: tuple[Rule, ...] = ()

    @model_validator(mode="after")
    def _names_are_unique(self) -> FaultPlan:
        counted = Counter(rule.name for rule in self.rules)
        if twice := [name for name, times in counted.items() if times > 1]:
            raise ValueError(f"the rule name '{twice[0]}' is used twice")
        return self


def parse_plan(content: str | bytes, source: str) -> FaultPlan:
    """A plan from JSON.

    Raises:
        ConfigError: naming `source` and everything that is wrong in it.
    """
    try:
        return FaultPlan.model_validate(json.loads(content))
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in problem['loc']) or 'plan'}: {problem['msg']}"
            for problem in error.errors()
        )
        raise ConfigError(f"fault plan {source}: {problems}") from error
    except ValueError as error:
        raise ConfigError(f"fault plan {source}: not JSON ({error})") from error


def load_plan(path: Path | None) -> FaultPlan:
    """The plan in a file; an empty one for None.

    Raises:
        ConfigError: if the file cannot be read or is no plan.
    """
    if path is None:
        return FaultPlan()
    try:
        return parse_plan(path.read_bytes(), str(path))
    except OSError as error:
        raise ConfigError(f"fault plan {path}: cannot be read ({error.strerror})") from error


class FaultInjector:
    """A plan at work: remembers how often each rule matched and struck."""

    def __init__(self, plan: FaultPlan, seed: int) -> None:
        self.plan = plan
        self._seed = seed
        self.matched: Counter[str] = Counter()
        self.struck: Counter[str] = Counter()

    def pick(self, ask: Ask, headers: dict[str, str]) -> Rule | None:
        """The rule that strikes this request, if any."""
        for rule in self.plan.rules:
            if self._strikes(rule, ask, headers):
                self.struck[rule.name] += 1
                return rule
        return None

    def _strikes(self, rule: Rule, ask: Ask, headers: dict[str, str]) -> bool:
        if not _matches(rule, ask, headers):
            return False
        self.matched[rule.name] += 1
        number = self.matched[rule.name]
        if number <= rule.after or (rule.times and self.struck[rule.name] >= rule.times):
            return False
        if rule.probability is None:
            return True
        return fraction(self._seed, rule.name, ask.body, number) < rule.probability


def _matches(rule: Rule, ask: Ask, headers: dict[str, str]) -> bool:
    match = rule.match
    if rule.action.kind in _OPENAI_ONLY and ask.provider != "openai":
        return False
    name, _, value = (match.header or "").partition(":")
    return (
        match.provider in (None, ask.provider)
        and match.phase in (None, ask.schema_title)
        and _nfc(match.contains or "") in _nfc(ask.text)
        and (not name or name.strip().lower() in headers)
        and (not value or headers.get(name.strip().lower()) == value.strip())
    )


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)
