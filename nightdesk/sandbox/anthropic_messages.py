"""Anthropic's Messages API, as `anthropic` 2.14 speaks it (non-streaming)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from nightdesk.sandbox.exchange import (
    Answer,
    Ask,
    Ending,
    Json,
    Refused,
    Segment,
    field_of,
)
from nightdesk.sandbox.schemas import SchemaRefused, check_schema
from nightdesk.sandbox.tariff import TARIFFS

_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_MESSAGES = {
    401: "invalid x-api-key",
    429: "This request would exceed your rate limit.",
    529: "Overloaded",
    500: "Internal server error",
}
_STOP_REASONS = {
    Ending.COMPLETE: "end_turn",
    Ending.MAX_TOKENS: "max_tokens",
    Ending.REFUSAL: "refusal",
    Ending.REFUSAL_EMPTY: "refusal",
}
_CACHE_TTLS_S = {"5m": 300, "1h": 3600}


class AnthropicMessages:
    """Reads `POST /v1/messages` and writes its answers."""

    name = "anthropic"

    def account(self, headers: dict[str, str]) -> str:
        key = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        if key in ("", "wrong"):
            raise Refused(401, {"message": "invalid x-api-key"})
        return key

    def read(self, body: Json, account: str) -> Ask:
        model = field_of(body, "model", str)
        if getattr(TARIFFS.get(model), "provider", None) != self.name:
            raise Refused(404, {"message": f"model: {model}"})
        for name in ("temperature", "top_p", "top_k"):
            if name in body:
                raise Refused(400, {"message": f"`{name}` is deprecated for this model."})
        if body.get("stream"):
            raise Refused(400, {"message": "stream: the sandbox answers in one piece only"})
        segments, user_text = _segments(body)
        schema = _schema(body)
        ask = Ask(
            provider=self.name,
            model=model,
            account=account,
            segments=segments,
            user_text=user_text,
            schema=schema,
            schema_title=str((schema or {}).get("title", "")),
            max_tokens=field_of(body, "max_tokens", int),
            body=body,
        )
        limit = TARIFFS[model].context_tokens
        if ask.prompt_tokens > limit:
            message = f"prompt is too long: {ask.prompt_tokens} tokens > {limit} maximum"
            raise Refused(400, {"message": message})
        return ask

    def write(self, ask: Ask, answer: Answer, serial: int) -> Json:
        content = [{"type": "text", "text": answer.text, "citations": None}]
        refused = answer.ending in (Ending.REFUSAL, Ending.REFUSAL_EMPTY)
        details = {
            "type": "refusal",
            "category": "general_harms",
            "explanation": "The request was declined under the usage policy.",
        }
        return {
            "id": f"msg_sandbox{serial:012d}",
            "type": "message",
            "role": "assistant",
            "model": ask.model,
            "content": [] if answer.ending is Ending.REFUSAL_EMPTY else content,
            "stop_reason": _STOP_REASONS[answer.ending],
            "stop_sequence": None,
            "stop_details": details if refused else None,
            "container": None,
            "diagnostics": None,
            "usage": _usage(answer),
        }

    def error(self, status: int, overrides: Json, request_id: str) -> Json:
        error = {
            "type": _ERROR_TYPES.get(status, "api_error"),
            "message": _MESSAGES.get(status, f"HTTP {status}"),
        }
        named = {name: value for name, value in overrides.items() if name != "param"}
        return {"type": "error", "error": error | named, "request_id": request_id}

    def headers(self, request_id: str) -> dict[str, str]:
        # A stand-in for the provider has the provider's clock; nothing of ours is decided by it.
        reset = (datetime.now(UTC) + timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        headers = {"request-id": request_id, "anthropic-organization-id": "org_sandbox"}
        for what, limit in (
            ("requests", 4000),
            ("tokens", 2_400_000),
            ("input-tokens", 2_000_000),
            ("output-tokens", 400_000),
        ):
            prefix = f"anthropic-ratelimit-{what}"
            headers |= {
                f"{prefix}-limit": str(limit),
                f"{prefix}-remaining": str(limit - 1),
                f"{prefix}-reset": reset,
            }
        return headers


def _usage(answer: Answer) -> Json:
    tokens = answer.tokens
    return {
        "input_tokens": tokens.uncached,
        "cache_creation_input_tokens": tokens.cache_write + tokens.cache_write_1h,
        "cache_read_input_tokens": tokens.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": tokens.cache_write,
            "ephemeral_1h_input_tokens": tokens.cache_write_1h,
        },
        "output_tokens": tokens.output,
        "output_tokens_details": {"thinking_tokens": 0},
        "server_tool_use": None,
        "service_tier": "standard",
        "speed": "standard",
        "inference_geo": "global",
    }


def _segments(body: Json) -> tuple[tuple[Segment, ...], str]:
    """The prompt in cache order (system before messages), and what the users' turns say."""
    messages = field_of(body, "messages", list)
    if not messages or not all(isinstance(message, dict) for message in messages):
        raise Refused(400, {"message": "messages: at least one message is required"})
    segments = [_segment(block) for block in _blocks(body.get("system") or [], "system")]
    user_texts: list[str] = []
    for message in messages:
        turn = [_segment(block) for block in _blocks(message.get("content"), "messages.content")]
        segments += turn
        if message.get("role") == "user":
            user_texts += [segment.text for segment in turn]
    if "cache_control" in body:  # marks the last block that can be cached
        segments[-1] = _segment({"text": segments[-1].text, "cache_control": body["cache_control"]})
    return tuple(segments), "\n".join(user_texts)


def _blocks(content: Any, where: str) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        raise Refused(400, {"message": f"{where}: must be a string or a list of blocks"})
    return content


def _segment(block: Json) -> Segment:
    if not isinstance(block.get("text"), str):
        raise Refused(400, {"message": "only blocks of type text can be read here"})
    control = block.get("cache_control")
    if control is None:
        return Segment(block["text"])
    ttl = control.get("ttl", "5m") if isinstance(control, dict) else None
    if ttl not in _CACHE_TTLS_S:
        raise Refused(400, {"message": "cache_control.ttl: must be '5m' or '1h'"})
    return Segment(block["text"], _CACHE_TTLS_S[ttl])


def _schema(body: Json) -> Json | None:
    wanted = (body.get("output_config") or {}).get("format")
    if wanted is None:
        return None
    schema = wanted.get("schema") if isinstance(wanted, dict) else None
    if not isinstance(schema, dict) or wanted.get("type") != "json_schema":
        raise Refused(400, {"message": "output_config.format: must be a json_schema with a schema"})
    try:
        check_schema("anthropic", schema)
    except SchemaRefused as refused:
        raise Refused(400, {"message": f"output_config.format.schema: {refused}"}) from refused
    return schema
