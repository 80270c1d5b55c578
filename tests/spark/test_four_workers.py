"""One run on a cluster of four workers, with everything that a bad day brings: each row is in the table once."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest

from kafka_io.messages.fetch import FetchRequest
from kafka_io.wire.conversation import ReceivedRequest
from tests.fakes.cluster import FakeCluster, Handler
from tests.fakes.records import holding
from tests.spark.driver import Driver
from tests.spark.sites import CLASSIC_DRIVER, ON_CLUSTER
from tests.spark.standalone import Standalone
from tests.spark.ui import SparkUI, await_that
from tests.stores.proxy import Fault, fault_proxy
from tests.stores.servers import STORES
from tests.stores.stored_topic import OFFERED, StoredTopic

pytestmark = [pytest.mark.spark, pytest.mark.crash, pytest.mark.thorough]
_HOSTS = tuple(f"127.0.0.{number}" for number in range(1, 5))
_CAPS = "attempts = 6\nslice_records = 20\ndriver_slices = 1\n"
_RECORDS, _SMALL = 800, 40
_SLOW_S = 2.0
_BUSY = 30
"""The number of requests that the store refuses."""


@dataclass
class SlowAnswers:
    """Answers fetch requests late, and counts them."""

    answer: Handler
    count: int = 0

    def __call__(self, request: ReceivedRequest) -> object:
        """The usual answer."""
        self.count += 1
        time.sleep(_SLOW_S)
        return self.answer(request)


@pytest.fixture
def fake() -> Iterator[FakeCluster]:
    """One large partition and three small ones; the broker of partition 1 is slow."""
    logs = {0: holding(0, _RECORDS), **{number: holding(0, _SMALL) for number in (1, 2, 3)}}
    cluster = FakeCluster(logs=logs, offered=OFFERED, topic_id=UUID(int=7))
    with cluster:
        handlers = cluster.brokers[1].handlers
        handlers[FetchRequest.API.key] = SlowAnswers(handlers[FetchRequest.API.key])
        logs[1].leader = 1
        yield cluster


def test_each_row_is_loaded_once(fake: FakeCluster, tmp_path: Path) -> None:  # faults S01, S02, L11
    with ExitStack() as running:
        (tmp_path / "moto").mkdir()
        store = running.enter_context(STORES["moto"](tmp_path / "moto"))
        assert store.port is not None
        proxy = running.enter_context(fault_proxy(store.port))
        topic = StoredTopic.of(tmp_path, fake, store.root, store.at(proxy.port))
        topic.configure(topic.options, caps=_CAPS)
        cluster = running.enter_context(Standalone(tmp_path / "cluster", _HOSTS))
        driver = running.enter_context(Driver({"master": cluster.url, **CLASSIC_DRIVER, **ON_CLUSTER}))
        ui = SparkUI(url=driver.ui)
        await_that(lambda: ui.executors() == len(_HOSTS))
        driver.begin(topic.settings, step_slices=8)
        await_that(lambda: ui.running() == len(_HOSTS))  # each worker fetches
        before = len(proxy.requests)
        proxy.inject(Fault(kind="refuse", times=_BUSY))
        cluster.kill(_HOSTS[3])
        result = driver.end()
        assert (result.error, result.rows) == (None, _RECORDS + 3 * _SMALL)
        await_that(ui.is_at_rest)
        topic.check()
        assert len(proxy.requests) - before > _BUSY
        slow = fake.brokers[1].handlers[FetchRequest.API.key]
        attempts = ui.attempts()
        assert isinstance(slow, SlowAnswers)
        assert slow.count > 0
        assert attempts["FAILED"] > 0  # on the worker that was killed
        assert attempts["speculative"] > 0
