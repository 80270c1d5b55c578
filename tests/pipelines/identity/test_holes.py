"""Offsets that no record batch has: compaction explains them, or a load stops before them until the user chooses."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from kafka_io.errors import BrokerError, ConnectFailed, Where
from kafka_io.messages.describe_configs import (
    ConfigEntry,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedConfigs,
)
from kafka_io.model import BrokerPartition, OffsetRange
from kafka_io.records.gaps import COMPACTED, HOLE
from kafka_io.wire.conversation import ReceivedRequest
from pipelines.identity.holes import MISSING, Refusal, with_causes
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.ledger import Coverage, RecordedChoice
from pipelines.ledger.slice_facts import Observations, SliceFacts
from pipelines.plan.positions import NamedPosition
from pipelines.verify.verify import verify
from resources.kafka import open_cluster
from resources.settings.settings import ClusterSettings, Settings
from tests.fakes.cluster import FakeCluster, Log
from tests.fakes.decoding import lose_rows
from tests.fakes.records import holding, numbered, table, values
from tests.pipelines.load.test_choices import load, newest

CONFIGS = DescribeConfigsRequest.API.key
A, B = BrokerPartition(None, 0), BrokerPartition(None, 1)
CLUSTER_AUTHORIZATION_FAILED = 31


def without(log: Log, start: int, stop: int) -> Log:
    """The log without the batches in [start, stop)."""
    entries = [(last, data) for last, data in log.entries if not start <= last < stop]
    return Log(entries=entries, start=log.start, end=log.end, epoch=log.epoch)


def answers_policy(fake: FakeCluster, policy: str | None, *, error: int = 0) -> None:
    """Let the brokers of a running cluster answer DescribeConfigs."""
    configs = () if policy is None else (ConfigEntry(name="cleanup.policy", value=policy, **FLAGS),)

    def answer(received: ReceivedRequest) -> DescribeConfigsResponse:
        request: Any = received.request
        return DescribeConfigsResponse(
            results=tuple(
                DescribedConfigs(
                    error_code=error,
                    error_message=None,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                    configs=configs,
                )
                for resource in request.resources
            )
        )

    fake.offered = {**fake.offered, CONFIGS: DescribeConfigsRequest.API.versions}
    for broker in fake.brokers:
        broker.handlers[CONFIGS] = answer


FLAGS: Mapping[str, Any] = {"read_only": False, "is_sensitive": False}


@pytest.fixture
def holed(fake: FakeCluster) -> FakeCluster:
    """A cluster whose log of partition 0 has no batch for the offsets [10, 15)."""
    fake.logs[0] = without(holding(0, 20), 10, 15)
    return fake


# fault P03
def test_a_hole_stops_the_load_of_a_topic_that_is_not_compacted_and_what_is_before_it_lands(
    holed: FakeCluster, tmp_path: Path
) -> None:
    with holed:
        answers_policy(holed, "delete")
        for rows in (20, 0):
            refused = load(holed, tmp_path)
            assert refused.error is not None
            assert refused.error.startswith("OffsetsMissing: the log has lost offsets [10, 15) before they were loaded")
            assert "cleanup.policy is delete" in refused.error
            assert 'on_missing = "skip"' in refused.error
            assert "partition=0 offset=10" in refused.error
            assert (refused.rows, refused.retriable) == (rows, False)
            assert newest(tmp_path).covered == {A: (0, 10), B: (0, 10)}
        assert verify(table(tmp_path)).problems == ()
        result = load(holed, tmp_path, on_missing="skip")
    assert (result.error, result.rows) == (None, 5)
    assert result.warnings == ("on_missing = skip: partition 0 [10, 15)",)
    entry = newest(tmp_path)
    assert entry.choices == (RecordedChoice(setting="on_missing", value="skip", partition="0", start=10, stop=15),)
    assert [(committed.rows, committed.gaps) for committed in entry.ranges] == [(5, {"missing": 5})]
    assert values(tmp_path) == [*numbered(0, 10), *numbered(15, 20)]
    assert verify(table(tmp_path)).problems == ()


# fault P03
@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_compaction_explains_a_hole(policy: str, holed: FakeCluster, tmp_path: Path) -> None:
    with holed:
        answers_policy(holed, policy)
        result = load(holed, tmp_path)
    assert (result.error, result.rows) == (None, 25)
    assert [partition.gaps for partition in result.partitions] == [{"compacted": 5}, {}]


# fault P03
@pytest.mark.parametrize(
    ("policy", "error", "reason"),
    [
        (None, 0, "the topic's cleanup.policy is unknown"),
        ("compact", CLUSTER_AUTHORIZATION_FAILED, "the topic's cleanup.policy cannot be read ("),
    ],
)
def test_a_policy_that_cannot_be_read_explains_no_hole(
    policy: str | None, error: int, reason: str, holed: FakeCluster, tmp_path: Path
) -> None:
    with holed:
        answers_policy(holed, policy, error=error)
        refused = load(holed, tmp_path)
    assert reason in str(refused.error)
    assert newest(tmp_path).covered[A] == (0, 10)


def test_brokers_that_cannot_tell_the_policy_explain_no_hole(holed: FakeCluster, tmp_path: Path) -> None:
    with holed:
        refused = load(holed, tmp_path)
    assert "cleanup.policy is unknown" in str(refused.error)


def test_the_policy_is_not_asked_for_without_a_hole(fake: FakeCluster, tmp_path: Path) -> None:
    with fake:
        answers_policy(fake, "delete")
        assert load(fake, tmp_path).error is None
        assert fake.heard(CONFIGS) == []


def test_only_the_offsets_before_the_first_hole_are_loaded(fake: FakeCluster, tmp_path: Path) -> None:
    fake.logs[0] = without(without(holding(0, 40), 5, 10), 25, 35)
    with fake:
        answers_policy(fake, "delete")
        refused = load(fake, tmp_path)
        assert "the log has lost 15 of the offsets [5, 35)" in str(refused.error)
        assert newest(tmp_path).covered[A] == (0, 5)
        load(fake, tmp_path, on_missing="skip")
    assert values(tmp_path) == [*numbered(0, 5), *numbered(10, 25), *numbered(35, 40)]


def test_a_backfill_loads_what_is_above_a_hole(holed: FakeCluster, tmp_path: Path) -> None:
    with holed:
        answers_policy(holed, "delete")
        assert load(holed, tmp_path, since=NamedPosition.LATEST).error is None
        refused = load(holed, tmp_path, since=NamedPosition.EARLIEST)
        assert "the log has lost offsets [10, 15)" in str(refused.error)
        assert newest(tmp_path).covered[A] == (15, 20)
        assert load(holed, tmp_path, since=NamedPosition.EARLIEST, on_missing="skip").error is None
    assert newest(tmp_path).covered[A] == (0, 20)
    assert values(tmp_path) == [*numbered(15, 20), *numbered(0, 10)]


# fault P03
def test_a_decoder_that_loses_rows_loads_nothing(
    fake: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It loses every seventh row and calls it compacted, but the headers of the batches count all records."""
    lose_rows(monkeypatch)
    with fake:
        answers_policy(fake, "compact")
        result = load(fake, tmp_path)
    assert result.rows == 0
    assert "but the headers of its batches count" in str(result.error)


