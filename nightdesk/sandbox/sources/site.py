"""Serves the source pages as a real site would: navigation, boilerplate, feeds.

A page is one YAML file in `pages/`: `title`, `language` (tag), `author`, `published` (ISO date),
`sections` (each `heading` and `paragraphs`), and `hidden`, text that no reader of the page sees.
Serbian is written in Latin script; a page whose language is `sr-Cyrl` is converted when loaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import yaml
from jinja2 import Environment, PackageLoader, select_autoescape
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from nightdesk.languages import LANGUAGES
from nightdesk.sandbox.writer.scripts import to_cyrillic

#: The host under which topics name these pages; whoever fetches maps it to the sandbox.
PUBLIC_URL = "http://sources.nightdesk.example"

#: Feed name → (format, title, slugs). Every feed is in one language.
FEEDS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "garden": (
        "rss",
        "The Allotment Notebook",
        ("composting-basics", "raised-bed-soil", "watering-tomatoes"),
    ),
    "kitchen": ("rss", "The Plain Kitchen", ("sourdough-first-loaf", "knife-care")),
    "kuhinja": ("atom", "Kuhinjska beležnica", ("domaci-ajvar", "paradajz-na-balkonu")),
}


@dataclass(frozen=True, slots=True)
class Page:
    """One article as its template sees it."""

    slug: str
    title: str
    language: str
    author: str
    published: str
    sections: tuple[dict[str, Any], ...]
    hidden: str

    @property
    def url(self) -> str:
        return f"{PUBLIC_URL}/sources/{self.slug}"

    @property
    def summary(self) -> str:
        first: str = self.sections[0]["paragraphs"][0]
        return first


class SourceSite:
    """All pages and feeds, rendered on request."""

    def __init__(self, pages: dict[str, Page]) -> None:
        self.pages = pages
        self._templates = Environment(
            loader=PackageLoader("nightdesk.sandbox.sources", "templates"),
            autoescape=select_autoescape(default=True, default_for_string=True),
            trim_blocks=True,
            lstrip_blocks=True,
        )

    def routes(self) -> list[Route]:
        """Routes of the site."""
        return [Route("/sources/{slug}", self._page), Route("/feeds/{name}.xml", self._feed)]

    async def _page(self, request: Request) -> Response:
        page = self.pages.get(request.path_params["slug"])
        if page is None:
            return PlainTextResponse("no such page\n", 404)
        others = [
            other
            for other in self.pages.values()
            if other.language == page.language and other.slug != page.slug
        ]
        template = self._templates.get_template("page.html")
        return HTMLResponse(template.render(page=page, others=others))

    async def _feed(self, request: Request) -> Response:
        kind, title, slugs = FEEDS.get(request.path_params["name"], ("", "", ()))
        if not kind:
            return PlainTextResponse("no such feed\n", 404)
        pages = [self.pages[slug] for slug in slugs]
        content = self._templates.get_template(f"{kind}.xml").render(
            title=title, pages=pages, site=PUBLIC_URL, name=request.path_params["name"]
        )
        return Response(content, media_type=f"application/{kind}+xml")


def load_site() -> SourceSite:
    """The site with all pages of the package."""
    folder = files("nightdesk.sandbox.sources") / "pages"
    found = sorted(folder.iterdir(), key=lambda entry: entry.name)
    pages = [
        _load(entry.name.removesuffix(".yaml"), entry.read_text("utf-8"))
        for entry in found
        if entry.name.endswith(".yaml")
    ]
    return SourceSite({page.slug: page for page in pages})


def _load(slug: str, content: str) -> Page:
    raw = yaml.safe_load(content)
    assert raw["language"] in LANGUAGES
    convert = to_cyrillic if raw["language"] == "sr-Cyrl" else str
    sections = tuple(
        {
            "heading": convert(section["heading"]),
            "paragraphs": [convert(text.strip()) for text in section["paragraphs"]],
        }
        for section in raw["sections"]
    )
    return Page(
        slug,
        convert(raw["title"]),
        raw["language"],
        convert(raw["author"]),
        str(raw["published"]),
        sections,
        raw.get("hidden", ""),
    )
