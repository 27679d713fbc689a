"""A web site on loopback, and a reader that may reach it."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from nightdesk.research import FetchedSource, FetchPolicy, SourceReader

Handler = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class WebSite:
    """Answers raw bytes, or lets a handler write them; keeps the heads of all requests."""

    port: int = 0
    routes: dict[str, bytes | Handler] = field(default_factory=dict)
    heads: list[str] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def paths(self) -> list[str]:
        return [head.split(" ")[1] for head in self.heads]

    def url(self, path: str) -> str:
        return f"http://news.example{path}"

    def add(
        self,
        path: str,
        body: str | bytes = b"",
        kind: str = "text/html",
        status: str = "200 OK",
        **headers: str,
    ) -> str:
        raw = body.encode() if isinstance(body, str) else body
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(raw)}", "Connection: close"]
        lines += [f"Content-Type: {kind}"] if kind else []
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.routes[path] = "\r\n".join([*lines, "", ""]).encode() + raw
        return self.url(path)

    def redirect(self, path: str, to: str) -> str:
        return self.add(path, status="302 Found", Location=to)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            route = self.routes.get(head.split(" ")[1])
            if callable(route):
                await route(writer)
            else:
                writer.write(route or b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@pytest.fixture
async def site() -> AsyncIterator[WebSite]:
    site = WebSite()
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    yield site
    server.close()


@dataclass
class Readers:
    """Makes readers that know the site as news.example, and closes them."""

    site: WebSite
    made: list[SourceReader] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def reader(self, resolve: Any = None, **limits: Any) -> SourceReader:
        connect_to = limits.pop("connect_to", {}) | {"news.example": self.site.address}
        policy = FetchPolicy("Nightdesk/0.1 (+https://example.org/contact)", connect_to, **limits)
        self.made.append(SourceReader(policy, resolve or no_names, self.sleep))
        return self.made[-1]

    async def one(self, url: str, resolve: Any = None, **limits: Any) -> FetchedSource:
        sources = await self.reader(resolve, **limits).read([url])
        assert [source.url for source in sources] == [url]
        return sources[0]


async def no_names(host: str, port: int) -> list[str]:
    raise OSError("no such name")


@pytest.fixture
async def readers(site: WebSite) -> AsyncIterator[Readers]:
    readers = Readers(site)
    yield readers
    for reader in readers.made:
        await reader.aclose()


def article(sentence: str, head: str = "", extra: str = "") -> str:
    """A page whose main text has a sentence."""
    filler = "<p>Moths come to the night garden when the lamps are low and the air is still.</p>" * 5
    return (
        f"<!DOCTYPE html><html lang='en'><head><title>Night moths</title>{head}</head><body><article>"
        f"<h1>Night moths</h1><p>{sentence}</p>{filler}{extra}</article></body></html>"
    )


def zipped(size: int) -> bytes:
    return gzip.compress(b"a" * size)
