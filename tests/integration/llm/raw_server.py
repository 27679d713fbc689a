"""A server of raw bytes: what no framework would send, and a count of what reached it."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

Behaviour = Callable[[asyncio.StreamWriter], Awaitable[None]]
# SO_LINGER on with 0 s: closing sends RST instead of FIN.
_LINGER_NOT = struct.pack("ii", 1, 0)
_DRIP_S = 0.02


@dataclass(frozen=True)
class Received:
    """One request as it arrived; header names are in lower case."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.body)
        return parsed


@dataclass
class RawServer:
    """Listens on a free loopback port and lets each request meet `behaviour`; then hangs up."""

    behaviour: Behaviour
    requests: list[Received] = field(default_factory=list)
    _server: asyncio.Server | None = None

    @property
    def base_url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.strip().split("\r\n")
            fields = (line.partition(":") for line in lines)
            headers = {name.strip().lower(): value.strip() for name, _, value in fields}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            self.requests.append(Received(first.split(" ")[1], headers, body))
            await self.behaviour(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has gone: that is what deadlines are for
        finally:
            writer.close()


def http(status: int, body: bytes, content_type: str = "application/json", **headers: str) -> bytes:
    """A whole response. Underscores in header names stand for hyphens."""
    fields = {"Content-Type": content_type, "Content-Length": str(len(body)), "Connection": "close"}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status} Said\r\n{head}\r\n".encode() + body


def sends(data: bytes) -> Behaviour:
    """Exactly these bytes, then the end of the connection."""

    async def behave(writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()

    return behave


def says(body: Any, status: int = 200, **headers: str) -> Behaviour:
    """A JSON body; lone surrogates leave as escapes."""
    return sends(http(status, json.dumps(body).encode("ascii"), **headers))


def drips(data: bytes) -> Behaviour:
    """One byte at a time, each well within any read timeout, for far longer than any deadline here."""

    async def behave(writer: asyncio.StreamWriter) -> None:
        head, _, body = data.partition(b"\r\n\r\n")
        writer.write(head + b"\r\n\r\n")
        for byte in body:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(_DRIP_S)

    return behave


async def stalls(writer: asyncio.StreamWriter) -> None:
    """Nothing at all for longer than any deadline here."""
    await asyncio.sleep(5)


async def resets(writer: asyncio.StreamWriter) -> None:
    """RST in place of an answer."""
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
    writer.transport.abort()
