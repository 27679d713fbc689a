"""What is known of one source after it was read."""

from __future__ import annotations

from dataclasses import dataclass

from nightdesk.research.fetch import RobotsVerdict


@dataclass(frozen=True, slots=True)
class FetchedSource:
    """One address that was given, or one article of a feed that was given."""

    url: str  #: as it was given
    final_url: str | None = None  #: the last address that answered
    status: int | None = None
    error: str | None = None  #: one sentence; None if there is text
    content_type: str | None = None  #: without parameters, in lower case
    sha256: str | None = None  #: of the body as it was read, without its content encoding
    title: str | None = None
    published: str | None = None  #: ISO 8601, a date or a moment in UTC
    language: str | None = None  #: BCP 47, as the page declares it
    text: str = ""
    robots: RobotsVerdict = "unknown"
    via_feed: str | None = None  #: the feed it was found in
