"""Reading a body with a limit on what it unpacks to, checked while it streams."""

from __future__ import annotations

import zlib

import httpx

from nightdesk.errors import Permanent

#: What we ask for and can bound; httpx itself unpacks each chunk whole, and stacked encodings
#: multiply a few kilobytes into gigabytes.
ACCEPT_ENCODING = "gzip"
_GZIP_WBITS = 16 + zlib.MAX_WBITS


async def read_start(response: httpx.Response, max_bytes: int) -> tuple[bytes, bool]:
    """The first `max_bytes` decoded bytes, and whether that is the whole body.

    What follows a gzip stream is ignored, as browsers do.

    Raises:
        Permanent: if the body has another encoding than gzip, or is broken gzip.
    """
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding in ("", "identity"):
        return await _read_plain(response, max_bytes)
    if encoding in ("gzip", "x-gzip"):
        return await _read_gzip(response, max_bytes)
    raise Permanent(f"{response.url} is packed as '{encoding[:40]}', which was not asked for")


async def _read_plain(response: httpx.Response, max_bytes: int) -> tuple[bytes, bool]:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > max_bytes:
            return bytes(body[:max_bytes]), False
    return bytes(body), True


async def _read_gzip(response: httpx.Response, max_bytes: int) -> tuple[bytes, bool]:
    body, unpacker, begun = bytearray(), zlib.decompressobj(_GZIP_WBITS), False
    async for chunk in response.aiter_raw():
        begun = True
        try:
            body += unpacker.decompress(chunk, max_bytes - len(body) + 1)
        except zlib.error as error:
            raise Permanent(f"{response.url} sent broken gzip: {error}") from error
        if len(body) > max_bytes:
            return bytes(body[:max_bytes]), False
        if unpacker.eof:
            return bytes(body), True
    if begun:
        raise Permanent(f"{response.url} sent gzip that ends in the middle")
    return b"", True
