"""Settings: the only reader of the environment. Nothing is read at import time.

Values come, strongest first, from arguments, `NIGHTDESK_…` variables and `nightdesk.toml` in the
current folder (or the file named by `NIGHTDESK_CONFIG`). Keys of the model providers are also read
from their usual variables, `ANTHROPIC_API_KEY` and `OPENAI_API_KEY`.
"""

from __future__ import annotations

import difflib
import json
import logging
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
)
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from nightdesk.errors import ConfigError

_log = logging.getLogger(__name__)
_WEB_ADDRESS = re.compile(r"https?://[^\s/?#]+[^\s?#]*")


def _web_address(value: str) -> str:
    try:
        parts = urlsplit(value)
        usable = bool(parts.hostname and (parts.port is None or parts.port)) and _WEB_ADDRESS.fullmatch(value)
    except ValueError:  # a port past 65535, half an IPv6 address
        usable = None
    if not usable:
        raise ValueError("it is no web address, such as https://host or https://host/path")
    return value


WebAddress = Annotated[str, AfterValidator(_web_address)]
#: Names of sites are parts of paths, addresses and accounts.
SiteName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
ProviderName = Literal["anthropic", "openai"]


def _key(given: str) -> SecretStr | None:
    """A key as it goes into an HTTP header; None if it is blank."""
    key = given.strip()
    if not (key.isascii() and key.isprintable()):
        raise ValueError("it has a line break or another character that no key has: copy it again")
    return SecretStr(key) if key else None


class ProviderSettings(BaseModel):
    """How to reach one model provider."""

    model_config = ConfigDict(extra="forbid")

    api_key: SecretStr | None = None
    base_url: WebAddress | None = None  #: None: the provider's own
    max_in_flight: Annotated[int, Field(ge=1, le=1000)] = 8  #: calls at a time
    tokens_per_minute: Annotated[int, Field(ge=1000)] | None = None  #: None: only the provider's own limit

    @field_validator("api_key")
    @classmethod
    def _sendable(cls, value: SecretStr | None) -> SecretStr | None:
        return None if value is None else _key(value.get_secret_value())


class StaticSiteSettings(BaseModel):
    """A folder of pages, served by anything that serves files."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["static"] = "static"
    title: str
    tagline: str = ""
    author: str = ""
    folder: Path | None = None  #: None: `sites/<name>` in the data folder
    base_url: WebAddress | None = None  #: None: our loopback server


class ModelSettings(BaseModel):
    """Which model writes what: the strong one drafts, the cheap one does the rest."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    strong: str | None = None
    cheap: str | None = None
    deadline_s: Annotated[float, Field(gt=0, le=840)] = 300.0


class JobSettings(BaseModel):
    """Limits of one job over all its attempts."""

    model_config = ConfigDict(extra="forbid")

    max_tokens: Annotated[int, Field(ge=20_000)] = 400_000
    max_usd: Annotated[Decimal, Field(gt=0)] = Decimal(2)
    lease_s: Annotated[float, Field(ge=3, le=86_400)] = 900.0


class ResearchSettings(BaseModel):
    """How sources are fetched."""

    model_config = ConfigDict(extra="forbid")

    contact: str = "https://example.org/contact"  #: shown to site owners in the User-Agent
    connect_to: dict[str, str] = {}  #: `host[:port]` → `address:port`, the only way to a private address
    per_host_delay_s: Annotated[float, Field(ge=0)] = 1.0


class Settings(BaseSettings):
    """All settings. `NIGHTDESK_MODELS__STRONG`, `NIGHTDESK_JOBS__MAX_USD`, … name nested ones."""

    model_config = SettingsConfigDict(
        env_prefix="NIGHTDESK_",
        env_nested_delimiter="__",
        env_ignore_empty=True,
        extra="forbid",
        nested_model_default_partial_update=True,
    )

    database_url: SecretStr | None = None  #: None: the embedded Postgres in the data folder
    data_dir: Path = Field(default_factory=lambda: default_data_dir(os.environ))
    site_port: Annotated[int, Field(ge=0, le=65535)] = 8472
    provider: ProviderName | None = None  #: None: the one that has a key
    anthropic: ProviderSettings = ProviderSettings()
    openai: ProviderSettings = ProviderSettings()
    models: ModelSettings = ModelSettings()
    jobs: JobSettings = JobSettings()
    research: ResearchSettings = ResearchSettings()
    sites: dict[SiteName, StaticSiteSettings] = Field(
        default_factory=lambda: {"garden": StaticSiteSettings(title="The Night Garden")}
    )

    @field_validator("data_dir")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        try:
            return value.expanduser().absolute()
        except RuntimeError as error:  # ~name of somebody unknown
            raise ValueError(str(error)) from None

    @field_validator("sites")
    @classmethod
    def _somewhere(cls, value: dict[str, Any]) -> dict[str, Any]:
        if not value:
            raise ValueError("there is none: name at least one, such as [sites.garden] with a title")
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, then environment, then `nightdesk.toml`."""
        return (init_settings, env_settings, TomlConfigSettingsSource(settings_cls, _config_file()))

    def provider_settings(self, name: ProviderName) -> ProviderSettings:
        """The settings of one provider, its key filled in from the usual variable.

        Raises:
            ConfigError: if that variable holds what no key can be.
        """
        settings: ProviderSettings = getattr(self, name)
        if settings.api_key is not None:
            return settings
        variable = f"{name.upper()}_API_KEY"
        try:
            key = _key(os.environ.get(variable, ""))
        except ValueError as error:
            raise ConfigError(f"{variable}: {error}") from None
        return settings.model_copy(update={"api_key": key}) if key else settings


class _GivenSettings(Settings):
    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)


def given_settings(**values: Any) -> Settings:
    """Settings from these values and the defaults alone: neither environment nor file is asked."""
    return _GivenSettings(**values)


def as_environment(settings: Settings) -> dict[str, str]:
    """The settings as `NIGHTDESK_…` variables for a child process; secrets included, in plain text."""
    values: dict[str, str] = {}
    for name, value in settings:
        if value is not None:
            plain = _revealed(value)
            values[f"NIGHTDESK_{name.upper()}"] = plain if isinstance(plain, str) else json.dumps(plain)
    return values


def inherited_environment() -> dict[str, str]:
    """What a child process gets of ours: all but the variables that say where settings come from."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("NIGHTDESK_", "PREFECT_")) and name != "PYTHONDONTWRITEBYTECODE"
    }


