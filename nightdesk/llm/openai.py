"""OpenAI Responses through the official SDK; `create`, never `parse` (see `anthropic.py`)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from nightdesk.errors import Lane, LaneKind, NeedsPerson, Reason, ToldToWait
from nightdesk.llm.failures import DEFAULT_WAIT_S, FLAGGED, lost
from nightdesk.llm.port import Billing, CallFailed, ModelReply, ModelRequest, Stop
from nightdesk.llm.sdk import as_dict, configuring, count, guarded, timeout
from nightdesk.spend.usage import TokenUsage

if TYPE_CHECKING:
    from openai.types.responses import Response

PROVIDER = "openai"
_PRICED_TIERS = frozenset({"flex", "priority", "fast"})


class OpenAIModel:
    """One client for the process."""

    provider = PROVIDER

    def __init__(self, api_key: str, base_url: str | None = None) -> None:
        from openai import APIConnectionError, APIStatusError, AsyncOpenAI, DefaultAsyncHttpxClient

        self._status_error, self._connection_error = APIStatusError, APIConnectionError
        with configuring(PROVIDER):
            self._client = AsyncOpenAI(
                api_key=api_key,
                base_url=base_url or "https://api.openai.com/v1",
                max_retries=0,
                http_client=DefaultAsyncHttpxClient(follow_redirects=False),
            )

    async def ask(self, request: ModelRequest) -> ModelReply:
        """See `ModelPort.ask`."""
        return await guarded(
            PROVIDER,
            request,
            lambda: self._create(request),
            status_error=self._status_error,
            connection_error=self._connection_error,
        )

    async def _create(self, request: ModelRequest) -> ModelReply:
        raw = await self._client.responses.with_raw_response.create(
            model=request.model,
            instructions=request.system,
            input=request.user,
            max_output_tokens=request.max_output_tokens,
            text={
                "format": {
                    "type": "json_schema",
                    "name": request.schema.__name__,
                    "schema": _schema(request.schema),
                    "strict": True,
                }
            },
            prompt_cache_key=request.cache_key,
            # Left out, the project's settings decide, and the worst case would not cover what they choose.
            service_tier="default",
            store=False,
            timeout=timeout(request),
            extra_headers={"X-Client-Request-Id": str(request.call_id)},
        )
        return read_response(raw.parse(), raw.headers.get("x-request-id"))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()


def read_response(response: Response | Any, request_id: str | None) -> ModelReply:
    """The reply in a response.

    Raises:
        CallFailed: if it failed, is still running, or is no response at all.
    """
    status = getattr(response, "status", None)
    if status == "failed":
        raise _failed(response)
    if status not in ("completed", "incomplete"):
        kind = "HTML or text" if isinstance(response, str) else f"status {status!r}"
        raise lost(PROVIDER, f"no finished response ({kind})")
    text, refusal = _contents(response)
    reason = getattr(response.incomplete_details, "reason", None)
    if refusal is not None:
        stop = Stop.REFUSED
    elif status == "completed":
        stop = Stop.END
    else:
        stop = Stop.FILTERED if reason == "content_filter" else Stop.TRUNCATED
    raw_usage = as_dict(response.usage)
    return ModelReply(
        text=text,
        stop=stop,
        usage=read_usage(raw_usage, response.service_tier) if raw_usage else None,
        raw_usage=raw_usage,
        request_id=request_id,
        detail=refusal or "",
    )


def _contents(response: Response) -> tuple[str, str | None]:
    texts, refusal = [], None
    for item in response.output:
        for part in getattr(item, "content", None) or []:
            if part.type == "output_text":
                texts.append(part.text)
            elif part.type == "refusal":
                refusal = part.refusal
    return "".join(texts), refusal


def _failed(response: Response) -> CallFailed:
    code = getattr(response.error, "code", None)
    said = f"openai reports {code}: {getattr(response.error, 'message', '')}"
    lane = Lane(LaneKind.PROVIDER, PROVIDER)
    if code == "rate_limit_exceeded":
        return CallFailed(ToldToWait(said, lane=lane, retry_after_s=DEFAULT_WAIT_S), Billing.NOTHING)
    if code in FLAGGED:
        return CallFailed(NeedsPerson(said, reasons=(Reason("prompt_flagged", said),)), Billing.UNKNOWN)
    return lost(PROVIDER, said)


def read_usage(raw: dict[str, Any], tier: str | None) -> TokenUsage | None:
    """OpenAI's `input_tokens` include what came from the cache."""
    written = count(raw, "input_tokens_details", "cache_write_tokens")
    usage = TokenUsage(
        input_tokens=count(raw, "input_tokens"),
        cache_read_tokens=count(raw, "input_tokens_details", "cached_tokens"),
        cache_write_tokens=written,
        output_tokens=count(raw, "output_tokens"),
        reasoning_tokens=count(raw, "output_tokens_details", "reasoning_tokens"),
        tier=tier if tier in _PRICED_TIERS else None,
    )
    return usage if usage.can_be_priced else None


@lru_cache(maxsize=32)
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    from openai.lib._pydantic import to_strict_json_schema

    return dict(to_strict_json_schema(model))
