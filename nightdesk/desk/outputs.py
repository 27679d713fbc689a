"""What each phase asks a model for.

Both providers turn these classes into a strict JSON schema, so they have no defaults, no dicts, no
examples and no numeric or length limits (providers refuse or ignore those); limits are checked by
the phase after parsing.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Output(BaseModel):
    """Base of the phases' outputs."""

    model_config = ConfigDict(extra="forbid")


class Fact(Output):
    """A statement with the words of a source that support it."""

    statement: str
    quote: str
    source_url: str


class Brief(Output):
    """Research: what the article is for and what is known."""

    angle: str
    audience: str
    questions: list[str]
    facts: list[Fact]
    terms: list[str]
    notes: str


class OutlineSection(Output):
    """One H2 of the article and what it has to say."""

    heading: str
    points: list[str]


class Outline(Output):
    """Outline: the title and the H2s in order."""

    title: str
    sections: list[OutlineSection]


class Section(Output):
    """One H2 with its text in Markdown (paragraphs, lists, H3s; no H1 or H2)."""

    heading: str
    body: str


class DraftText(Output):
    """Draft: the whole article."""

    title: str
    introduction: str
    sections: list[Section]


class RevisedText(Output):
    """Optimize: the article as it is to be published, with what a search result shows of it."""

    title: str
    slug: str
    excerpt: str
    meta_description: str
    introduction: str
    sections: list[Section]
    changes: list[str]
