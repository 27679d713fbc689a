"""What is asked of a text, and what the gate says about it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from nightdesk.languages import Language
from nightdesk.text import shorten, storable

#: Stored with each verdict; goes up with every change of a rule.
GATE_VERSION = "2"

PASSAGE_CHARS = 120


class Severity(StrEnum):
    """Whether a finding holds the article."""

    BLOCK = "block"
    WARN = "warn"


@dataclass(frozen=True, slots=True)
class Requirements:
    """What one article is asked to be.

    `min_words` 0, `keyword` None or blank, `required_h2` empty: not asked. With `known_links` None
    links are not checked; otherwise every external link must be in the set. `waived` holds the ids
    of the rules that a person has waived for this article.
    """

    language: Language
    keyword: str | None = None
    min_words: int = 0
    required_h2: tuple[str, ...] = ()
    known_links: frozenset[str] | None = None
    waived: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong: the rule's id, one sentence of advice, the passage (≤ 120 characters)."""

    rule: str
    message: str
    passage: str
    severity: Severity


@dataclass(frozen=True, slots=True)
class Verdict:
    """`ok` means that no finding blocks; `words` counts prose only."""

    ok: bool
    findings: tuple[Finding, ...]
    words: int
    gate_version: str

    def as_json(self) -> dict[str, Any]:
        """As it is stored and printed: `ok`, `words`, `gate_version`, `findings`."""
        return asdict(self)


def finding(rule: str, message: str, passage: str = "", severity: Severity = Severity.BLOCK) -> Finding:
    """A finding that can be stored, its passage one line and short."""
    one_line = " ".join(storable(passage).split())
    return Finding(rule, storable(message), shorten(one_line, PASSAGE_CHARS), severity)