def settings(fake: FakeCluster, folder: Path) -> Settings:
    bootstrap = ",".join(broker.address for broker in fake.bootstrap)
    return Settings(lake=str(folder), clusters={"main": ClusterSettings(bootstrap=bootstrap)})


def test_the_policy_of_a_topic_is_read_from_its_brokers(fake: FakeCluster, tmp_path: Path) -> None:
    with fake:
        answers_policy(fake, "compact, delete")
        with open_cluster(settings(fake, tmp_path), "main") as cluster:
            assert cluster.cleanup_policies("clicks") == frozenset({"compact", "delete"})


def facts_of(start: int, stop: int, *holes: int, count: int | None = None) -> SliceFacts:
    """The facts of a slice, in which a number of the offsets `[holes[0], holes[1])` is missing."""
    offsets = OffsetRange(A, start, stop)
    if not holes:
        return SliceFacts(range=CommittedRange(offsets=offsets, rows=stop - start))
    missing = OffsetRange(A, *holes)
    return SliceFacts(
        range=CommittedRange(offsets=offsets, gaps={MISSING: count or missing.size}),
        observed=Observations(holes=missing, holes_reason="it is so"),
    )


@pytest.mark.parametrize(
    ("covered", "facts", "failed", "intact"),
    [
        ({}, [facts_of(0, 10), facts_of(10, 20, 13, 15), facts_of(20, 30, 25, 26)], [(13, 20), (25, 30)], [(10, 13)]),
        ({}, [facts_of(0, 10, 0, 2)], [(0, 10)], []),
        (
            {A: (30, 40)},
            [facts_of(0, 10, 3, 4), facts_of(10, 20, 15, 17), facts_of(20, 30)],
            [(0, 4), (10, 17)],
            [(17, 20)],
        ),
    ],
)
def test_only_the_part_up_to_the_first_missing_offset_can_be_committed(
    covered: Coverage, facts: list[SliceFacts], failed: list[tuple[int, int]], intact: list[tuple[int, int]]
) -> None:
    """The first one as seen from the covered range: of a backfill it is the last one."""
    refusal = Refusal.of(facts, covered, Where())
    refused = [slice_facts.offsets for slice_facts in refusal.facts if slice_facts.failure]
    assert [(offsets.start, offsets.stop) for offsets in refused] == failed
    assert [(offsets.start, offsets.stop) for offsets in refusal.intact] == intact
    assert len(refusal.facts) == len(facts)


