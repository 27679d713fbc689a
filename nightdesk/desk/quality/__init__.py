"""The quality gate: what a finished text must be before it may be published.

A pure function over a stored text: no database, no clock, no network. Rules that look for left-over
phrases are data, one module per language in `leftovers/`; everything else is measured on the
article's structure. `gate_version` in the verdict changes whenever a rule does.
"""

from __future__ import annotations

from nightdesk.desk.quality.check import RULES, check_html, check_markdown
from nightdesk.desk.quality.keyphrase import keyword_in_first_words
from nightdesk.desk.quality.verdict import (
    GATE_VERSION,
    Finding,
    Requirements,
    Severity,
    Verdict,
)
from nightdesk.desk.quality.words import count_words

__all__ = [
    "GATE_VERSION",
    "RULES",
    "Finding",
    "Requirements",
    "Severity",
    "Verdict",
    "check_html",
    "check_markdown",
    "count_words",
    "keyword_in_first_words",
]
