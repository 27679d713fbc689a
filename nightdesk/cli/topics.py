"""`nightdesk topics`: what is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nightdesk.cli.output import console, print_articles, print_json
from nightdesk.errors import InputError, InputProblem

if TYPE_CHECKING:
    from nightdesk.desk.topics import Topic

app = typer.Typer(help="Topics: what is asked for.", no_args_is_help=True)


def topic_from_options(sites: list[str], **cells: str) -> Topic:
    """A topic from command-line options.

    Raises:
        InputError: naming each option that is wrong.
    """
    from nightdesk.desk.topics import parse_topic

    problems: list[InputProblem] = []
    topic = parse_topic(cells, sites, problems)
    if topic is None:
        named = [InputProblem(f"{_option(problem.column)}: {problem.message}") for problem in problems]
        raise InputError("the topic", named)
    return topic


def _option(column: str | None) -> str:
    """The option that fills a column."""
    return "--source" if column == "sources" else f"--{(column or 'topic').replace('_', '-')}"


@app.command()
def add(
    topic: Annotated[str, typer.Option(help="What the article is about.")],
    keyword: Annotated[str, typer.Option(help="What its readers search for.")],
    site: Annotated[str, typer.Option(help="Where it is published.")],
    language: Annotated[str, typer.Option(help="en, sr-Latn, sr-Cyrl, te.")] = "en",
    priority: Annotated[int, typer.Option(min=0, max=9, help="9 is first.")] = 0,
    audience: Annotated[str, typer.Option(help="For whom it is written.")] = "",
    min_words: Annotated[int, typer.Option(min=50, max=10_000)] = 300,
    source: Annotated[list[str] | None, typer.Option(help="A page or feed to read; repeatable.")] = None,
) -> None:
    """Add one topic to the queue."""
    from nightdesk.compose import job_limits
    from nightdesk.config import load_settings
    from nightdesk.connection import open_database
    from nightdesk.desk.topics import add_topics
    from nightdesk.world import RealWorld

    settings = load_settings()
    wanted = topic_from_options(
        list(settings.sites),
        topic=topic.strip(),
        keyword=keyword.strip(),
        site=site,
        language=language,
        priority=str(priority),
        audience=audience,
        min_words=str(min_words),
        sources=" ".join(source or ()),
    )
    with open_database(settings) as database, database.transaction() as session:
        add_topics(session, RealWorld(), [wanted], job_limits(settings), source="the topic")
    console.print("1 topic added")


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="CSV with the columns topic, keyword, site and optionally "
                                              "language, priority, audience, min_words, sources.")],
    skip_existing: Annotated[bool, typer.Option(help="Leave out topics that are there already.")] = False,
) -> None:  # fmt: skip
    """Add the topics of a CSV file: all of them or, if anything is wrong, none."""
    from nightdesk.compose import job_limits
    from nightdesk.config import load_settings
    from nightdesk.connection import open_database
    from nightdesk.desk.topics import add_topics, read_topics
    from nightdesk.world import RealWorld

    settings = load_settings()
    topics = read_topics(file, settings.sites)
    with open_database(settings) as database, database.transaction() as session:
        done = add_topics(
            session,
            RealWorld(),
            topics,
            job_limits(settings),
            source=str(file),
            skip_existing=skip_existing,
        )
    plural = "" if done.added == 1 else "s"
    console.print(f"{done.added} topic{plural} added, {done.existing} were there already")


@app.command("list")
def list_(
    limit: Annotated[int, typer.Option(min=1, help="At most so many, the highest priority first.")] = 1_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show all topics and where their articles stand."""
    from nightdesk.config import load_settings
    from nightdesk.connection import open_database
    from nightdesk.insights import articles

    with open_database(load_settings()) as database, database.reading() as session:
        found = articles(session, limit=limit)
    if as_json:
        print_json(found)
    elif found:
        print_articles(found)
    else:
        console.print("no topics yet: add some with `nightdesk topics add` or `nightdesk topics import`")
