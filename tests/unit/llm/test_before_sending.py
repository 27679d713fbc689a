"""What surely happened before anything was sent costs nothing, and a key is shown to nobody."""

from __future__ import annotations

import traceback
import uuid
from collections.abc import Callable, Iterator

import pytest

from nightdesk.desk.outputs import Outline
from nightdesk.errors import Blocked, ConfigError
from nightdesk.llm.anthropic import AnthropicModel
from nightdesk.llm.openai import OpenAIModel
from nightdesk.llm.port import Billing, CallFailed, ModelPort, ModelRequest
from nightdesk.publishing.serve import LoopbackServer

ADAPTERS: list[Callable[[str, str | None], ModelPort]] = [AnthropicModel, OpenAIModel]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with LoopbackServer(tmp_path_factory.mktemp("nothing")) as server:
        yield server.base_url


async def _failure(model: ModelPort) -> CallFailed:
    asked = ModelRequest(uuid.uuid4(), "a-model", "system", "user", Outline, 1_000, "key", 5.0)
    with pytest.raises(CallFailed) as caught:
        await model.ask(asked)
    await model.aclose()
    return caught.value


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("key", ["sk-secret\nX-Other: y", "sk-secret\x00", "sk-secret\x7f "])
async def test_a_key_that_no_header_can_carry_books_nothing_and_stays_secret(
    adapter: Callable[[str, str | None], ModelPort], key: str, address: str
) -> None:
    failed = await _failure(adapter(key, address))
    assert (type(failed.error), failed.billing) == (Blocked, Billing.NOTHING)
    assert "check its key" in str(failed)
    assert "sk-secret" not in "".join(traceback.format_exception(failed))


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_an_address_without_the_providers_pages_blocks_the_provider_and_kills_no_article(
    adapter: Callable[[str, str | None], ModelPort], address: str
) -> None:
    failed = await _failure(adapter("key", f"{address}/elsewhere"))
    assert (type(failed.error), failed.billing) == (Blocked, Billing.NOTHING)
    assert "base_url" in str(failed)


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_proxy_that_cannot_be_used_is_a_mistake_in_the_settings(
    adapter: Callable[[str, str | None], ModelPort], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "nonsense://proxy")
    with pytest.raises(ConfigError, match="proxy"):
        adapter("key", None)
