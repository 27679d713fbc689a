"""One phase's question to a model, until its answer is usable or it is clear that none will be."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import regex
from pydantic import ValidationError

from nightdesk.db import Database
from nightdesk.desk.outputs import Output
from nightdesk.desk.phases import MODEL_PHASES
from nightdesk.desk.phases.model_phase import Inputs
from nightdesk.desk.prompting import Prompt, keep_version, prompt_of_version
from nightdesk.desk.queue import Claim
from nightdesk.errors import NeedsPerson, Permanent, Reason
from nightdesk.llm.calls import rejections
from nightdesk.llm.metered import Answer, Ask, MeteredClient, call_key
from nightdesk.llm.port import Stop
from nightdesk.text import shorten, storable
from nightdesk.validation import wrong_fields
from nightdesk.world import World

#: Questions asked per claim: the first, and one more that says what was wrong with the answer.
ASKS = 2
#: No provider's model gives more than this in one answer that is not streamed.
MOST_OUTPUT_TOKENS = 64_000

TRUNCATED = "the answer was cut off at its output limit"
REFUSED = "the model refused"
_FENCED = regex.compile(r"\s*```[a-zA-Z]*\n(?P<inner>.*)\n```\s*", regex.DOTALL)


@dataclass(frozen=True, slots=True)
class Question:
    """Everything that an ask of a claimed job needs."""

    claim: Claim
    prompt: Prompt
    inputs: Inputs
    deadline_s: float


def prepare(database: Database, claim: Claim, deadline_s: float) -> Question:
    """Read a claimed job's typed input and its pinned prompt."""
    assert claim.prompt_version is not None, "the first claim pins the prompt version"
    prompt = prompt_of_version(claim.prompt_version)
    with database.transaction() as session:
        keep_version(session, prompt)
        inputs = MODEL_PHASES[claim.phase].inputs(session, claim)
    return Question(claim, prompt, inputs, deadline_s)


async def generate(database: Database, client: MeteredClient, world: World, question: Question) -> Output:
    """The validated output of a phase.

    What was asked and refused before is read from the rows of the calls, so that a killed attempt is
    continued where it stood and no stored answer is bought twice.

    Raises:
        NeedsPerson: if the model refuses, or its answer is cut off twice.
        Permanent: if its answer is unusable twice.
        JobError, Fenced: from the metered client.
    """
    rendered = question.prompt.render(question.inputs.variables(world.new_id().hex))
    while True:
        ask = _ask(question, rendered, await asyncio.to_thread(_rejections, database, question))
        answer = await client.ask(ask)
        try:
            return _accept(question, answer)
        except Unusable as unusable:
            await client.reject(answer, unusable.why)
            refused = await asyncio.to_thread(_rejections, database, question)
            mine = [row for row in refused if row.claim_no == question.claim.claim_no]
            if unusable.final or len(mine) >= ASKS:
                raise _hopeless(question, unusable, [row.error for row in mine]) from unusable


async def due_key(database: Database, question: Question) -> str:
    """What the next answer is stored under: the call key and the number of the ask."""
    refused = await asyncio.to_thread(_rejections, database, question)
    return f"{call_key(_ask(question, '', []))}-{1 + len({row.ask_no for row in refused})}"


class Unusable(Exception):
    """An answer that was paid for cannot be used. `final`: asking again would not help."""

    def __init__(self, why: str, *, final: bool = False, detail: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.final = final
        self.detail = detail


def _rejections(database: Database, question: Question) -> list[Any]:
    with database.reading() as session:
        return rejections(session, call_key(_ask(question, "", [])))


def _ask(question: Question, rendered: str, refused: list[Any]) -> Ask:
    """The next ask: after a refused answer with the reason in it, after a cut one with more room."""
    claim, front = question.claim, question.prompt.front
    assert claim.provider is not None
    assert claim.model is not None
    room = front.max_output_tokens
    if refused and refused[-1].error == TRUNCATED:
        room = max(room, min(room * 2, MOST_OUTPUT_TOKENS))
    elif refused and refused[-1].error != REFUSED:
        rendered += f"\n\nYour previous answer could not be used: {refused[-1].error}\nAnswer again, whole."
    return Ask(
        job_id=claim.job_id,
        claim_no=claim.claim_no,
        article_id=claim.article_id,
        site=claim.site,
        phase=claim.phase,
        round=claim.round,
        provider=claim.provider,
        model=claim.model,
        prompt_version=question.prompt.version,
        input_digest=question.inputs.digest(),
        system=storable(question.prompt.system),
        user=storable(rendered),
        schema=question.prompt.schema,
        max_output_tokens=room,
        min_output_tokens=front.min_output_tokens,
        deadline_s=question.deadline_s,
    )


def _accept(question: Question, answer: Answer) -> Output:
    if answer.stop is Stop.REFUSED or answer.stop is Stop.FILTERED:
        raise Unusable(REFUSED, final=True, detail=answer.detail)
    if answer.stop is Stop.TRUNCATED:
        raise Unusable(TRUNCATED)
    if not answer.text.strip():
        raise Unusable("the answer was empty")
    output = parse(question.prompt.schema, answer.text)
    problems = MODEL_PHASES[question.claim.phase].problems(question.inputs, output)
    if problems:
        raise Unusable("; ".join(problems))
    return output


def parse(schema: type[Output], text: str) -> Output:
    """An answer as its schema, with strings that can be stored.

    A fence around the whole answer is taken off; fences inside values stay.

    Raises:
        Unusable: naming the fields that are wrong.
    """
    fenced = _FENCED.fullmatch(text)
    try:
        output = schema.model_validate_json(fenced["inner"] if fenced else text)
    except ValidationError as error:
        wrong = "; ".join(wrong_fields(error, "answer")[:5])
        raise Unusable(f"it does not fit the schema ({shorten(wrong, 800)})") from None
    return schema.model_validate(_clean(output.model_dump()))


def _clean(value: Any) -> Any:
    match value:
        case str():
            return storable(value)
        case list():
            return [_clean(item) for item in value]
        case dict():
            return {key: _clean(item) for key, item in value.items()}
        case _:
            return value


def _hopeless(question: Question, unusable: Unusable, refused: list[str]) -> NeedsPerson | Permanent:
    model, phase = question.claim.model, question.claim.phase
    if unusable.why == REFUSED:
        detail = f" ({unusable.detail})" if unusable.detail else ""
        said = f"{model} refused to write the {phase} of this topic{detail}: reword the topic"
        return NeedsPerson(said, reasons=(Reason("refusal", said),))
    if set(refused) == {TRUNCATED}:
        said = (
            f"{model} was cut off {len(refused)} times while writing the {phase}: ask for a shorter article, "
            "or raise the limits of a job"
        )
        return NeedsPerson(said, reasons=(Reason("truncated", said),))
    return Permanent(f"{model} gave an unusable {phase} twice; the last time: {unusable.why}")
