"""One request to a provider, from its bytes to its journal entry and its answer."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from nightdesk.sandbox.exchange import (
    BYTES_PER_TOKEN,
    Answer,
    Ask,
    Dialect,
    Ending,
    Json,
    Refused,
    digest,
    fraction,
    token_count,
)
from nightdesk.sandbox.faults import (
    Failed,
    FaultInjector,
    Impostor,
    Latency,
    Leftover,
    Lost,
    Replace,
    Rule,
    Slow,
    Spoilt,
    Status,
    Stopped,
)
from nightdesk.sandbox.journal import JournalEntry, JournalWriter
from nightdesk.sandbox.prompt_cache import PromptCache
from nightdesk.sandbox.spoiling import answer_text, spoil
from nightdesk.sandbox.tariff import bill_usd
from nightdesk.sandbox.wire import BrokenResponse
from nightdesk.sandbox.writer import write_answer
from nightdesk.sandbox.writer.schema_values import Unsatisfiable

_PAGE = "<!doctype html><html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
_REFUSAL = "I can't help with that request."


@dataclass(slots=True)
class Exchange:
    """What is known of a request so far; becomes its journal entry."""

    path: str
    headers: dict[str, str]
    request_id: str
    body: Any = None
    ask: Ask | None = None
    rule: Rule | None = None
    answer: Answer | None = None

    @property
    def billed_usd(self) -> Decimal:
        """Answers cost, unless the rule that struck says otherwise."""
        if self.ask is None or self.answer is None:
            return Decimal(0)
        action = self.rule.action if self.rule else None
        return bill_usd(self.ask.model, self.answer.tokens) if _is_billed(action) else Decimal(0)


@dataclass(slots=True)
class Desk:
    """Answers requests of one provider after another; all share journal, plan and cache."""

    journal: JournalWriter
    injector: FaultInjector
    seed: int
    latency_s: float
    cache: PromptCache = field(default_factory=PromptCache)
    _requests: int = 0

    async def handle(self, request: Request, dialect: Dialect) -> ASGIApp:
        """Answer one request; its journal entry is on disk before the answer is returned."""
        self._requests += 1
        request_id = f"req_sandbox{self.journal.entries + self._requests:012d}"
        exchange = Exchange(request.url.path, dict(request.headers.items()), request_id)
        try:
            account = dialect.account(exchange.headers)
            exchange.body = _parse(await request.body())
            exchange.ask = dialect.read(exchange.body, account)
            exchange.rule = self.injector.pick(exchange.ask, exchange.headers)
            await asyncio.sleep(self._latency_s(exchange))
            if exchange.rule and isinstance(exchange.rule.action, Status):
                raise Refused(exchange.rule.action.status, exchange.rule.action.error)
            exchange.answer = self._answer(exchange.ask, exchange.rule)
        except Refused as refused:
            return self._refuse(exchange, dialect, refused)
        return self._reply(exchange, exchange.ask, exchange.answer, dialect)

    def _latency_s(self, exchange: Exchange) -> float:
        jitter = 0.5 + fraction(self.seed, "latency", exchange.body)
        action = exchange.rule.action if exchange.rule else None
        extra = action.seconds if isinstance(action, Latency) else 0.0
        return self.latency_s * jitter + extra

    def _answer(self, ask: Ask, rule: Rule | None) -> Answer:
        try:
            value = write_answer(ask.user_text, ask.schema, digest(self.seed, ask.body))
        except Unsatisfiable as error:
            raise Refused(400, {"message": f"schema: {error}"}) from error
        tokens = self.cache.split(ask)
        action = rule.action if rule else None
        ending, text = Ending.COMPLETE, answer_text(value)
        match action:
            case Spoilt() | Leftover() | Replace():
                text = spoil(value, action)
            case Stopped(kind="truncate"):
                ending, text = Ending.MAX_TOKENS, text[: len(text) // 2]
            case Stopped(kind=kind):
                ending, text = Ending(kind), _REFUSAL if kind == "refusal" else ""
            case Failed(code=code):
                tokens = replace(tokens, output=0)
                return Answer("", Ending.FAILED, tokens, error_code=code)
        if ask.max_tokens is not None and token_count(text) > ask.max_tokens:
            ending, text = Ending.MAX_TOKENS, _cut(text, ask.max_tokens)
        # The real APIs count at least one token even for an empty answer.
        return Answer(text, ending, replace(tokens, output=max(1, token_count(text))))

    def _refuse(self, exchange: Exchange, dialect: Dialect, refused: Refused) -> Response:
        headers = dialect.headers(exchange.request_id)
        action = exchange.rule.action if exchange.rule else None
        if isinstance(action, Status) and action.retry_after is not None:
            headers["retry-after"] = action.retry_after
        body = dialect.error(refused.status, refused.error, exchange.request_id)
        billed = Decimal(0)
        if isinstance(action, Status) and action.billed and exchange.ask is not None:
            exchange.answer = self._answer(exchange.ask, None)
            billed = exchange.billed_usd
        self._record(exchange, dialect, refused.status, body, None, billed)
        return _json_response(body, headers, refused.status)

    def _reply(self, exchange: Exchange, ask: Ask, answer: Answer, dialect: Dialect) -> ASGIApp:
        action = exchange.rule.action if exchange.rule else None
        headers = dialect.headers(exchange.request_id)
        body: Any = dialect.write(ask, answer, self.journal.entries + 1)
        usage = body["usage"]
        if isinstance(action, Impostor):
            usage = usage if action.billed else None
            error = dialect.error(500, {"message": "Upstream failed."}, exchange.request_id)
            body = {"html200": _PAGE, "error200": error, "null200": None}[action.kind]
        if isinstance(action, Spoilt) and action.kind == "no_usage":
            body = {name: value for name, value in body.items() if name != "usage"}
        status = None if action and action.kind in ("reset", "stall") else 200
        self._record(exchange, dialect, status, body, usage, exchange.billed_usd)
        if isinstance(action, Lost | Slow) and action.kind != "empty":
            seconds = action.seconds if isinstance(action, Slow) else 0.0
            return BrokenResponse(action.kind, json.dumps(body).encode(), headers, seconds)
        if action and action.kind == "html200":
            return Response(_PAGE, 200, headers, media_type="text/html")
        if action and action.kind == "empty":
            return Response(b"", 200, headers, media_type="application/json")
        return _json_response(body, headers, 200)

    def _record(
        self,
        exchange: Exchange,
        dialect: Dialect,
        status: int | None,
        body: Any,
        usage: Json | None,
        billed: Decimal,
    ) -> None:
        asked = exchange.body if isinstance(exchange.body, dict) else {}
        model = asked.get("model")
        self.journal.append(
            JournalEntry(
                seq=self.journal.entries + 1,
                at=datetime.now(UTC).isoformat(),  # for whoever reads the journal; nothing is decided by it
                provider=dialect.name,
                model=model if isinstance(model, str) else None,
                path=exchange.path,
                client_request_id=exchange.headers.get("x-client-request-id"),
                request_id=exchange.request_id,
                status=status,
                fault=exchange.rule.name if exchange.rule else None,
                phase=(exchange.ask.schema_title or None) if exchange.ask else None,
                usage=usage,
                billed_usd=billed,
                request=exchange.body,
                response=body,
            )
        )


def _is_billed(action: Any) -> bool:
    return bool(getattr(action, "billed", True))


def _parse(raw: bytes) -> Json:
    try:
        body = json.loads(raw)
    except ValueError as error:
        raise Refused(400, {"message": f"the request body is not JSON ({error})"}) from error
    if not isinstance(body, dict):
        raise Refused(400, {"message": "the request body must be a JSON object"})
    return body


def _cut(text: str, max_tokens: int) -> str:
    return text.encode("utf-8", "surrogatepass")[: max_tokens * BYTES_PER_TOKEN].decode("utf-8", "ignore")


def _json_response(body: Any, headers: dict[str, str], status: int) -> Response:
    # ASCII escapes: the text may hold lone surrogates, which UTF-8 cannot carry.
    content = json.dumps(body).encode("ascii")
    return Response(content, status, headers, media_type="application/json")
