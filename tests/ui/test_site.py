"""The documentation site in a real browser: it draws its diagrams and finds pages without any other host."""

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.docs.website import build
from tests.ui.browser import Browser
from tests.ui.waiting import until

pytestmark = pytest.mark.ui
_TIMEOUT_S = 90
_DRAWN_PIXELS = 200
"""A diagram is higher than this; its text alone has one line until the script has drawn it."""


class _QuietHandler(SimpleHTTPRequestHandler):
    """Serves the files of a folder."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site."""
    folder = tmp_path_factory.mktemp("site")
    build(folder / "source", folder / "site")
    return folder / "site"


@pytest.fixture
def site(built: Path, driver: webdriver.Chrome, blank_after: None, tmp_path: Path) -> Iterator[Browser]:
    """A browser on the site, which a server on loopback serves."""
    handler = partial(_QuietHandler, directory=str(built))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield Browser.of(driver, f"http://127.0.0.1:{server.server_address[1]}/", tmp_path)
        driver.get("about:blank")
        server.shutdown()


def fetched(browser: Browser) -> list[str]:
    """The addresses of all files that the page has fetched or tried to fetch."""
    addresses: list[str] = browser.driver.execute_script(
        "return performance.getEntriesByType('resource').map(entry => entry.name)"
    )
    return addresses


def test_a_page_draws_its_diagram_and_fetches_nothing_from_another_host(site: Browser) -> None:
    site.open("event-time.html", "How do I wait for an hour?", "State tables")

    def is_drawn() -> bool:
        diagrams = site.driver.find_elements(By.CSS_SELECTOR, "div.mermaid")
        return any(diagram.size["height"] > _DRAWN_PIXELS for diagram in diagrams)

    until(is_drawn, "the diagram is drawn", timeout_s=_TIMEOUT_S)
    assert len(fetched(site)) > 3
    assert [address for address in fetched(site) if not address.startswith(site.url)] == []


def test_the_search_finds_a_setting_on_its_page(site: Browser) -> None:
    site.open("index.html", "How do I load my first topic?")
    site.type("/")
    site.type("driver_slices")

    def is_followed() -> bool:
        """Whether the first result is opened. Before the index is read, there is none."""
        site.type(Keys.ENTER)
        return not site.driver.current_url.partition("#")[0].endswith(("/", "/index.html"))

    until(is_followed, "the first result is opened", timeout_s=_TIMEOUT_S)
    site.shows("driver_slices")
    assert [address for address in fetched(site) if not address.startswith(site.url)] == []
