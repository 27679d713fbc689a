"""Draft: the whole article, section by section of the outline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from sqlmodel import Session

from nightdesk.desk.composition import assemble, one_line
from nightdesk.desk.outputs import DraftText, Section
from nightdesk.desk.phases.model_phase import ModelPhase, common, required, upsert
from nightdesk.desk.phases.outline import BriefInputs, statements
from nightdesk.desk.quality import count_words
from nightdesk.desk.queue import Claim
from nightdesk.languages import language
from nightdesk.models.phase_outputs import BriefRow, DraftRow, OutlineRow
from nightdesk.states import Phase


class DraftInputs(BriefInputs):
    """The brief and the outline."""

    title: str
    outline: tuple[tuple[str, tuple[str, ...]], ...]  #: heading, points

    def variables(self, nonce: str) -> dict[str, str]:
        sections = [
            "\n".join([f"section: {heading}", *(f"- {one_line(point)}" for point in points)])
            for heading, points in self.outline
        ]
        return super().variables(nonce) | {"title": self.title, "outline": "\n\n".join(sections)}


class DraftPhase(ModelPhase[DraftInputs, DraftText]):
    """Writes the article."""

    phase: ClassVar = Phase.DRAFT

    def inputs(self, session: Session, claim: Claim) -> DraftInputs:
        brief = required(session, BriefRow, claim.article_id)
        outline = required(session, OutlineRow, claim.article_id)
        _, fields = common(session, claim.article_id)
        fields["audience"] = fields["audience"] or brief.audience
        return DraftInputs(
            **fields,
            angle=brief.angle,
            facts=statements(brief),
            notes=brief.notes,
            title=outline.title,
            outline=tuple((part["heading"], tuple(part["points"])) for part in outline.sections),
        )

    def problems(self, inputs: DraftInputs, output: DraftText) -> list[str]:
        return text_problems([heading for heading, _ in inputs.outline], output)

    def save(self, session: Session, claim: Claim, inputs: DraftInputs, output: DraftText) -> None:
        markdown = assemble(output.introduction, output.sections)
        upsert(
            session,
            DraftRow,
            claim,
            {
                "title": one_line(output.title),
                "introduction": output.introduction,
                "sections": [section.model_dump() for section in output.sections],
                "words": count_words(markdown, language(inputs.language)),
            },
        )


def text_problems(headings: Sequence[str], output: Any) -> list[str]:
    """What makes an article unusable as a whole: parts that are missing, empty or not asked for.

    Length, keyword and wording are the quality gate's, which looks at what is to be published.
    """
    sections: list[Section] = output.sections
    found = [f"`{name}` is empty" for name in ("title", "introduction") if not getattr(output, name).strip()]
    found += [f"the section '{part.heading}' is empty" for part in sections if not part.body.strip()]
    given = [one_line(part.heading).casefold() for part in sections]
    if given != [one_line(heading).casefold() for heading in headings]:
        wanted = " | ".join(headings)
        found.append(f"`sections` must have exactly these headings in this order: {wanted}")
    return found
