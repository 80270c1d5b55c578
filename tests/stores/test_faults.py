"""Stores that fail for a while: no fault loses a row, and none leaves a row twice."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from resources.errors import LakeRefused, LakeUnavailable
from resources.stores.lake import Lake
from resources.stores.lake_marker import use_lake
from tests.stores.proxy import Fault, FaultProxy
from tests.stores.servers import StoreServer
from tests.stores.stored_topic import StoredTopic

pytestmark = pytest.mark.slow  # servers of stores, and waits between attempts

_LOG_ENTRY = "_delta_log/0000000000000000000"
_SHORT = {"timeout": "1s"}


@contextmanager
def hidden(proxied: FaultProxy, seconds: float) -> Iterator[None]:
    """Let listings lack new objects for the length of a `with` block."""
    proxied.hide_new_objects(seconds)
    try:
        yield
    finally:
        proxied.hide_new_objects(0)


@pytest.mark.stores("lost answers")
def test_a_lost_answer_neither_loses_nor_repeats_rows(topic: StoredTopic, proxied: FaultProxy) -> None:
    topic.load()
    for method, text in (("PUT", _LOG_ENTRY), ("PUT", "date="), ("POST", "date="), ("GET", "")):
        topic.grow()
        proxied.inject(Fault(kind="lose", method=method, text=text, times=2))
        assert topic.load().rows == 20
    topic.check()


@pytest.mark.stores("late answers")
def test_an_answer_that_comes_after_the_timeout_neither_loses_nor_repeats_rows(
    topic: StoredTopic, proxied: FaultProxy
) -> None:
    topic.configure({**topic.options, **_SHORT})
    topic.load()
    for text in (_LOG_ENTRY, "date="):
        topic.grow()
        proxied.inject(Fault(kind="delay", method="PUT", text=text, seconds=1.5))
        assert topic.load().rows == 20
    topic.check()


@pytest.mark.stores("503 storm")
def test_a_store_that_is_busy_for_a_while_is_asked_again(topic: StoredTopic, proxied: FaultProxy) -> None:
    topic.load()
    topic.grow()
    proxied.inject(*(Fault(kind="refuse", status=status, times=25) for status in (503, 500, 429)))
    assert topic.load().rows == 20
    topic.check()


@pytest.mark.stores("503 storm")
def test_a_store_that_stays_busy_ends_the_load_and_a_later_load_continues(
    topic: StoredTopic, proxied: FaultProxy
) -> None:
    topic.load()
    topic.grow()
    before = topic.version
    topic.configure({**topic.options, "retry_timeout": "1s"})
    proxied.inject(Fault(kind="refuse", method="PUT", times=10_000))
    with topic.loader() as loader:
        failed = loader.load("clicks")
    assert failed.failures or failed.error
    assert failed.retriable
    proxied.inject()
    assert topic.version == before
    topic.load()
    topic.check()


@pytest.mark.stores("late listings")
def test_listings_that_lack_new_objects_can_fail_loads_but_change_no_row(
    topic: StoredTopic, proxied: FaultProxy
) -> None:
    """Stores whose listings come late are not supported: loads can fail on them, but they lose nothing."""
    topic.load()
    with hidden(proxied, 3600):
        for _ in range(2):
            topic.grow()
            with topic.loader() as loader:
                loader.load("clicks")
    topic.load()
    topic.check()


@pytest.mark.stores("wrong secret")
def test_a_wrong_secret_is_refused_at_once_and_named(
    topic: StoredTopic, store: StoreServer, proxied: FaultProxy
) -> None:
    topic.configure({**topic.options, store.secret: store.wrong})
    began = len(proxied.requests)
    place = f"{topic.root} .*http://127.0.0.1:{proxied.port}"
    with pytest.raises(LakeRefused, match=f"{place} .*check (the credentials|those) in"):
        use_lake(topic.table.lake)
    assert len(proxied.requests) - began <= 4


@pytest.mark.stores("wrong secret")
def test_a_bucket_that_does_not_exist_is_refused_at_once(topic: StoredTopic, proxied: FaultProxy) -> None:
    root = topic.root.replace("//bucket/", "//no-such-bucket/")
    began = len(proxied.requests)
    with pytest.raises(LakeRefused, match=f"{root}.*has no such bucket"):
        use_lake(Lake(root=root, options=topic.table.lake.options))
    assert len(proxied.requests) - began <= 8


@pytest.mark.stores("wrong secret")
def test_a_store_that_does_not_answer_is_temporary(topic: StoredTopic, proxied: FaultProxy) -> None:
    options = {**topic.table.lake.options, "retry_timeout": "1s", "connect_timeout": "1s"}
    closed = {name: value.replace(f":{proxied.port}", ":9") for name, value in options.items()}
    began = time.monotonic()
    with pytest.raises(LakeUnavailable, match=r"the store at http://127\.0\.0\.1:9 does not answer") as failed:
        Lake(root=topic.root, options=closed).open(topic.table.uri)
    assert not isinstance(failed.value, LakeRefused)
    assert time.monotonic() - began < 60
