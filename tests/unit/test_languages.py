"""Language tags as people write them."""

from __future__ import annotations

import pytest

from nightdesk.errors import ConfigError
from nightdesk.languages import language


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("en", "en"), ("EN", "en"), ("en-US", "en"), ("en_GB", "en"), ("te", "te"), ("te-IN", "te"),
        ("sr", "sr-Cyrl"), ("sr-RS", "sr-Cyrl"), ("sr_Latn", "sr-Latn"), ("sr-latn-RS", "sr-Latn"),
        ("sr-Cyrl-RS", "sr-Cyrl"), (" sr-Latn ", "sr-Latn"),
    ],
)  # fmt: skip
def test_a_tag_is_understood_as_cldr_does(tag: str, expected: str) -> None:
    assert language(tag).tag == expected


@pytest.mark.parametrize("tag", ["", "xx", "english", "tel", "ten", "s", "sr-Arab"])
def test_a_language_that_is_not_written_is_refused_with_the_ones_that_are(tag: str) -> None:
    with pytest.raises(ConfigError, match="use one of en, sr-Latn"):
        language(tag)