@pytest.mark.parametrize(("count", "text"), [(2, "lost offsets [13, 15)"), (1, "lost 1 of the offsets [13, 15)")])
def test_the_error_says_how_many_offsets_are_missing(count: int, text: str) -> None:
    [refused] = Refusal.of([facts_of(10, 20, 13, 15, count=count)], {}, Where()).facts
    assert text in str(refused.failure)


HOLES = SliceFacts(
    range=CommittedRange(offsets=OffsetRange(A, 0, 10), gaps={HOLE: 2, "control": 1}),
    observed=Observations(holes=OffsetRange(A, 3, 5)),
)


@pytest.mark.parametrize(
    ("policies", "cause", "reason"),
    [
        ({"compact", "delete"}, COMPACTED, ""),
        ({"delete"}, MISSING, "the topic's cleanup.policy is delete"),
        (None, MISSING, "the topic's cleanup.policy is unknown"),
    ],
)
def test_the_policy_of_the_topic_gives_holes_their_cause(policies: set[str] | None, cause: str, reason: str) -> None:
    cluster = Mock(cleanup_policies=lambda _: policies)
    whole, holed = with_causes(cluster, "clicks", [facts_of(10, 20), HOLES])
    assert whole == facts_of(10, 20)
    assert (holed.range.gaps, holed.observed.holes_reason) == ({cause: 2, "control": 1}, reason)
    assert holed.observed.holes == (HOLES.observed.holes if reason else None)


def test_the_policy_is_asked_only_if_there_are_holes() -> None:
    cluster = Mock()
    assert with_causes(cluster, "clicks", [facts_of(10, 20)]) == [facts_of(10, 20)]
    cluster.cleanup_policies.assert_not_called()


def test_a_policy_that_cannot_be_read_now_fails_the_load() -> None:
    with pytest.raises(ConnectFailed):
        with_causes(Mock(cleanup_policies=Mock(side_effect=ConnectFailed("away"))), "clicks", [HOLES])
    refusal = Mock(cleanup_policies=Mock(side_effect=BrokerError("not allowed", code=CLUSTER_AUTHORIZATION_FAILED)))
    [holed] = with_causes(refusal, "clicks", [HOLES])
    assert holed.observed.holes_reason.startswith("the topic's cleanup.policy cannot be read")
