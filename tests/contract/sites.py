"""The sites that the contract is held against: one factory per kind of site."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from uuid import UUID, uuid4

from nightdesk.languages import LANGUAGES
from nightdesk.publishing.port import Page, Site
from nightdesk.publishing.serve import LoopbackServer
from nightdesk.publishing.static_site import StaticSite

#: Gives a live site without articles, whose `verify` gives up after `DEADLINE_S`.
NewSite = Callable[[], Site]
#: Given an empty folder, starts what such sites need and stops it at the end.
SiteFactory = Callable[[Path], AbstractContextManager[NewSite]]

DEADLINE_S = 2.5


@contextmanager
def static_sites(folder: Path) -> Iterator[NewSite]:
    numbers = count(1)
    with LoopbackServer(folder) as server:

        def new_site() -> Site:
            name = f"night-{next(numbers)}"
            return StaticSite(
                name,
                "Night & Day",
                folder / name,
                f"{server.base_url}/{name}",
                verify_deadline_s=DEADLINE_S,
            )

        yield new_site


FACTORIES: dict[str, SiteFactory] = {"static": static_sites}


def a_page(marker: UUID | None = None, **changes: object) -> Page:
    """A page like any other, except for `changes`."""
    page = Page(
        marker=marker or uuid4(),
        slug="night-trains",
        language=LANGUAGES["en"],
        title="Night trains",
        excerpt="Why they come back.",
        meta_description="Why night trains come back to Europe.",
        markdown="They come back.\n\n## Why\n\nSee [the source](https://example.org/a).\n",
        published_at=datetime(2026, 11, 30, 22, 15, tzinfo=UTC),
        updated_at=datetime(2026, 11, 30, 22, 15, tzinfo=UTC),
    )
    return replace(page, **changes)  # type: ignore[arg-type]
