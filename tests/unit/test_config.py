"""Settings that cannot be used are refused in words that say which and what to do."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightdesk.config import default_data_dir, load_settings, misspelt
from nightdesk.errors import ConfigError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal() -> str:
    with pytest.raises(ConfigError) as caught:
        load_settings()
    return str(caught.value)


@pytest.mark.parametrize("key", ["sk-1\nX: y", "sk-1\x00", "sk-\x1b[31m", "ключ", "sk-1\u200b"])
def test_a_key_that_no_header_can_carry_is_refused_wherever_it_stands_and_is_not_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    escaped = "".join(f"\\u{ord(char):04x}" for char in key)
    (folder / "nightdesk.toml").write_text(f'[anthropic]\napi_key = "{escaped}"\n', encoding="utf-8")
    said = refusal()
    assert said.startswith("setting 'anthropic.api_key': it has a line break")
    assert "sk-1" not in said
    (folder / "nightdesk.toml").unlink()
    if "\x00" not in key:
        monkeypatch.setenv("ANTHROPIC_API_KEY", key)
        with pytest.raises(ConfigError, match=r"^ANTHROPIC_API_KEY: it has a line break") as caught:
            load_settings().provider_settings("anthropic")
        assert "sk-1" not in str(caught.value)


def test_a_keys_blanks_and_line_end_are_dropped_and_a_blank_key_is_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "nightdesk.toml").write_text('[anthropic]\napi_key = " a key\\n"\n[openai]\napi_key = " "\n')
    settings = load_settings()
    key = settings.provider_settings("anthropic").api_key
    assert key is not None
    assert key.get_secret_value() == "a key"
    assert settings.provider_settings("openai").api_key is None
    monkeypatch.setenv("OPENAI_API_KEY", "theirs\r\n")
    theirs = settings.provider_settings("openai").api_key
    assert theirs is not None
    assert theirs.get_secret_value() == "theirs"


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("NIGHTDESK_JOBS", "{bad", "NIGHTDESK_JOBS is not valid JSON"),
        ("NIGHTDESK_JOBS", "7", "setting 'jobs' holds further settings"),
        ("NIGHTDESK_JOBS__MAX_USDD", "2", "unknown setting 'jobs.max_usdd'"),
        ("NIGHTDESK_JOBS__MAX_USD", "lots", "setting 'jobs.max_usd': Input should be a valid decimal"),
        ("NIGHTDESK_SITES", "{}", "setting 'sites': there is none"),
        ("NIGHTDESK_SITES__GARDEN__TAGLINE", "x", "setting 'sites.garden.title' is missing"),
        ("NIGHTDESK_SITES", '{"The Garden": {"title": "x"}}', "setting 'sites.The Garden': use lower-case"),
        ("NIGHTDESK_OPENAI__BASE_URL", "api.example", "setting 'openai.base_url': it is no web address"),
        ("NIGHTDESK_OPENAI__BASE_URL", "http://h:99999", "setting 'openai.base_url': it is no web address"),
        ("NIGHTDESK_OPENAI__BASE_URL", "http://[", "setting 'openai.base_url': it is no web address"),
        ("NIGHTDESK_PROVIDER", "mine", "setting 'provider': Input should be 'anthropic' or 'openai'"),
        ("NIGHTDESK_DATA_DIR", "~nobody-here/x", "setting 'data_dir': "),
        ("NIGHTDESK_CONFIG", "none.toml", "NIGHTDESK_CONFIG names none.toml, which is not a file"),
    ],
)
def test_a_value_that_cannot_be_used_is_one_line_without_a_librarys_words(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str
) -> None:
    monkeypatch.setenv(variable, value)
    refused = refusal()
    assert refused.startswith(said)
    assert "\n" not in refused
    for jargon in ("Value error", "Extra inputs", "pattern", "instance", "pydantic", "Field required"):
        assert jargon not in refused


def test_an_unknown_setting_in_the_file_is_named(folder: Path) -> None:
    (folder / "nightdesk.toml").write_text("sitez = 1\n[sites.garden]\ntitel = 'x'\n")
    assert set(refusal().split("\n")) == {
        "unknown setting 'sitez'",
        "setting 'sites.garden.title' is missing",
        "unknown setting 'sites.garden.titel'",
    }


def test_a_settings_file_that_is_a_folder_or_a_dangling_link_is_refused(folder: Path) -> None:
    (folder / "nightdesk.toml").mkdir()
    assert "nightdesk.toml is a folder or a link that leads to nothing" in refusal()
    (folder / "nightdesk.toml").rmdir()
    (folder / "nightdesk.toml").symlink_to(folder / "nothing")
    assert "nightdesk.toml is a folder or a link that leads to nothing" in refusal()


@pytest.mark.parametrize("content", [b"sites = [", b"\xff\xfe"])
def test_a_settings_file_that_is_no_toml_is_refused(folder: Path, content: bytes) -> None:
    (folder / "nightdesk.toml").write_bytes(content)
    assert refusal().startswith("nightdesk.toml is not valid TOML")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_settings_file_that_may_not_be_read_is_refused(folder: Path) -> None:
    (folder / "nightdesk.toml").touch(mode=0o000)
    assert refusal() == "nightdesk.toml cannot be read: Permission denied"


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATA_DIR", "DATABASE_URL", "CONFIG", "PROVIDER", "MODELS__STRONG"):
        monkeypatch.setenv(f"NIGHTDESK_{name}", "")
    settings = load_settings()
    assert settings.data_dir == default_data_dir(os.environ)
    assert (settings.database_url, settings.provider, settings.models.strong) == (None, None, None)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("NIGHTDESK_DATABSE_URL", "NIGHTDESK_DATABASE_URL"),
        ("NIGHTDESK_JOBS_MAX_USD", "NIGHTDESK_JOBS__MAX_USD"),
        ("NIGHTDESK_MODEL__STRONG", "NIGHTDESK_MODELS__STRONG"),
        ("NIGHTDESK_DATADIR", "NIGHTDESK_DATA_DIR"),
        ("NIGHTDESK_CONFG", "NIGHTDESK_CONFIG"),
    ],
)
def test_a_misspelt_variable_is_reported_with_what_was_meant_and_is_no_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str, meant: str
) -> None:
    monkeypatch.setenv(name, "x")
    with caplog.at_level(logging.WARNING):
        load_settings()
        load_settings()
    assert [record.getMessage() for record in caplog.records] == [
        f"{name} is no setting and has no effect: did you mean {meant}?"
    ]


def test_variables_that_are_settings_or_nobodys_are_not_reported() -> None:
    fine = ["NIGHTDESK_CONFIG", "NIGHTDESK_TEST_DATABASE_URL", "NIGHTDESK_SITES__GARDEN__TITLE", "PATH"]
    fine += [
        "NIGHTDESK_SITE_PORT",
        "NIGHTDESK_MODELS__STRONG",
        "NIGHTDESK_HOME_OF_THE_OPERATOR",
        "DATABSE_URL",
    ]
    assert list(misspelt(dict.fromkeys(fine, "x"))) == []


@given(st.dictionaries(st.text(max_size=30).map(lambda rest: f"NIGHTDESK_{rest}"), st.just("x"), max_size=5))
def test_no_variables_name_makes_the_check_fail(environ: dict[str, str]) -> None:
    for name, meant in misspelt(environ):
        assert name in environ
        assert meant != name
