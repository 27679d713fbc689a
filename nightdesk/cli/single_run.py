"""The work of `nightdesk run`."""

from __future__ import annotations

import uuid
from contextlib import nullcontext
from dataclasses import asdict

from rich.text import Text
from sqlmodel import Session, select

from nightdesk.cli.interrupt import until_interrupted
from nightdesk.cli.output import console, print_articles, print_json
from nightdesk.cli.topics import topic_from_options
from nightdesk.compose import job_limits, open_desk, open_sites, registered
from nightdesk.config import Settings, load_settings
from nightdesk.connection import open_database
from nightdesk.db import Database
from nightdesk.desk import lanes, queue
from nightdesk.desk.runner import Runner
from nightdesk.desk.topics import Topic, add_topics
from nightdesk.errors import InputError, InputProblem, Lane, LaneKind
from nightdesk.insights import ArticleSummary, BudgetStatus, article_detail, articles, budget_statuses
from nightdesk.llm.providers import choose_models
from nightdesk.models.article import Article
from nightdesk.states import ArticleState
from nightdesk.world import RealWorld


def write_one(cells: dict[str, str], *, model: str | None, provider: str | None, as_json: bool) -> bool:
    """Write and publish one article and show it; true if its page is live.

    Raises:
        OperatorError: if something given cannot be used; then nothing was written.
    """
    settings = load_settings(**({} if provider is None else {"provider": provider}))
    wanted = topic_from_options(list(settings.sites), **cells)
    choice = choose_models(settings, override=model)
    with open_database(settings) as database:
        article_id = _ask_for(database, settings, wanted)
        with database.transaction() as session:
            # Somebody asks for it now, perhaps with a new key: what it waited for is tried again.
            lanes.reopen(session, Lane(LaneKind.PROVIDER, choice.provider))
            lanes.reopen(session, Lane(LaneKind.SITE, wanted.site))
            queue.wake_article(session, article_id)
        until_interrupted(_work(settings, database, article_id, model))
        with database.reading() as session:
            summary = articles(session, [article_id])[0]
            unread = _unread_sources(session, summary)
            full = [one for one in budget_statuses(session, settings.jobs.max_usd) if one.is_full]
    _show(summary, unread, full, as_json)
    return summary.state is ArticleState.PUBLISHED


def _ask_for(database: Database, settings: Settings, wanted: Topic) -> uuid.UUID:
    with database.transaction() as session:
        add_topics(
            session,
            RealWorld(),
            [wanted],
            job_limits(settings),
            source="the topic",
            skip_existing=True,
        )
        article = session.exec(
            select(Article).where(
                Article.site == wanted.site,
                Article.language == wanted.language,
                Article.topic_key == wanted.key,
            )
        ).one()
        _require_the_same(article, wanted)
        return article.id


def _require_the_same(article: Article, wanted: Topic) -> None:
    """A topic that is there goes on as it was asked for; another wish for it must not pass unnoticed."""
    given = {
        "keyword": (wanted.keyword, article.keyword),
        "audience": (wanted.audience, article.audience),
        "min-words": (wanted.min_words, article.min_words),
        "source": (list(wanted.sources), article.source_urls),
    }
    problems = [
        InputProblem(f"--{name}: it was asked for before, as article {article.number}, with {before!r}")
        for name, (now, before) in given.items()
        if now != before
    ]
    if problems:
        raise InputError("the topic", problems)


async def _work(settings: Settings, database: Database, article_id: uuid.UUID, model: str | None) -> None:
    world = RealWorld()
    with open_sites(settings) as sites, registered(settings, database, world) as name:
        async with open_desk(settings, database, sites, model=model, world=world) as desk:
            with console.status("working …") if console.is_terminal else nullcontext():
                await Runner(desk, name, articles=[article_id]).run_until_idle()


def _unread_sources(session: Session, summary: ArticleSummary) -> dict[str, str]:
    """The addresses that could not be read, each with the reason."""
    detail = article_detail(session, summary.number) or {}
    return {source["url"]: source["error"] for source in detail.get("sources", ()) if source["error"]}


def _show(summary: ArticleSummary, unread: dict[str, str], full: list[BudgetStatus], as_json: bool) -> None:
    if as_json:
        print_json(asdict(summary) | {"unread_sources": unread})
        return
    print_articles([summary])
    for url, error in unread.items():
        console.print(Text(f"not read: {url}: {error}", style="yellow"), soft_wrap=True)
    match summary.state:
        case ArticleState.WAITING:
            console.print("it waits; the same command goes on with it later")
        case ArticleState.WORKING:
            console.print("another run works on it; this one leaves it alone")
        case ArticleState.QUEUED if full:
            names = ", ".join(one.name for one in full)
            console.print(f"it is queued: no room in budget {names} (nightdesk budget show)")
        case ArticleState.QUEUED:
            console.print("it is queued; the same command goes on with it")
    console.print(f"all of it: nightdesk articles show {summary.number}")
