"""A live cluster, Dagster's daemon and webserver on it, and a browser: once for all tests of this folder."""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import dagster as dg
import pytest
from kazoo.client import KazooClient
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from pipelines.demo.state import State, free_port
from resources.settings import PATH_VARIABLE
from tests.live import live_cluster, numbered
from tests.ui.stand import Browser, Stand, answers, process, until

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1400,1000",
)


@pytest.fixture(scope="session")
def stand(zookeeper_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """Two topics are there when Dagster starts, and loaded when this is given; home and instance are the demo's."""
    home = tmp_path_factory.mktemp("ui")
    zookeeper = KazooClient(zookeeper_server)
    zookeeper.start()
    try:
        zookeeper.create("/ui")
    finally:
        zookeeper.stop()
        zookeeper.close()
    state = State(home=home / "state")
    state.begin()
    with ExitStack() as running:
        live = running.enter_context(live_cluster(f"{zookeeper_server}/ui", home / "live"))
        live.publish("clicks", numbered(3000), batch=50)
        live.publish("Page.Views", numbered(500))
        # Before the processes: Dagster's storage is not made by two of them at once.
        instance = running.enter_context(dg.DagsterInstance.from_config(str(state.dagster_home)))
        environment = {**os.environ, "DAGSTER_HOME": str(state.dagster_home), PATH_VARIABLE: str(live.settings)}
        port = free_port()
        commands = (["dagster._daemon", "run"], ["dagster_webserver", "-h", "127.0.0.1", "-p", str(port)])
        for command in commands:
            log = home / f"{command[0]}.log"
            running.enter_context(process(*command, environment=environment, log=log))
        found = Stand(live=live, instance=instance, url=f"http://127.0.0.1:{port}")
        found.wait_for("main/clicks", "main/~50age.~56iews")
        until(lambda: answers(port), "the webserver")
        yield found


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """Debian's Chromium."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture
def browser(stand: Stand, driver: webdriver.Chrome, tmp_path: Path) -> Browser:
    """A browser that looks at the stand."""
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    return Browser(driver=driver, url=stand.url, pictures=pictures)
