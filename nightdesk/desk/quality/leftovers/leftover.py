"""One kind of phrase that must not be left in an article."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import regex

from nightdesk.desk.quality.verdict import Severity


@dataclass(frozen=True, slots=True)
class Leftover:
    """A rule's id, the pattern it looks for and the advice it gives.

    The pattern is of the `regex` module, ignores case (`(?-i:…)` minds it), takes `^` and `$` as
    the ends of a line, and sees one block at a time: own text without code and quotations,
    normalised, with single spaces and plain apostrophes. (A language's own patterns see it folded
    for that language, without capitals.) Every quantifier has an upper bound, so
    that no article can make it slow.
    """

    rule: str
    pattern: str
    advice: str
    paragraphs_only: bool = False  #: not in lists and tables, where the phrase may be the topic
    severity: Severity = Severity.BLOCK

    def compiled(self) -> regex.Pattern[str]:
        return _compiled(self.pattern)


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> regex.Pattern[str]:
    return regex.compile(pattern, regex.IGNORECASE | regex.MULTILINE)
