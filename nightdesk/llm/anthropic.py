"""Anthropic Messages through the official SDK.

`create`, never `parse`: parse loses usage and request id when the answer does not fit the schema.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from nightdesk.llm.failures import lost
from nightdesk.llm.port import ModelReply, ModelRequest, Stop
from nightdesk.llm.sdk import as_dict, configuring, count, guarded, timeout
from nightdesk.spend.usage import TokenUsage

PROVIDER = "anthropic"
_STOPS = {
    "end_turn": Stop.END,
    "stop_sequence": Stop.END,
    "max_tokens": Stop.TRUNCATED,
    "model_context_window_exceeded": Stop.TRUNCATED,
    "refusal": Stop.REFUSED,
}


class AnthropicModel:
    """One client for the process: building one costs a third of a second (TLS)."""

    provider = PROVIDER

    def __init__(self, api_key: str, base_url: str | None = None) -> None:
        from anthropic import APIConnectionError, APIStatusError, AsyncAnthropic, DefaultAsyncHttpxClient

        self._status_error, self._connection_error = APIStatusError, APIConnectionError
        with configuring(PROVIDER):
            # Both given: a stray variable in the environment must not redirect spend.
            self._client = AsyncAnthropic(
                api_key=api_key,
                base_url=base_url or "https://api.anthropic.com",
                max_retries=0,
                # A redirect would send the question again, up to twenty times and to anybody.
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
        raw = await self._client.messages.with_raw_response.create(
            model=request.model,
            max_tokens=request.max_output_tokens,
            system=[{"type": "text", "text": request.system, "cache_control": {"type": "ephemeral"}}],
            messages=[{"role": "user", "content": request.user}],
            output_config={"format": {"type": "json_schema", "schema": _schema(request.schema)}},
            service_tier="standard_only",
            timeout=timeout(request),
            extra_headers={"X-Client-Request-Id": str(request.call_id)},
        )
        return read_message(await raw.parse(), raw.headers.get("request-id"))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()


def read_message(message: Any, request_id: str | None) -> ModelReply:
    """The reply in a message.

    Raises:
        CallFailed: if it is not a finished message.
    """
    stop_reason = getattr(message, "stop_reason", None)
    if stop_reason not in _STOPS:
        kind = "HTML or text" if isinstance(message, str) else f"stop reason {stop_reason!r}"
        raise lost(PROVIDER, f"no finished message ({kind})")
    raw_usage = as_dict(message.usage)
    details = message.stop_details if stop_reason == "refusal" else None
    return ModelReply(
        text="".join(block.text for block in message.content if block.type == "text"),
        stop=_STOPS[stop_reason],
        usage=read_usage(raw_usage) if raw_usage else None,
        raw_usage=raw_usage,
        request_id=request_id,
        detail=str(getattr(details, "explanation", None) or getattr(details, "category", None) or ""),
    )


def read_usage(raw: dict[str, Any]) -> TokenUsage | None:
    """Anthropic's `input_tokens` are the uncached ones only: the three kinds are added up."""
    read, written = count(raw, "cache_read_input_tokens"), count(raw, "cache_creation_input_tokens")
    usage = TokenUsage(
        input_tokens=count(raw, "input_tokens") + read + written,
        cache_read_tokens=read,
        cache_write_tokens=written,
        cache_write_1h_tokens=count(raw, "cache_creation", "ephemeral_1h_input_tokens"),
        output_tokens=count(raw, "output_tokens"),
        reasoning_tokens=count(raw, "output_tokens_details", "thinking_tokens"),
        # `priority` is committed capacity, paid for elsewhere; tokens cost no more than standard.
        tier="batch" if raw.get("service_tier") == "batch" else None,
        inference_geo=raw.get("inference_geo"),
    )
    return usage if usage.can_be_priced else None


@lru_cache(maxsize=32)
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    from anthropic import transform_schema

    return dict(transform_schema(model))
