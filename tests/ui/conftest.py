"""A live cluster, Dagster's daemon and webserver, and a browser, which tests of the pages share."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from tests import tools
from tests.live import live_cluster, numbered
from tests.nodes import empty_chroot
from tests.ui.browser import Browser
from tests.ui.many import CLUSTER, FEW, ManyTopics, many_topics
from tests.ui.modern import RARELY, fresh_cluster
from tests.ui.stand import Stand, dagster_on
from tests.unit_servers import UnitServers

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-prefers-reduced-motion",
    "--window-size=1400,1000",
)


@pytest.fixture
def stand_with(
    unit_servers: UnitServers, zookeeper_server: str, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[ManyTopics | None], Stand]:
    """`stand_with(topics)` is Dagster with the settings of the demo, and these topics in the cluster `many`.

    With None there is no such cluster, and nothing that needs Spark.
    """
    return lambda topics: unit_servers.shared(
        f"stand with {topics}", lambda: _stand(topics, zookeeper_server, tmp_path_factory.mktemp("ui"))
    )


@pytest.fixture
def stand(stand_with: Callable[[ManyTopics | None], Stand]) -> Stand:
    """Dagster with the settings of the demo, shared by the tests of its pages."""
    return stand_with(FEW)


@pytest.fixture
def small_stand(stand_with: Callable[[ManyTopics | None], Stand]) -> Stand:
    """Dagster with one loaded topic."""
    return stand_with(None)


@contextmanager
def _stand(topics: ManyTopics | None, zookeeper_server: str, home: Path) -> Iterator[Stand]:
    """The topics of each cluster existed before the start of Dagster, and are loaded. The cluster `fresh` has none."""
    with ExitStack() as running:
        live = running.enter_context(live_cluster(empty_chroot(zookeeper_server), home))
        # The first load of clicks needs Spark. All later loads fit into one task, and start no JVM.
        crons = "".join(f'{name} = "{RARELY}"\n' for name in ("cron", "watch_cron", "verify_cron"))
        per_run = f"topics_per_run = {topics.topics_per_run}" if topics else ""
        extra = f'{crons}housekeeping.cron = "never"\n{per_run}'
        settings = live.configure(extra, slice_bytes=65536, request_timeout_s=60)
        if topics:
            live.publish("clicks", numbered(3000), batch=50)
        live.publish("Page.Views", numbered(500))
        sections = [fresh_cluster(home), *([many_topics(topics, home, live.lake)] if topics else [])]
        settings.write_text(settings.read_text() + "".join(map(running.enter_context, sections)))
        stand = running.enter_context(dagster_on(home, settings, runs_at_once=2, shared_code=True))
        stand.wait_for("Page.Views", *(["clicks"] if topics else []))
        if topics:
            replace(stand, cluster=CLUSTER).wait_for(*topics.loaded)
        yield stand


@pytest.fixture
def driver(unit_servers: UnitServers, tmp_path_factory: pytest.TempPathFactory) -> webdriver.Chrome:
    """A Chromium without a window, shared by the tests of a unit."""
    return unit_servers.shared("Chromium", lambda: _chromium(tmp_path_factory.mktemp("chromium")))


@contextmanager
def _chromium(home: Path) -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = tools.BROWSER.path
    for flag in (*FLAGS, f"--user-data-dir={home}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service(tools.DRIVER.path))
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture
def blank_after(driver: webdriver.Chrome) -> Iterator[None]:
    """Leave the page after the test: an open page of Dagster sends requests to the webserver all the time.

    What a page remembers is forgotten. The catalog shows folders, for example, if the last page was a folder.
    """
    yield
    if driver.current_url.startswith("http"):
        driver.execute_script("window.localStorage.clear()")
    driver.get("about:blank")


@pytest.fixture
def small_browser(small_stand: Stand, driver: webdriver.Chrome, blank_after: None, tmp_path: Path) -> Browser:
    """A browser on the pages of the small stand."""
    return Browser.of(driver, small_stand.url, tmp_path)


@pytest.fixture
def browser(stand: Stand, driver: webdriver.Chrome, blank_after: None, tmp_path: Path) -> Browser:
    """A browser on the pages of the stand."""
    return Browser.of(driver, stand.url, tmp_path)
