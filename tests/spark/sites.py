"""The sites where tests run the same load: classic or Connect, local or on a cluster. Each opens at its first use."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests import short_lived_jvm
from tests.spark.connect import connect_server
from tests.spark.driver import Driver
from tests.spark.standalone import HOSTS, Standalone
from tests.spark.ui import SparkUI, await_that

CLASSIC_DRIVER = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.ui.port": "0",
}
ON_CLUSTER = {
    **short_lived_jvm.EXECUTORS,
    "spark.executor.memory": "512m",
    "spark.speculation": "true",  # start a second attempt of a task that is slower than the others
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.25",
}
NAMES = ("classic, local", "Connect, standalone", "Connect, local", "classic, standalone")
CLUSTER_NAMES = NAMES[1::2]
"""The first is a server with a cluster behind it: it has all that a classic cluster has. `make test` starts only this
one, because a cluster costs half a minute of CPU time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A driver and its Spark UI. `cluster` runs the executors; None at a local site."""

    driver: Driver
    ui: SparkUI
    cluster: Standalone | None = None

    @property
    def hosts(self) -> Standalone:
        """The hosts of the executors."""
        assert self.cluster is not None
        return self.cluster


class Sites:
    """All sites, with their files in `folder`; a context manager."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running = ExitStack()
        self._sites: dict[str, Site] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def open(self, name: str) -> Site:
        """The site of this name, once all its executors run."""
        if name not in self._sites:
            self._sites[name] = self._open(name)
        site = self._sites[name]
        if site.cluster:
            site.cluster.restart_missing()
            await_that(lambda: site.ui.executors() == len(HOSTS))
        return site

    def _open(self, name: str) -> Site:
        folder = self._folder / name.replace(", ", "-")
        cluster = self._running.enter_context(Standalone(folder / "cluster")) if name in CLUSTER_NAMES else None
        settings = {"spark.master": cluster.url, **ON_CLUSTER} if cluster else {"spark.master": "local[2,2]"}
        if name.startswith("Connect"):
            server = self._running.enter_context(connect_server(folder / "server", settings))
            driver = self._running.enter_context(Driver({"remote": server.url}))
            return Site(driver=driver, ui=SparkUI(url=server.ui), cluster=cluster)
        master = settings.pop("spark.master")
        driver = self._running.enter_context(Driver({"master": master, **CLASSIC_DRIVER, **settings}))
        return Site(driver=driver, ui=SparkUI(url=driver.ui), cluster=cluster)
