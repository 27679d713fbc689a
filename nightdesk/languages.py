"""The languages Nightdesk writes in: BCP 47 tags with the script where a language has two."""

from __future__ import annotations

from dataclasses import dataclass

from nightdesk.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Language:
    """One language as prompts, pages and the quality gate see it."""

    tag: str  #: BCP 47 with script, e.g. `sr-Latn`
    name: str  #: in English, as prompts name it
    native: str  #: as pages name it
    script: str  #: Unicode script name, e.g. `Latin`
    rtl: bool = False

    @property
    def base(self) -> str:
        """The language without script, e.g. `sr`."""
        return self.tag.split("-")[0]

    @property
    def direction(self) -> str:
        return "rtl" if self.rtl else "ltr"


LANGUAGES: dict[str, Language] = {
    language.tag: language
    for language in (
        Language("en", "English", "English", "Latin"),
        Language("sr-Latn", "Serbian in Latin script", "srpski (latinica)", "Latin"),
        Language("sr-Cyrl", "Serbian in Cyrillic script", "српски (ћирилица)", "Cyrillic"),
        Language("te", "Telugu", "తెలుగు", "Telugu"),
    )
}

# CLDR's likely subtags: Serbian without a script is written in Cyrillic.
_LIKELY = {"sr": "sr-cyrl", "sr-rs": "sr-cyrl"}


def language(tag: str) -> Language:
    """The language for a tag such as `en`, `en-US`, `sr`, `sr_Latn`.

    Raises:
        ConfigError: if Nightdesk does not write in that language.
    """
    wanted = tag.strip().replace("_", "-").lower()
    wanted = _LIKELY.get(wanted, wanted)
    for known in LANGUAGES.values():
        if wanted == known.tag.lower() or wanted.startswith(known.tag.lower() + "-"):
            return known
    raise ConfigError(f"language '{tag}' is not supported: use one of {', '.join(LANGUAGES)}")
