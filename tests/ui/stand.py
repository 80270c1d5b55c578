"""What the tests of the UI stand on: processes, a Dagster instance to wait on, and a browser that looks at pages."""

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
from selenium import webdriver
from selenium.webdriver.common.by import By

from resources.processes import dying_with_parent, end
from tests.live import LiveCluster

ROOT = Path(__file__).parents[2]
ASSET = dg.AssetKey("topic_table")


def until(true: Callable[[], object], what: str, *, patience_s: float = 90) -> None:
    """Wait until `true()` is; fail with `what` was waited for."""
    end_at = time.monotonic() + patience_s
    while not true():
        assert time.monotonic() < end_at, f"{what}: not within {patience_s} s"
        time.sleep(0.3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """All that runs."""

    live: LiveCluster
    instance: dg.DagsterInstance
    url: str

    def wait_for(self, *keys: str) -> None:
        """Wait until the sensor has found the topics, and a run it asked for has loaded and verified them."""
        until(lambda: set(keys) <= self.instance.get_materialized_partitions(ASSET), f"tables of {keys}")
        until(lambda: all(run.is_finished for run in self.instance.get_runs()), "the end of the runs")

    def rows(self, key: str) -> list[int]:
        """The rows of each load of a topic, the newest first."""
        wanted = dg.AssetRecordsFilter(asset_key=ASSET, asset_partitions=[key])
        records = self.instance.fetch_materializations(wanted, limit=100).records
        found = [one.asset_materialization.metadata["rows"].value for one in records if one.asset_materialization]
        return [value for value in found if isinstance(value, int)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Browser:
    """Chromium on Dagster's pages. Every page that was looked at leaves a picture in `pictures`."""

    driver: webdriver.Chrome
    url: str
    pictures: Path

    def open(self, path: str, *texts: str) -> str:
        """The text of a page, once it shows all of `texts`."""
        self.driver.get(self.url + path)
        return self.shows(*texts)

    def shows(self, *texts: str) -> str:
        """The text of the page, once it shows all of `texts`."""
        picture = self.pictures / f"{len(list(self.pictures.iterdir())):02}.png"
        try:
            until(
                lambda: all(text in self.text for text in texts), f"{texts} in {self.driver.current_url}", patience_s=20
            )
        finally:
            self.driver.save_screenshot(str(picture))
        return self.text

    @property
    def text(self) -> str:
        """All that the page shows now."""
        return self.driver.find_element(By.TAG_NAME, "body").text


@contextmanager
def process(*command: str, environment: dict[str, str], log: Path) -> Iterator[None]:
    """A Dagster process for the length of a `with` block."""
    with log.open("wb") as output:
        running = subprocess.Popen(
            [sys.executable, "-m", *command, "-w", str(ROOT / "workspace.yaml")],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=dying_with_parent(),  # noqa: PLW1509 - two system calls, looked up before the fork
        )
    try:
        yield
    finally:
        end(running)


def answers(port: int) -> bool:
    """Whether somebody listens on the port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
