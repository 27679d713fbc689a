"""Settings: the only reader of the environment. Nothing is read at import time.

Values come, strongest first, from arguments, `NIGHTDESK_…` variables and `nightdesk.toml` in the
current folder (or the file named by `NIGHTDESK_CONFIG`). Keys of the model providers are also read
from their usual variables, `ANTHROPIC_API_KEY` and `OPENAI_API_KEY`.
"""

from __future__ import annotations

import json
import os
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from nightdesk.errors import ConfigError

_WEB_ADDRESS = r"^https?://[^\s/?#]+[^\s?#]*$"
#: Names of sites are parts of paths, addresses and accounts.
SiteName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
ProviderName = Literal["anthropic", "openai"]


class ProviderSettings(BaseModel):
    """How to reach one model provider."""

    model_config = ConfigDict(extra="forbid")

    api_key: SecretStr | None = None
    base_url: Annotated[str, Field(pattern=_WEB_ADDRESS)] | None = None  #: None: the provider's own
    max_in_flight: Annotated[int, Field(ge=1, le=1000)] = 8  #: calls at a time
    tokens_per_minute: Annotated[int, Field(ge=1000)] | None = None  #: None: only the provider's own limit


class StaticSiteSettings(BaseModel):
    """A folder of pages, served by anything that serves files."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["static"] = "static"
    title: str
    tagline: str = ""
    author: str = ""
    folder: Path | None = None  #: None: `sites/<name>` in the data folder
    base_url: Annotated[str, Field(pattern=_WEB_ADDRESS)] | None = None  #: None: our loopback server


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
        return value.expanduser().absolute()

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
        path = Path(os.environ.get("NIGHTDESK_CONFIG", "nightdesk.toml"))
        return (init_settings, env_settings, TomlConfigSettingsSource(settings_cls, path))

    def provider_settings(self, name: ProviderName) -> ProviderSettings:
        """The settings of one provider, its key filled in from the usual variable."""
        settings: ProviderSettings = getattr(self, name)
        if settings.api_key is not None:
            return settings
        key = os.environ.get(f"{name.upper()}_API_KEY", "").strip()
        return settings.model_copy(update={"api_key": SecretStr(key)}) if key else settings


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
    """The settings in force.

    Raises:
        ConfigError: one line for each value that cannot be used.
    """
    named = os.environ.get("NIGHTDESK_CONFIG")
    if named and not Path(named).is_file():
        raise ConfigError(f"NIGHTDESK_CONFIG names {named}, which is not a file")
    try:
        return Settings(**overrides)
    except ValidationError as error:
        raise ConfigError(_explain(error)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{named or 'nightdesk.toml'} is not valid TOML: {error}") from None


def _explain(error: ValidationError) -> str:
    lines = []
    for problem in error.errors(include_url=False, include_input=False):
        where = ".".join(str(part) for part in problem["loc"]) or "settings"
        lines.append(f"setting '{where}': {problem['msg']}")
    return "\n".join(lines)
