"""What both official SDKs have in common: they are built by one generator and sit on httpx2."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2

from nightdesk.errors import ConfigError
from nightdesk.llm.failures import (
    ProviderError,
    classify,
    lost,
    misconfigured,
    not_sent,
    retry_after_s,
    unsendable,
)
from nightdesk.llm.port import CallFailed, ModelReply, ModelRequest

#: A connection that takes longer will not come: nothing was sent, so nothing need be written off.
CONNECT_S = 10.0
_NEVER_LEFT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
)
# A line break in the key and the like.
_CANNOT_BE_MADE = (httpx2.LocalProtocolError, httpx2.InvalidURL)


@contextmanager
def configuring(provider: str) -> Iterator[None]:
    """Building a client.

    Raises:
        ConfigError: if its address, or a proxy that the environment names, cannot be used.
    """
    try:
        yield
    except (ValueError, httpx2.InvalidURL) as error:
        raise ConfigError(
            f"no client for {provider} can be made: {error}; "
            f"check {provider}.base_url and the proxy variables of the environment"
        ) from None


async def guarded(
    provider: str,
    request: ModelRequest,
    call: Callable[[], Awaitable[ModelReply]],
    *,
    status_error: type[Exception],
    connection_error: type[Exception],
) -> ModelReply:
    """Run one SDK call under a deadline for the whole of it, and translate every exception.

    The SDKs' own read timeout is per chunk: a server that drips bytes would hold them for ever.
    """
    try:
        async with asyncio.timeout(request.deadline_s):
            return await call()
    except CallFailed:
        raise
    except TimeoutError:
        raise lost(provider, f"nothing complete within {request.deadline_s:g} s") from None
    except status_error as error:
        raise classify(_provider_error(provider, error)) from error
    except connection_error as error:
        cause = error.__cause__
        if isinstance(cause, _NEVER_LEFT):
            raise not_sent(provider, str(cause) or type(cause).__name__) from error
        if isinstance(cause, _CANNOT_BE_MADE):
            # Without the cause: it quotes the header, and with it the key.
            raise misconfigured(provider, type(cause).__name__) from None
        raise lost(provider, f"{error} ({type(cause).__name__})") from error
    except UnicodeEncodeError as error:
        raise unsendable(provider, str(error)) from error
    except json.JSONDecodeError as error:
        raise lost(provider, f"its answer is not JSON: {error}") from error
    except (
        httpx2.HTTPError, ExceptionGroup, ValueError, AttributeError, TypeError, LookupError
    ) as error:  # fmt: skip
        # Bodies that are JSON but not of the promised shape surface in many ways.
        raise lost(provider, f"its answer cannot be read: {type(error).__name__}: {error}") from error


def timeout(request: ModelRequest) -> httpx2.Timeout:
    """The SDK's timeouts: the request's deadline, and a short one for the connection."""
    return httpx2.Timeout(request.deadline_s, connect=min(CONNECT_S, request.deadline_s))


def _provider_error(provider: str, error: Any) -> ProviderError:
    body = _object(error.body)
    inner = _object(body.get("error")) or body
    details = _object(inner.get("details"))
    given = (
        getattr(error, "type", None),
        getattr(error, "code", None),
        getattr(error, "error_code", None),
        inner.get("type"),
        inner.get("code"),
        details.get("error_code"),
    )
    headers = error.response.headers
    return ProviderError(
        provider=provider,
        status=error.status_code,
        codes=frozenset(code for code in given if isinstance(code, str)),
        message=str(inner.get("message") or error.message),
        retry_after_s=retry_after_s(headers.get("retry-after"), headers.get("retry-after-ms")),
    )


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_dict(usage: Any) -> dict[str, Any] | None:
    """The provider's usage object as plain JSON; None if it sent none."""
    if usage is None:
        return None
    # Without warnings: that a field is not of the promised type is nothing an operator can act on.
    dumped: dict[str, Any] = usage.model_dump(mode="json", exclude_none=True, warnings=False)
    return dumped


def count(usage: dict[str, Any], *path: str) -> int:
    """A count in nested usage; compatible servers leave out fields that the types promise."""
    value: Any = usage
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
