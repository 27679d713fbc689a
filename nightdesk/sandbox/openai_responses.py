"""OpenAI's Responses API, as `openai` 3.57 speaks it (non-streaming)."""

from __future__ import annotations

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

_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded", 503: "server_is_overloaded"}
_TYPES = {
    400: "invalid_request_error",
    401: "invalid_request_error",
    404: "invalid_request_error",
    429: "requests",
}
_MESSAGES = {
    429: "Rate limit reached for requests.",
    500: "The server had an error.",
    503: "The server is overloaded.",
}
_UNFINISHED = {Ending.MAX_TOKENS: "max_output_tokens", Ending.CONTENT_FILTER: "content_filter"}


class OpenAIResponses:
    """Reads `POST /v1/responses` and writes its answers."""

    name = "openai"

    def account(self, headers: dict[str, str]) -> str:
        key = headers.get("authorization", "").removeprefix("Bearer ").strip()
        if key in ("", "wrong"):
            message = f"Incorrect API key provided: {key or '(none)'}."
            raise Refused(401, {"message": message})
        return key

    def read(self, body: Json, account: str) -> Ask:
        model = field_of(body, "model", str)
        if getattr(TARIFFS.get(model), "provider", None) != self.name:
            message = f"The model `{model}` does not exist or you do not have access to it."
            raise Refused(404, {"message": message, "param": "model", "code": "model_not_found"})
        if body.get("stream"):
            raise Refused(400, {"message": "The sandbox answers in one piece only.", "param": "stream"})
        segments, user_text = _segments(body)
        schema, title = _schema(body)
        ask = Ask(
            provider=self.name,
            model=model,
            account=account,
            segments=segments,
            user_text=user_text,
            schema=schema,
            schema_title=title,
            max_tokens=body.get("max_output_tokens"),
            cache_key=str(body.get("prompt_cache_key") or ""),
            body=body,
        )
        if ask.prompt_tokens > TARIFFS[model].context_tokens:
            message = "Your input exceeds the context window of this model."
            raise Refused(400, {"message": message, "param": "input", "code": "context_length_exceeded"})
        return ask

    def write(self, ask: Ask, answer: Answer, serial: int) -> Json:
        reason = _UNFINISHED.get(answer.ending)
        status = "incomplete" if reason else "completed"
        error = None
        if answer.ending is Ending.FAILED:
            status = "failed"
            error = {"code": answer.error_code, "message": "The model failed to answer."}
        return {
            "id": f"resp_sandbox{serial:012d}",
            "object": "response",
            "created_at": 1796000000,
            "status": status,
            "background": False,
            "error": error,
            "incomplete_details": {"reason": reason} if reason else None,
            "instructions": ask.body.get("instructions"),
            "metadata": {},
            "max_output_tokens": ask.max_tokens,
            "model": ask.model,
            "output": _output(answer, status, serial),
            "parallel_tool_calls": True,
            "previous_response_id": None,
            "reasoning": {"effort": None, "summary": None},
            "service_tier": "default",
            "store": bool(ask.body.get("store", True)),
            "temperature": 1.0,
            "top_p": 1.0,
            "text": ask.body.get("text", {"format": {"type": "text"}}),
            "tool_choice": "auto",
            "tools": [],
            "truncation": "disabled",
            "user": None,
            "usage": None if answer.ending is Ending.FAILED else _usage(answer),
        }

    def error(self, status: int, overrides: Json, request_id: str) -> Json:
        error = {
            "message": _MESSAGES.get(status, f"HTTP {status}"),
            "type": _TYPES.get(status, "server_error"),
            "param": None,
            "code": _CODES.get(status),
        }
        return {"error": error | overrides}

    def headers(self, request_id: str) -> dict[str, str]:
        return {
            "x-request-id": request_id,
            "openai-organization": "org-sandbox",
            "openai-version": "2020-10-01",
            "openai-processing-ms": "1",
            "x-ratelimit-limit-requests": "10000",
            "x-ratelimit-remaining-requests": "9999",
            "x-ratelimit-reset-requests": "6ms",
            "x-ratelimit-limit-tokens": "2000000",
            "x-ratelimit-remaining-tokens": "1999000",
            "x-ratelimit-reset-tokens": "30ms",
        }


def _output(answer: Answer, status: str, serial: int) -> list[Json]:
    if answer.ending in (Ending.REFUSAL_EMPTY, Ending.CONTENT_FILTER, Ending.FAILED):
        return []
    content: Json = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
    if answer.ending is Ending.REFUSAL:
        content = {"type": "refusal", "refusal": answer.text}
    return [
        {
            "id": f"msg_sandbox{serial:012d}",
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": [content],
        }
    ]


def _usage(answer: Answer) -> Json:
    tokens = answer.tokens
    return {
        "input_tokens": tokens.prompt,
        "input_tokens_details": {
            "cached_tokens": tokens.cache_read,
            "cache_write_tokens": tokens.cache_write,
        },
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens.prompt + tokens.output,
    }


def _segments(body: Json) -> tuple[tuple[Segment, ...], str]:
    """The prompt in order (instructions first), and what the users' turns say."""
    items = field_of(body, "input", (str, list))
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    segments = [Segment(str(body["instructions"]))] if body.get("instructions") else []
    user_texts: list[str] = []
    for item in items:
        if not isinstance(item, dict):
            raise Refused(400, {"message": "Invalid type for 'input'.", "param": "input"})
        texts = _texts(item.get("content"))
        segments += [Segment(text) for text in texts]
        user_texts += texts if item.get("role") == "user" else []
    return tuple(segments), "\n".join(user_texts)


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    texts = [
        part.get("text") if isinstance(part, dict) else None
        for part in (content if isinstance(content, list) else [None])
    ]
    if not all(isinstance(text, str) for text in texts):
        raise Refused(400, {"message": "Invalid value for 'input[].content'.", "param": "input"})
    return [str(text) for text in texts]


def _schema(body: Json) -> tuple[Json | None, str]:
    wanted = (body.get("text") or {}).get("format")
    if not isinstance(wanted, dict) or wanted.get("type") != "json_schema":
        return None, ""
    schema, name = wanted.get("schema"), str(wanted.get("name", ""))
    if not isinstance(schema, dict) or not name:
        raise Refused(400, {"message": "Missing required parameter: 'text.format'.", "param": "text.format"})
    try:
        check_schema("openai", schema)
    except SchemaRefused as refused:
        message = f"Invalid schema for response_format '{name}': In context={refused.where}, {refused.why}."
        raise Refused(
            400, {"message": message, "param": "text.format.schema", "code": "invalid_json_schema"}
        ) from refused
    return schema, str(schema.get("title") or name)
