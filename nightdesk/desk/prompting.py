"""Prompts: `prompts/<phase>/<number>.md`, front matter and two parts, `system` and `user`.

The system part is the same for every article, so that the providers' prompt caches apply. A prompt
holds no logic: Jinja2 fills in values, and a name that is not in `inputs` is an error.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable

import regex
import yaml
from jinja2 import StrictUndefined, TemplateError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import text
from sqlmodel import Session

from nightdesk.desk import outputs
from nightdesk.errors import ConfigError
from nightdesk.states import Phase

_FORM = regex.compile(
    r"---\n(?P<front>.*?)\n---\n=== system ===\n(?P<system>.*?)\n=== user ===\n(?P<user>.*)", regex.DOTALL
)
_ENVIRONMENT = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined, autoescape=False, keep_trailing_newline=False
)


class FrontMatter(BaseModel):
    """What a prompt says of itself."""

    model_config = ConfigDict(extra="forbid")

    inputs: list[str]
    output: str
    max_output_tokens: int = Field(gt=0, lt=128_000)
    min_output_tokens: int = Field(gt=0)  #: below this limit an answer would be of no use


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt file. `version` is `draft/1@<digest>`."""

    phase: Phase
    number: int
    version: str
    digest: str
    source: str
    front: FrontMatter
    system: str
    user: str
    schema: type[outputs.Output]

    def render(self, values: dict[str, str]) -> str:
        """The user part with its inputs filled in.

        Raises:
            ConfigError: if an input is missing.
        """
        try:
            return _ENVIRONMENT.from_string(self.user).render(
                {name: values[name] for name in self.front.inputs}
            )
        except (KeyError, TemplateError) as error:
            raise ConfigError(f"prompt {self.version} cannot be filled in: {error}") from None


def load_prompt(phase: Phase, number: int | None = None) -> Prompt:
    """A prompt by number, by default the highest.

    Raises:
        ConfigError: if there is none, or it is malformed.
    """
    return _load(phase, number if number is not None else max(prompt_numbers(phase)))


def prompt_of_version(version: str) -> Prompt:
    """The prompt that a job was pinned to, e.g. `draft/1@0a1b2c`.

    Raises:
        ConfigError: if the file is gone or was changed since: released numbers never change.
    """
    name, _, digest = version.partition("@")
    phase, _, number = name.partition("/")
    prompt = load_prompt(Phase(phase), int(number))
    if prompt.digest != digest:
        raise ConfigError(
            f"prompts/{name}.md was changed after it was used (now {prompt.digest}, then {digest}): "
            "put the old text back and add the new one under a new number"
        )
    return prompt


def prompt_numbers(phase: Phase) -> list[int]:
    """The numbers that exist for a phase, in order."""
    folder = files("prompts") / phase
    names = [item.name.removesuffix(".md") for item in folder.iterdir() if item.name.endswith(".md")]
    numbers = sorted(int(name) for name in names if name.isdecimal())
    if not numbers:
        raise ConfigError(f"there is no prompt in prompts/{phase}")
    return numbers


@lru_cache(maxsize=64)
def _load(phase: Phase, number: int) -> Prompt:
    path = files("prompts") / phase / f"{number}.md"
    if not path.is_file():
        raise ConfigError(f"there is no prompt prompts/{phase}/{number}.md")
    return parse_prompt(phase, number, _read(path))


def _read(path: Traversable) -> str:
    return path.read_text(encoding="utf-8").replace("\r\n", "\n")


def parse_prompt(phase: Phase, number: int, source: str) -> Prompt:
    """A prompt from the text of its file.

    Raises:
        ConfigError: naming the file and what is wrong with it.
    """
    where = f"prompts/{phase}/{number}.md"
    parts = _FORM.fullmatch(source)
    if parts is None:
        raise ConfigError(f"{where} needs front matter and the parts '=== system ===', '=== user ==='")
    try:
        front = FrontMatter.model_validate(yaml.safe_load(parts["front"]))
        used = meta.find_undeclared_variables(_ENVIRONMENT.parse(parts["user"]))
    except (yaml.YAMLError, ValidationError, TemplateError) as error:
        raise ConfigError(f"{where}: {error}") from None
    if used != set(front.inputs):
        odd = ", ".join(sorted(used ^ set(front.inputs)))
        raise ConfigError(f"{where}: 'inputs' and the names used in the text differ in {odd}")
    schema = getattr(outputs, front.output, None)
    if not (isinstance(schema, type) and issubclass(schema, outputs.Output)):
        raise ConfigError(f"{where}: 'output' names {front.output}, which is no output of a phase")
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    return Prompt(
        phase=phase,
        number=number,
        version=f"{phase}/{number}@{digest}",
        digest=digest,
        source=source,
        front=front,
        system=parts["system"].strip(),
        user=parts["user"].strip(),
        schema=schema,
    )


_KEEP = text("""
    INSERT INTO nightdesk.prompt_versions (version, phase, number, digest, text)
    VALUES (:version, :phase, :number, :digest, :source) ON CONFLICT (version) DO NOTHING
""")


def keep_version(session: Session, prompt: Prompt) -> None:
    """Keep the full text at first use, whatever happens to the file later."""
    session.connection().execute(
        _KEEP,
        {
            "version": prompt.version,
            "phase": prompt.phase,
            "number": prompt.number,
            "digest": prompt.digest,
            "source": prompt.source,
        },
    )
