"""The example topics and the demo's fault plan belong together."""

from __future__ import annotations

from collections import Counter
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit

from nightdesk.desk.topics import Topic, read_topics
from nightdesk.sandbox.faults import parse_plan
from nightdesk.sandbox.sources.site import FEEDS, PUBLIC_URL, load_site
from nightdesk.sandbox.writer.words import word_count

PLAN = parse_plan((files("nightdesk.sandbox") / "plans" / "demo.json").read_bytes(), "demo")


def topics() -> list[Topic]:
    return read_topics(Path(__file__).parents[3] / "examples" / "topics.csv", ["garden", "kitchen"])


def test_there_is_something_for_every_language_and_both_sites() -> None:
    counted = Counter(topic.language for topic in topics())
    assert counted["en"] >= 5
    assert min(counted["sr-Latn"], counted["sr-Cyrl"], counted["te"]) >= 3
    assert {topic.site for topic in topics()} == {"garden", "kitchen"}
    assert all(250 <= topic.min_words <= 350 for topic in topics())
    assert len({topic.priority for topic in topics()}) >= 5


def test_every_source_is_served_in_the_language_of_its_topic() -> None:
    pages = load_site().pages
    for topic in topics():
        for url in topic.sources:
            assert url.startswith(PUBLIC_URL)
            _, folder, name = urlsplit(url).path.split("/")
            slugs = (name,) if folder == "sources" else FEEDS[name.removesuffix(".xml")][2]
            assert {pages[slug].language for slug in slugs} == {topic.language}


def test_every_page_has_two_hundred_words_and_one_hides_an_injection() -> None:
    pages = load_site().pages.values()
    for page in pages:
        texts = [text for part in page.sections for text in part["paragraphs"]]
        assert sum(word_count(text) for text in texts) >= 200, page.slug
    assert [page.slug for page in pages if page.hidden] == ["composting-basics"]


def test_the_plan_spoils_exactly_two_topics_for_good() -> None:
    def hit(times: int | None) -> set[str]:
        names = {rule.match.contains for rule in PLAN.rules if rule.times == times}
        found = {topic.topic for topic in topics() for name in names if name and name in topic.topic}
        assert len(found) == len(names)
        return found

    assert len(hit(None)) == 2
    assert len(hit(1)) == 2
    assert not hit(None) & hit(1)