def _revealed(value: Any) -> Any:
    match value:
        case SecretStr():
            return value.get_secret_value()
        case BaseModel():
            return {name: _revealed(inner) for name, inner in value if inner is not None}
        case dict():
            return {name: _revealed(inner) for name, inner in value.items()}
        case Path() | Decimal():
            return str(value)
        case _:
            return value


def default_data_dir(environ: os._Environ[str] | dict[str, str]) -> Path:
    """`$XDG_DATA_HOME/nightdesk`, by default `~/.local/share/nightdesk`."""
    base = environ.get("XDG_DATA_HOME", "").strip()
    return (Path(base) if base else Path.home() / ".local" / "share") / "nightdesk"


def load_settings(**overrides: Any) -> Settings:
    """The settings in force. A variable that looks like a misspelt setting is logged as a warning.

    Raises:
        ConfigError: one line for each value that cannot be used.
    """
    file = _config_file()
    if os.environ.get("NIGHTDESK_CONFIG") and not file.is_file():
        raise ConfigError(f"NIGHTDESK_CONFIG names {file}, which is not a file")
    if os.path.lexists(file) and not file.is_file():
        raise ConfigError(f"{file} is a folder or a link that leads to nothing, not a file of settings")
    for name, meant in misspelt(os.environ):
        _warn(name, meant)
    try:
        return Settings(**overrides)
    except ValidationError as error:
        raise ConfigError(_explain(error)) from None
    except SettingsError as error:
        raise ConfigError(_explain_variable(error)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not valid TOML: {error}") from None
    except OSError as error:
        raise ConfigError(f"{error.filename or file} cannot be read: {error.strerror}") from None


def _config_file() -> Path:
    return Path(os.environ.get("NIGHTDESK_CONFIG") or "nightdesk.toml")


def misspelt(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Variables that are no setting but look like one, each with the one that they look like."""
    known = ["CONFIG", *_variables(Settings)]
    for name in sorted(environ):
        rest = name.removeprefix("NIGHTDESK_").upper()
        top = rest.partition("__")[0]
        if rest == name.upper() or top in known or top.startswith("TEST_"):
            continue  # what is wrong below a known name is told by the settings themselves
        if close := difflib.get_close_matches(rest, known, n=1, cutoff=0.75):
            yield name, f"NIGHTDESK_{close[0]}"


def _variables(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield f"{prefix}{name.upper()}"
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _variables(field.annotation, f"{prefix}{name.upper()}__")


@cache
def _warn(name: str, meant: str) -> None:
    """Once for each: settings are loaded more than once in a process."""
    _log.warning("%s is no setting and has no effect: did you mean %s?", name, meant)


def _explain(error: ValidationError) -> str:
    return "\n".join(
        _problem(".".join(str(part) for part in problem["loc"]), problem["type"], problem["msg"])
        for problem in error.errors(include_url=False, include_input=False)
    )


def _problem(where: str, kind: str, message: str) -> str:
    """One problem in words for people who have never heard of pydantic."""
    match kind:
        case "extra_forbidden":
            return f"unknown setting '{where}'"
        case "missing":
            return f"setting '{where}' is missing"
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"setting '{where}' holds further settings: it cannot be a single value"
        case "string_pattern_mismatch" if where.endswith(".[key]"):
            name = where.removesuffix(".[key]")
            return f"setting '{name}': use lower-case letters, digits and hyphens for a name, at most 40"
        case _:
            return f"setting '{where or 'settings'}': {message.removeprefix('Value error, ')}"


def _explain_variable(error: SettingsError) -> str:
    found = re.search(r'field "(\w+)"', str(error))
    name = f"NIGHTDESK_{found[1].upper()}" if found else "a NIGHTDESK_ variable"
    return f"{name} is not valid JSON ({error.__cause__}); its parts may be set as {name}__PART=value"
