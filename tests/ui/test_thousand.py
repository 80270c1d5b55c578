"""A thousand topics, of which 300 are loaded: the catalog, the graph, the search and a topic's page remain usable."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import dagster as dg
import pytest
from selenium import webdriver

from tests.ui.browser import Browser
from tests.ui.stand import MAIN, Stand, dagster_on

pytestmark = [pytest.mark.ui, pytest.mark.timeout(1800)]

TOPICS = tuple(f"topic-{number:04}" for number in range(1000))
LOADED = TOPICS[:300]
ROWS = 12345


@pytest.fixture(scope="module")
def thousand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """A webserver and a code server whose instance knows the topics; nothing asks for the cluster."""
    home = tmp_path_factory.mktemp("thousand")
    settings = home / "penstock.toml"
    settings.write_text(f'lake = "lake"\n[clusters.{MAIN}]\nbootstrap = "127.0.0.1:1"\n')
    with dagster_on(home, settings, shared_code=True, has_daemon=False, known=TOPICS) as stand:
        for topic in LOADED:
            event = dg.AssetMaterialization(stand.asset(topic), metadata={"dagster/row_count": ROWS})
            stand.instance.report_runless_asset_event(event)
        yield stand


@pytest.fixture
def browser(thousand: Stand, driver: webdriver.Chrome, blank_after: None, tmp_path: Path) -> Browser:
    """A browser on the pages of the stand."""
    return Browser.of(driver, thousand.url, tmp_path)


def test_all_topics_are_assets(thousand: Stand) -> None:
    assert thousand.defined() == set(TOPICS)


def test_the_catalog_lists_the_tables(browser: Browser) -> None:
    selection = quote(f'key:"lake/{MAIN}/*"')
    browser.open(
        f"/assets?asset-selection={selection}", f"The Delta table of the Kafka topic {TOPICS[0]}.", "Materialized"
    )


def test_the_graph_shows_all_tables(browser: Browser) -> None:
    groups = (f" kafka_{MAIN} ", f" {MAIN} ")  # fault F17
    browser.open("/asset-groups", "Global asset lineage", *groups, "Materialize all (1,000)")
    browser.expand(MAIN)
    browser.shows(f" {TOPICS[0]} ")


def test_the_search_finds_one_topic(browser: Browser) -> None:
    browser.open("/assets", "Search")
    browser.click("Search")
    browser.type("topic-0777")
    browser.shows(f"lake / {MAIN} / topic-0777", f"kafka / {MAIN} / topic-0777")


def test_the_page_of_a_topic_shows_its_rows_and_only_its_own_lineage(thousand: Stand, browser: Browser) -> None:
    browser.open(thousand.page(LOADED[-1]), f"The Delta table of the Kafka topic {LOADED[-1]}", f"{ROWS:,}")
    text = browser.open(f"{thousand.page(LOADED[-1])}?view=lineage", LOADED[-1], "Kafka", "Delta Lake")
    assert LOADED[0] not in text
