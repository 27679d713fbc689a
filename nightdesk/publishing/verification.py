"""Is the article really live? What an anonymous visitor gets is the only proof of publication.

A site's own answer proves nothing: it says "published" for pages that are redirected, hidden from
search engines, replaced by a maintenance page, or shadowed by another page.
"""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import Callable, Iterable
from functools import cache
from uuid import UUID

import httpx
import regex
from selectolax.lexbor import LexborHTMLParser

from nightdesk import __version__
from nightdesk.publishing.port import Verification

ClientFactory = Callable[[], httpx.AsyncClient]

# Only gzip is asked for: its decoder is bounded here, so that no small answer fills the memory.
_HEADERS = {
    "User-Agent": f"Nightdesk/{__version__} (publication check)",
    "Accept": "text/html",
    "Accept-Encoding": "gzip",
}
_MARKER = regex.compile(rb"<!--\s*nightdesk:([0-9a-fA-F-]{36})\s*-->")
_NOT_FOR_INDEX = {"noindex", "none"}
# Directives whose value may be "none" without hiding the page.
_WITH_VALUE = {"max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"}
_GZIP_WINDOW = 16 + zlib.MAX_WBITS


def anonymous_client() -> httpx.AsyncClient:
    """A client without cookies or redirects; never through a proxy to this machine itself."""
    loopback = ("127.0.0.1", "localhost", "[::1]")
    return httpx.AsyncClient(
        follow_redirects=False,
        verify=_trusted_authorities(),
        timeout=httpx.Timeout(None),  # the deadline of the whole check governs
        mounts={f"all://{host}": None for host in loopback},
    )


async def verify_live(
    url: str,
    marker: UUID,
    *,
    client_factory: ClientFactory = anonymous_client,
    deadline_s: float = 20.0,
    max_bytes: int = 5_000_000,
) -> Verification:
    """GET `url` once, without following redirects, and judge what came.

    It is live if status 200, `text/html`, our marker and no `noindex` (meta or header) come within
    `deadline_s` seconds and `max_bytes` decoded bytes. Everything else is a problem in one
    sentence; nothing is raised for what the server does.
    """
    status: int | None = None
    try:
        async with (
            asyncio.timeout(deadline_s),
            client_factory() as client,
            client.stream("GET", url, headers=_HEADERS, follow_redirects=False) as response,
        ):
            status = response.status_code
            problem = _problem_of_head(response) or await _problem_of_body(response, marker, max_bytes)
    except TimeoutError:
        problem = f"did not answer completely within {deadline_s:g} s"
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        problem = f"could not be fetched: {str(error) or type(error).__name__}"
    return Verification(
        ok=problem is None,
        url=url,
        status=status,
        problem=None if problem is None else f"{url} {problem}",
    )


def _problem_of_head(response: httpx.Response) -> str | None:
    status, headers = response.status_code, response.headers
    if 300 <= status < 400:
        return f"answers {status} and leads to {headers.get('location', 'nowhere')}, not to a page"
    if status != 200:
        return f"answers {status} {response.reason_phrase}".rstrip() + " instead of 200"
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "text/html":
        return f"is sent as '{media_type or 'nothing'}' instead of text/html"
    if _hides(headers.get_list("x-robots-tag")):
        return "is hidden from search engines by its X-Robots-Tag header"
    return None


async def _problem_of_body(response: httpx.Response, marker: UUID, max_bytes: int) -> str | None:
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in {"identity", "gzip"}:
        return f"is encoded as '{encoding}', which was not asked for"
    decoder = zlib.decompressobj(_GZIP_WINDOW) if encoding == "gzip" else None
    body = bytearray()
    try:
        async for chunk in response.aiter_raw():
            room = max_bytes + 1 - len(body)
            body += decoder.decompress(chunk, room) if decoder else chunk
            if len(body) > max_bytes:
                return f"is larger than {max_bytes} bytes"
    except zlib.error:
        return "is sent with a damaged gzip encoding"
    if decoder and not decoder.eof:
        return "ends in the middle of its gzip encoding"
    return _problem_of_page(bytes(body), marker)


def _problem_of_page(html: bytes, marker: UUID) -> str | None:
    markers = {found.decode().lower() for found in _MARKER.findall(html)}
    if str(marker) not in markers:
        if markers:
            return f"shows another article ({', '.join(sorted(markers)[:3])}), not {marker}"
        return f"does not carry the marker of article {marker}"
    metas = LexborHTMLParser(html).css("meta[name][content]")
    robots = [
        meta.attributes.get("content") or ""
        for meta in metas
        if (meta.attributes.get("name") or "").strip().lower() in {"robots", "googlebot", "bingbot"}
    ]
    if _hides(robots):
        return "is hidden from search engines by a robots meta tag"
    return None


@cache
def _trusted_authorities() -> ssl.SSLContext:
    return httpx.create_ssl_context()  # reads a file of certificates: 0.1 s


def _hides(values: Iterable[str]) -> bool:
    """Whether robots directives forbid indexing, for whichever robot: a published page has none."""
    for directive in ",".join(values).lower().split(","):
        scope, _, value = directive.rpartition(":")
        if value.strip() in _NOT_FOR_INDEX and scope.strip() not in _WITH_VALUE:
            return True
    return False
