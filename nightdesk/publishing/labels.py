"""The few words that a page itself says, in the language of its article."""

from __future__ import annotations

from dataclasses import dataclass

from nightdesk.languages import Language


@dataclass(frozen=True, slots=True)
class Labels:
    """Words around an article."""

    published: str
    updated: str
    skip: str  #: the link that jumps over the site's header
    feed: str
    nothing_yet: str
    made_by: str  #: how the article was made


_LABELS = {
    "en": Labels(
        "Published",
        "Updated",
        "Skip to content",
        "Feed",
        "Nothing has been published yet.",
        "Written by software, checked before publication.",
    ),
    "sr-Latn": Labels(
        "Objavljeno",
        "Ažurirano",
        "Pređi na sadržaj",
        "Kanal",
        "Još ništa nije objavljeno.",
        "Napisao softver, provereno pre objavljivanja.",
    ),
    "sr-Cyrl": Labels(
        "Објављено",
        "Ажурирано",
        "Пређи на садржај",
        "Канал",
        "Још ништа није објављено.",
        "Написао софтвер, проверено пре објављивања.",
    ),
    "te": Labels(
        "ప్రచురణ",
        "నవీకరణ",
        "విషయానికి వెళ్ళండి",
        "ఫీడ్",
        "ఇంకా ఏమీ ప్రచురించలేదు.",
        "సాఫ్ట్‌వేర్ రాసింది, ప్రచురణకు ముందు తనిఖీ చేయబడింది.",
    ),
}


def labels_for(language: Language) -> Labels:
    """The labels in `language`; English where there are none."""
    return _LABELS.get(language.tag, _LABELS["en"])
