"""`nightdesk run`: one article from topic to live page, in this process."""

from __future__ import annotations

import uuid
from contextlib import nullcontext
from typing import Annotated

import typer
from sqlmodel import Session, select

from nightdesk.cli.compose import job_limits, open_database, open_desk, open_sites, registered
from nightdesk.cli.interrupt import until_interrupted
from nightdesk.cli.output import console, print_articles, print_json
from nightdesk.cli.topics import topic_from_options
from nightdesk.config import Settings, load_settings
from nightdesk.db import Database
from nightdesk.desk.runner import Runner
from nightdesk.desk.topics import Topic, add_topics
from nightdesk.insights import ArticleSummary, articles
from nightdesk.llm.providers import choose_models
from nightdesk.models.article import Article
from nightdesk.world import RealWorld


def run(
    topic: Annotated[str, typer.Option(help="What the article is about.")],
    keyword: Annotated[str, typer.Option(help="What its readers search for.")],
    site: Annotated[str, typer.Option(help="Where it is published.")],
    language: Annotated[str, typer.Option(help="en, sr-Latn, sr-Cyrl, te.")] = "en",
    audience: Annotated[str, typer.Option(help="For whom it is written.")] = "",
    min_words: Annotated[int, typer.Option(min=50, max=10_000)] = 300,
    source: Annotated[list[str] | None, typer.Option(help="A page or feed to read; repeatable.")] = None,
    model: Annotated[str | None, typer.Option(help="Use this model for every phase.")] = None,
    provider: Annotated[str | None, typer.Option(help="anthropic or openai.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write and publish one article; the same topic again goes on where it stood.

    Exit code 0 if its page is live, 1 if it needs a person, waits or was given up, 2 for bad input.
    """
    settings = load_settings(**({"provider": provider} if provider else {}))
    wanted = topic_from_options(
        list(settings.sites),
        topic=topic.strip(),
        keyword=keyword.strip(),
        site=site,
        language=language,
        audience=audience,
        min_words=str(min_words),
        sources=" ".join(source or ()),
    )
    choose_models(settings, override=model)
    with open_database(settings) as database:
        article_id = _ask_for(database, settings, wanted)
        until_interrupted(_work(settings, database, article_id, model))
        with database.reading() as session:
            summary = articles(session, [article_id])[0]
    _show(summary, as_json)
    if summary.state != "published":
        raise typer.Exit(1)


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
        return _article_id(session, wanted)


def _article_id(session: Session, wanted: Topic) -> uuid.UUID:
    return session.exec(
        select(Article.id).where(
            Article.site == wanted.site,
            Article.language == wanted.language,
            Article.topic_key == wanted.key,
        )
    ).one()


async def _work(settings: Settings, database: Database, article_id: uuid.UUID, model: str | None) -> None:
    world = RealWorld()
    with open_sites(settings) as sites, registered(settings, database, world) as name:
        async with open_desk(settings, database, sites, model=model, world=world) as desk:
            with console.status("working …") if console.is_terminal else nullcontext():
                await Runner(desk, name, articles=[article_id]).run_until_idle()


def _show(summary: ArticleSummary, as_json: bool) -> None:
    if as_json:
        print_json(summary)
        return
    print_articles([summary])
    if summary.state == "waiting":
        console.print("it waits; the same command goes on with it later")
    console.print(f"all of it: nightdesk articles show {summary.number}")
