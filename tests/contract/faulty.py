"""A loopback web server that shows an article in every way that is not "published"."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from uuid import UUID

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from nightdesk.publishing.port import marker_comment

OTHER = UUID("00000000-0000-4000-8000-000000000001")

#: path -> a word that the problem sentence has to contain
FAULTS = {
    "missing": "404",
    "forbidden": "403",
    "broken": "500",
    "no-content": "204",
    "redirect": "301",
    "redirect-307": "307",
    "wrong-type": "application/json",
    "no-type": "text/html",
    "other-marker": "another article",
    "no-marker": "marker",
    "escaped-marker": "marker",
    "noindex-meta": "robots meta tag",
    "noindex-bot": "robots meta tag",
    "none-meta": "robots meta tag",
    "noindex-header": "X-Robots-Tag",
    "noindex-scoped": "X-Robots-Tag",
    "slow": "within",
    "drip": "within",
    "huge": "larger",
    "bomb": "larger",
    "damaged-gzip": "gzip",
    "short-gzip": "gzip",
    "brotli": "encoded",
    "cut-off": "could not be fetched",
}
#: path of what must be accepted
GOOD = ("fine", "fine-gzip", "fine-upper-case", "fine-preview-none")


def page(marker: UUID, head: str = "") -> str:
    return (
        f"<!doctype html><html><head><title>x</title>{head}</head>"
        f"<body>{marker_comment(marker)}<p>Text</p></body></html>"
    )


def _answer(name: str, marker: UUID) -> Response:
    whole = page(marker)
    packed = gzip.compress(whole.encode())
    html = {"content-type": "text/html; charset=utf-8"}
    zipped = html | {"content-encoding": "gzip"}
    if name == "huge":
        return HTMLResponse(whole + "x" * 6_000_000)
    if name == "bomb":
        return Response(gzip.compress(whole.encode() + b" " * 50_000_000, 1), headers=zipped)
    answers: dict[str, Response] = {
        "fine": HTMLResponse(whole),
        "fine-gzip": Response(packed, headers=zipped),
        "fine-upper-case": Response(whole, headers={"content-type": "Text/HTML"}),
        "fine-preview-none": HTMLResponse(
            page(marker, '<meta name="robots" content="index, max-image-preview:none">'),
            headers={"x-robots-tag": "max-snippet: none"},
        ),
        "forbidden": HTMLResponse(whole, 403),
        "broken": HTMLResponse(whole, 500),
        "no-content": Response(status_code=204),
        "redirect": HTMLResponse(whole, 301, {"location": "/fine"}),
        "redirect-307": HTMLResponse(whole, 307, {"location": "/fine"}),
        "wrong-type": JSONResponse({"content": whole}),
        "no-type": Response(whole),
        "other-marker": HTMLResponse(page(OTHER)),
        "no-marker": HTMLResponse("<p>Under construction</p>"),
        "escaped-marker": HTMLResponse(whole.replace("<!--", "&lt;!--")),
        "noindex-meta": HTMLResponse(page(marker, "<META NAME=Robots CONTENT='NoIndex,follow'>")),
        "noindex-bot": HTMLResponse(page(marker, '<meta content="noindex" name="googlebot">')),
        "none-meta": HTMLResponse(page(marker, '<meta name="robots" content="none">')),
        "noindex-header": HTMLResponse(whole, headers={"x-robots-tag": "noindex"}),
        "noindex-scoped": HTMLResponse(whole, headers={"x-robots-tag": "googlebot: noindex"}),
        "damaged-gzip": Response(b"\x1f\x8b" + b"no gzip at all", headers=zipped),
        "short-gzip": Response(packed[:-12], headers=zipped),
        "brotli": Response(whole, headers=html | {"content-encoding": "br"}),
    }
    return answers.get(name, HTMLResponse(whole, 404))


async def _slowly(marker: UUID, *, cut_off: bool) -> AsyncIterator[bytes]:
    yield page(marker).encode()
    if cut_off:
        raise ConnectionResetError("the server went away")
    while True:
        yield b" "
        await asyncio.sleep(0.05)


class FaultyServer:
    """Serves `/<name>` for every name in `FAULTS` and `GOOD`, about one article."""

    def __init__(self, marker: UUID, port: int) -> None:
        self.marker = marker
        self.base_url = f"http://127.0.0.1:{port}"
        self.requests: list[Request] = []

    def url(self, name: str) -> str:
        return f"{self.base_url}/{name}"

    async def answer(self, request: Request) -> Response:
        self.requests.append(request)
        name = request.path_params["name"]
        if name == "slow":
            await asyncio.sleep(3)
        if name in {"drip", "cut-off"}:
            body = _slowly(self.marker, cut_off=name == "cut-off")
            return StreamingResponse(body, media_type="text/html")
        return _answer(name, self.marker)


@contextmanager
def faulty_server(marker: UUID) -> Iterator[FaultyServer]:
    """Run the server on a free loopback port."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    faulty = FaultyServer(marker, listener.getsockname()[1])
    app = Starlette(routes=[Route("/{name}", faulty.answer)])
    server = uvicorn.Server(
        uvicorn.Config(app, log_level="critical", lifespan="off", timeout_graceful_shutdown=0)
    )
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    deadline = time.monotonic() + 10
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.01)
    assert server.started, "the faulty server did not start"
    try:
        yield faulty
    finally:
        server.should_exit = True
        thread.join(5)
