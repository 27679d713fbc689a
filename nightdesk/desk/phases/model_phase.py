"""What the four phases that ask a model have in common."""

from __future__ import annotations

import hashlib
import json
import uuid
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import Session, col, select

from nightdesk.desk.outputs import Output
from nightdesk.desk.queue import Claim
from nightdesk.errors import Permanent
from nightdesk.languages import language
from nightdesk.models.article import Article
from nightdesk.models.phase_outputs import PhaseOutput
from nightdesk.states import Phase
from nightdesk.text import storable_json


class Inputs(BaseModel):
    """The typed input of a phase, read from the database; its digest is part of the call key."""

    model_config = ConfigDict(frozen=True)

    topic: str
    keyword: str
    language: str
    audience: str
    min_words: int

    def variables(self, nonce: str) -> dict[str, str]:
        """The values that the prompt's user part may name. `nonce` marks quoted material."""
        known = language(self.language)
        return {
            "topic": self.topic,
            "keyword": self.keyword,
            "language": f"{known.name} ({known.tag})",
            "audience": self.audience or "general readers who are new to the topic",
            "min_words": str(self.min_words),
        }

    def digest(self) -> str:
        """A digest of the values, the same for the same inputs whatever the prompt makes of them."""
        canonical = json.dumps(self.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(canonical.encode()).hexdigest()


In = TypeVar("In", bound=Inputs)
Out = TypeVar("Out", bound=Output)
Row = TypeVar("Row", bound=PhaseOutput)


class ModelPhase(ABC, Generic[In, Out]):
    """One phase: what it reads, what it demands of the answer, what it stores."""

    phase: ClassVar[Phase]

    @abstractmethod
    def inputs(self, session: Session, claim: Claim) -> In:
        """Read the phase's input."""

    @abstractmethod
    def problems(self, inputs: In, output: Out) -> list[str]:
        """What makes an answer unusable, in words that the model can act on; empty if nothing does."""

    @abstractmethod
    def save(self, session: Session, claim: Claim, inputs: In, output: Out) -> None:
        """Store the output (an upsert); the caller finishes the job in the same transaction."""


def common(session: Session, article_id: uuid.UUID) -> tuple[Article, dict[str, Any]]:
    """The article and the fields that every phase's inputs have."""
    article = session.exec(select(Article).where(Article.id == article_id)).one()
    return article, {
        "topic": article.topic,
        "keyword": article.keyword,
        "language": article.language,
        "audience": article.audience,
        "min_words": article.min_words,
    }


def latest(session: Session, table: type[Row], article_id: uuid.UUID) -> Row | None:
    """The output of the highest round."""
    query = select(table).where(table.article_id == article_id).order_by(col(table.round).desc())
    return session.exec(query.limit(1)).first()


def required(session: Session, table: type[Row], article_id: uuid.UUID) -> Row:
    """The output of the highest round of an earlier phase.

    Raises:
        Permanent: if there is none; the queue only goes on after a stored output, so this is a bug.
    """
    row = latest(session, table, article_id)
    if row is None:
        raise Permanent(f"article {article_id} has no row in {table.__tablename__}")
    return row


def upsert(session: Session, table: type[PhaseOutput], claim: Claim, values: dict[str, Any]) -> None:
    """Write the output of an article and round; a repeated job overwrites its own."""
    row = {
        "article_id": claim.article_id,
        "round": claim.round,
        "job_id": claim.job_id,
        "claim_no": claim.claim_no,
        "prompt_version": claim.prompt_version,
        "model": claim.model,
        **{name: storable_json(value) for name, value in values.items()},
    }
    statement = insert(table).values(row)
    changed = {name: statement.excluded[name] for name in row if name not in ("article_id", "round")}
    session.connection().execute(
        statement.on_conflict_do_update(index_elements=["article_id", "round"], set_=changed)
    )
