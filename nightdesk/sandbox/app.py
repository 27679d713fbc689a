"""The ASGI application: providers, source pages, and the sandbox's own pages under `/_sandbox`."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from nightdesk.errors import ConfigError
from nightdesk.sandbox.anthropic_messages import AnthropicMessages
from nightdesk.sandbox.exchange import Dialect, Refused
from nightdesk.sandbox.exchanging import Desk
from nightdesk.sandbox.faults import FaultInjector, parse_plan
from nightdesk.sandbox.journal import read_journal
from nightdesk.sandbox.openai_responses import OpenAIResponses
from nightdesk.sandbox.sources.site import SourceSite
from nightdesk.sandbox.tariff import TARIFFS

_ANTHROPIC = AnthropicMessages()
_OPENAI = OpenAIResponses()
_ROBOTS = "User-agent: *\nDisallow: /v1/\nDisallow: /_sandbox/\nAllow: /\n"


def create_app(desk: Desk, site: SourceSite) -> Starlette:
    """The application around one desk and one site of source pages."""

    async def messages(request: Request) -> ASGIApp:
        return await desk.handle(request, _ANTHROPIC)

    async def responses(request: Request) -> ASGIApp:
        return await desk.handle(request, _OPENAI)

    async def health(request: Request) -> Response:
        return JSONResponse(
            {
                "name": "nightdesk-sandbox",
                "version": _version(),
                "pid": os.getpid(),
                "journal": str(desk.journal.path.absolute()),
            }
        )

    async def plan(request: Request) -> Response:
        if request.method == "POST":
            try:
                new = parse_plan(await request.body(), "in the request body")
            except ConfigError as error:
                return JSONResponse({"error": str(error)}, 400)
            desk.injector = FaultInjector(new, desk.seed)
        return JSONResponse(_plan_with_counts(desk.injector))

    async def journal(request: Request) -> Response:
        entries = [asdict(entry) for entry in read_journal(desk.journal.path)]
        content = json.dumps({"entries": entries}, default=str)
        return Response(content, media_type="application/json")

    return Starlette(
        routes=[
            Route("/v1/messages", messages, methods=["POST"]),
            Route("/v1/responses", responses, methods=["POST"]),
            Route("/v1/models", _models),
            Route("/_sandbox/health", health),
            Route("/_sandbox/plan", plan, methods=["GET", "POST"]),
            Route("/_sandbox/journal", journal),
            Route("/robots.txt", _robots),
            *site.routes(),
        ]
    )


async def _robots(request: Request) -> Response:
    return PlainTextResponse(_ROBOTS)


async def _models(request: Request) -> Response:
    """Both providers use this path; Anthropic's clients are known by their key's header."""
    headers = dict(request.headers.items())
    dialect: Dialect = _OPENAI
    if "x-api-key" in headers or "anthropic-version" in headers:
        dialect = _ANTHROPIC
    reply = dialect.headers("req_sandbox_models")
    try:
        dialect.account(headers)
    except Refused as refused:
        body = dialect.error(refused.status, refused.error, "req_sandbox_models")
        return JSONResponse(body, refused.status, reply)
    names = [name for name, tariff in TARIFFS.items() if tariff.provider == dialect.name]
    if dialect is _OPENAI:
        data = [
            {"id": name, "object": "model", "created": 1796000000, "owned_by": "openai"} for name in names
        ]
        return JSONResponse({"object": "list", "data": data}, 200, reply)
    data = [
        {"id": name, "type": "model", "display_name": name, "created_at": "2026-11-30T00:00:00Z"}
        for name in names
    ]
    listing = {"data": data, "has_more": False, "first_id": names[0], "last_id": names[-1]}
    return JSONResponse(listing, 200, reply)


def _plan_with_counts(injector: FaultInjector) -> dict[str, object]:
    counts = {
        rule.name: {"matched": injector.matched[rule.name], "struck": injector.struck[rule.name]}
        for rule in injector.plan.rules
    }
    return injector.plan.model_dump(mode="json", by_alias=True) | {"counts": counts}


def _version() -> str:
    try:
        return version("nightdesk")
    except PackageNotFoundError:
        return "0"
