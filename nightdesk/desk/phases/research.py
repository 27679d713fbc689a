"""Research: sources are fetched and stored first, then a model makes the brief from them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import ClassVar

from pydantic import BaseModel, ConfigDict
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import Session, col, select

from nightdesk.desk.outputs import Brief
from nightdesk.desk.phases.model_phase import Inputs, ModelPhase, common, upsert
from nightdesk.desk.queue import Claim
from nightdesk.models.article import Article
from nightdesk.models.phase_outputs import BriefRow
from nightdesk.models.source import Source
from nightdesk.research import FetchedSource, as_data, quote_is_in
from nightdesk.states import Phase
from nightdesk.text import storable

#: Characters of all sources together that one prompt carries.
SOURCE_BUDGET_CHARS = 60_000
NO_SOURCES = "(no sources were given)"
NO_TEXT = "(sources were given, but none could be read)"


class SourceText(BaseModel):
    """One stored source as the prompt shows it."""

    model_config = ConfigDict(frozen=True)

    url: str
    title: str
    text: str


class ResearchInputs(Inputs):
    """The topic and the stored texts of its sources."""

    sources_given: bool
    sources: tuple[SourceText, ...]

    def variables(self, nonce: str) -> dict[str, str]:
        blocks = [
            f'<source nonce="{nonce}" url="{source.url}">\n{as_data(source.text, nonce)}\n</source {nonce}>'
            for source in self.sources
        ]
        nothing = NO_TEXT if self.sources_given else NO_SOURCES
        return super().variables(nonce) | {"sources": "\n\n".join(blocks) or nothing}


class ResearchPhase(ModelPhase[ResearchInputs, Brief]):
    """Makes the brief."""

    phase: ClassVar = Phase.RESEARCH

    def inputs(self, session: Session, claim: Claim) -> ResearchInputs:
        article, fields = common(session, claim.article_id)
        rows = session.exec(
            select(Source).where(Source.article_id == claim.article_id, col(Source.text) != "")
            .order_by(col(Source.position))
        ).all()  # fmt: skip
        share = SOURCE_BUDGET_CHARS // max(len(rows), 1)
        texts = tuple(
            SourceText(url=row.final_url or row.url, title=row.title or "", text=row.text[:share])
            for row in rows
        )
        return ResearchInputs(**fields, sources_given=bool(article.source_urls), sources=texts)

    def problems(self, inputs: ResearchInputs, output: Brief) -> list[str]:
        found = []
        if not output.angle.strip():
            found.append("`angle` is empty")
        if len([question for question in output.questions if question.strip()]) < 2:
            found.append("`questions` needs at least two questions")
        if output.facts and not proven(inputs, output):
            found.append(
                "no `quote` of the facts stands literally in its source: copy whole sentences from the "
                "text between the source marks, or leave `facts` empty"
            )
        return found

    def save(self, session: Session, claim: Claim, inputs: ResearchInputs, output: Brief) -> None:
        facts = proven(inputs, output)
        notes = [output.notes.strip()] if output.notes.strip() else []
        if not inputs.sources_given:
            notes.append("No sources were given.")
        elif not inputs.sources:
            notes.append("Sources were given, but none could be read.")
        if dropped := len(output.facts) - len(facts):
            notes.append(f"{dropped} facts were dropped: their quotes are not in the stored sources.")
        upsert(
            session,
            BriefRow,
            claim,
            {
                "angle": output.angle.strip(),
                "audience": output.audience.strip(),
                "questions": [question for question in output.questions if question.strip()],
                "facts": facts,
                "terms": [term for term in output.terms if term.strip()],
                "notes": " ".join(notes),
            },
        )


def proven(inputs: ResearchInputs, brief: Brief) -> list[dict[str, str]]:
    """The facts whose quote stands literally in the source that they name."""
    texts = {source.url: source.text for source in inputs.sources}
    return [
        fact.model_dump()
        for fact in brief.facts
        if fact.source_url in texts and quote_is_in(fact.quote, texts[fact.source_url])
    ]


def unread_urls(session: Session, article_id: uuid.UUID) -> list[str]:
    """The source addresses of an article that were not fetched yet."""
    article = session.exec(select(Article).where(Article.id == article_id)).one()
    known = set(session.exec(select(Source.url).where(Source.article_id == article_id)).all())
    return [url for url in article.source_urls if url not in known]


def store_sources(session: Session, article_id: uuid.UUID, sources: Sequence[FetchedSource]) -> None:
    """Keep what was fetched; an address that is stored already is left as it is."""
    for position, source in enumerate(sources):
        row = {
            "article_id": article_id,
            "position": position,
            "url": source.url,
            "final_url": source.final_url,
            "via_feed": source.via_feed,
            "status": source.status,
            "content_type": source.content_type,
            "sha256": source.sha256,
            "title": storable(source.title or "") or None,
            "published": source.published,
            "language": source.language,
            "robots": source.robots,
            "text": storable(source.text),
            "error": source.error,
        }
        session.connection().execute(insert(Source).values(row).on_conflict_do_nothing())
