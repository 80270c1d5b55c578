"""A load, housekeeping, a redecode and an erasure work on one table at the same time, in threads of their own."""

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest

from kafka_io.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kafka_io.model import BrokerPartition
from pipelines.layout.conditions import parse_condition
from pipelines.ledger.ledger import CommitKind
from pipelines.maintenance.clean import clean
from pipelines.maintenance.erase import EraseRequest, erase
from pipelines.rewrites.redecode import RedecodeRequest, redecode
from pipelines.verify.verify import verify
from resources.kafka import open_schema_registry
from tests.fakes.cluster import EVERYTHING, FakeCluster
from tests.fakes.typed import TypedTopic, append, log_of

pytestmark = pytest.mark.slow  # each test fills a table and changes it

STRICT = {"format": "json", "columns": {"id": "long"}, "max_bad_share": 1}
ONE = BrokerPartition(None, 0)
ROUNDS, RECORDS, TRIES = 4, 12, 60
PERSON = {number for number in range((ROUNDS + 2) * RECORDS) if number % 5 == 3}
CONDITION = parse_condition(f"_kafka_offset in ({', '.join(map(str, sorted(PERSON)))})")


def records(start: int) -> list[bytes]:
    """Values of which some do not decode before the setting is corrected."""
    return [
        b'{"id": "%d"}' % number if number % 3 else b'{"id": %d}' % number for number in range(start, start + RECORDS)
    ]


@pytest.fixture
def topic(tmp_path: Path) -> Iterator[TypedTopic]:
    """Two loads, and then the setting is corrected."""
    offered = {**EVERYTHING, OffsetForLeaderEpochRequest.API.key: OffsetForLeaderEpochRequest.API.versions}
    with FakeCluster(logs={0: log_of(records(0))}, offered=offered, topic_id=UUID(int=7)) as fake:
        topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_=STRICT)
        assert topic.load().error is None
        append(fake.logs[0], records(RECORDS))
        assert topic.load().error is None
        topic.format_ = {**STRICT, "columns": {"id": "string"}}
        yield topic


@pytest.fixture
def often_switched() -> Iterator[None]:
    """Python's threads take turns much more often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def until_done(attempt: Callable[[], object]) -> None:
    """Try until there is no failure, as a scheduler does."""
    failures = []
    for _ in range(TRIES):
        failure = attempt()
        if failure is None:
            return
        failures.append(failure)
    pytest.fail(f"no success: {failures[-1]}")


def load(topic: TypedTopic, number: int) -> None:
    append(topic.fake.logs[0], records((number + 2) * RECORDS))
    until_done(lambda: topic.load().error)


def merge(topic: TypedTopic, _number: int) -> None:
    clean(topic.table, keep=timedelta(days=1), target_bytes=10**9, dry_run=False)


def decode(topic: TypedTopic, _number: int) -> None:
    settings = topic.settings
    open_registry = partial(open_schema_registry, settings)
    request = RedecodeRequest(
        table=topic.table, format=settings.format_of("clicks"), open_registry=open_registry, run="redecode"
    )
    until_done(lambda: redecode(request).failure)


def forget(topic: TypedTopic, _number: int) -> None:
    """Erase the person. What was loaded before the erasure began is gone when it has ended."""
    _, until = topic.entry.covered[ONE]
    until_done(lambda: erase(EraseRequest(table=topic.table, condition=CONDITION, run="erasure")).failure)
    assert not PERSON.intersection(offset for offset in offsets(topic) if offset < until)


def offsets(topic: TypedTopic) -> list[int]:
    return [row["_kafka_offset"] for row in topic.rows("_kafka_offset")]


@pytest.mark.usefixtures("often_switched")
def test_four_runs_at_once_lose_no_row_of_others(topic: TypedTopic) -> None:  # faults P18, L05
    together = threading.Barrier(4)

    def rounds(work: Callable[[TypedTopic, int], None]) -> None:
        try:
            for number in range(ROUNDS):
                together.wait(timeout=120)
                work(topic, number)
        except BaseException:
            together.abort()
            raise

    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(rounds, work) for work in (load, merge, decode, forget)]
    failures = [done.exception() for done in running]
    assert [failure for failure in failures if not isinstance(failure, threading.BrokenBarrierError | None)] == []
    for work in (decode, forget):
        work(topic, 0)
    expected = [number for number in range((ROUNDS + 2) * RECORDS) if number not in PERSON]
    assert offsets(topic) == expected
    assert {row["_error"] for row in topic.rows("_error")} == {None}
    proof = verify(topic.table)
    assert (proof.proven, proof.problems) == (True, ())
    assert topic.deep().problems == ()
    kinds = {entry.kind for _, entry in topic.table.entries(topic.snapshot)}
    assert kinds == {CommitKind.LOAD, CommitKind.REDECODE, CommitKind.ERASE}


def test_a_redecode_that_an_erasure_overtakes_brings_no_row_back(  # fault P18
    topic: TypedTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are staged with those of the person when the erasure commits."""
    settings, waiting = topic.settings, [forget]

    def passed(failpoint: str) -> None:
        if failpoint == "redecode staged" and waiting:
            waiting.pop()(topic, 0)

    monkeypatch.setattr("pipelines.rewrites.redecode.failpoint", passed)
    open_registry = partial(open_schema_registry, settings)
    request = RedecodeRequest(
        table=topic.table, format=settings.format_of("clicks"), open_registry=open_registry, run="redecode"
    )
    failure = redecode(request).failure
    assert failure is not None
    assert "changed rows meanwhile; run again" in failure.reason
    assert not waiting
    assert not PERSON.intersection(offsets(topic))
    assert redecode(request).failure is None
    assert not PERSON.intersection(offsets(topic))
    assert topic.deep().problems == ()
