"""Metrics show what the status knows. Unknown values have no sample, and the number of samples is limited."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kafka_io.model import BrokerPartition
from pipelines.ledger.failure import SliceFailure
from pipelines.reports.last_error import LastError
from pipelines.status import metrics
from pipelines.status.metrics import STATUS_METRICS, ClusterFacts, metric_families
from pipelines.status.metrics_source import CachedMetrics, MetricsSource
from pipelines.status.status import LastLoad, PartitionStatus, RetentionPeriod, RetentionSource, TopicStatus
from pipelines.table.open_table import TableSize
from pipelines.verify.last_proof import LastProof
from resources.metrics_output import MetricsPage
from resources.settings.settings import Settings

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
FAILURE = SliceFailure(kind="LogTorn", reason="an entry is incomplete")
FULL = TopicStatus(
    cluster="main",
    topic="clicks",
    incarnation="7",
    table="/lake/main/clicks",
    version=3,
    size=TableSize(rows=100, bytes=1000, files=4, bad_records=2),
    last_load=LastLoad(
        planned_ms=NOW_MS - 5000, committed_ms=NOW_MS - 3000, rows=6, bytes=60, files=1, gaps={"expired": 3}
    ),
    partitions=(
        PartitionStatus(
            id=BrokerPartition(None, 0),
            earliest=5,
            latest=10,
            cursor=4,
            held_back=2,
            oldest_ms=NOW_MS - HOUR_MS,
            expires_ms=NOW_MS + HOUR_MS,
        ),
    ),
    kept=RetentionPeriod(ms=2 * HOUR_MS, by=RetentionSource.BROKERS),
    last_error=LastError(run="r", time_ms=NOW_MS - 1000, failures=(FAILURE,), count=1, since_ms=NOW_MS - 9000),
    valid_through_ms=NOW_MS - 60_000,
)
PROOF = LastProof(
    time_ms=NOW_MS - HOUR_MS, seconds=1.5, proven=False, problems=2, rows=98, missing=2, duplicates=1, gaps={"empty": 4}
)
EMPTY = TopicStatus(cluster="main", topic="empty", incarnation="7", table="/lake/main/empty")


def facts(*statuses: TopicStatus, **more: Any) -> ClusterFacts:
    return ClusterFacts(cluster="main", up=True, now_ms=NOW_MS, seconds=0.5, statuses=statuses, **more)


def samples(*clusters: ClusterFacts, max_topics: int = 10, partitions: bool = False) -> dict[str, float]:
    """The value of each sample of a page, by its name and the values of its labels."""
    page = MetricsPage(metric_families(clusters, max_topics=max_topics, partitions=partitions)).text()
    return {
        " ".join((sample.name.removeprefix("penstock_"), *sorted(sample.labels.values()))): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def test_a_page_has_all_facts_of_a_topic() -> None:
    of_page = samples(facts(FULL, proofs={"clicks": PROOF}), partitions=True)
    of_topic = {name.removesuffix(" clicks main"): value for name, value in of_page.items() if "clicks" in name}
    assert of_topic == {
        "topic_up": 1,
        "lag_offsets": 7,
        "late_seconds": 3600,
        "until_loss_seconds": 3600,
        "lost_offsets": 1,
        "valid_through_timestamp_seconds": (NOW_MS - 60_000) / 1000,
        "last_load_failed": 1,
        "failing_since_timestamp_seconds": (NOW_MS - 9000) / 1000,
        "topic_state clicks losing main": 1,
        "table_rows": 100,
        "table_bytes": 1000,
        "table_files": 4,
        "bad_records": 2,
        "last_load_timestamp_seconds": (NOW_MS - 3000) / 1000,
        "last_load_duration_seconds": 2,
        "last_load_rows": 6,
        "last_load_bytes": 60,
        "last_load_files": 1,
        "last_load_gap_offsets clicks expired main": 3,
        "proof_success": 0,
        "proof_timestamp_seconds": (NOW_MS - HOUR_MS) / 1000,
        "proof_duration_seconds": 1.5,
        "proof_problems": 2,
        "proof_missing_rows": 2,
        "proof_duplicate_rows": 1,
        "proof_gap_offsets clicks empty main": 4,
        "partition_lag_offsets 0": 7,
        "partition_lost_offsets 0": 1,
        "partition_held_back_offsets 0": 2,
        "partition_until_loss_seconds 0": 3600,
    }
    assert {name.partition(" ")[0] for name in of_page} == {
        name.name.removeprefix("penstock_") for name in STATUS_METRICS
    }


def test_what_is_unknown_has_no_sample() -> None:
    assert {name for name in samples(facts(EMPTY, proofs={"empty": PROOF})) if "empty" in name} == {
        "topic_up empty main",
        "lost_offsets empty main",
        "last_load_failed empty main",
        "topic_state empty main new",
    }


def test_a_topic_that_cannot_be_read_is_down() -> None:
    of_page = samples(facts(replace(EMPTY, failure=FAILURE), FULL))
    assert (of_page["topic_up empty main"], of_page["topic_up clicks main"]) == (0, 1)


def test_a_cluster_that_does_not_answer_is_down_and_has_no_topics() -> None:
    of_page = samples(ClusterFacts(cluster="old", up=False, now_ms=NOW_MS, seconds=2), facts(FULL))
    assert (of_page["up old"], of_page["up main"], of_page["topics main"]) == (0, 1, 1)
    assert of_page["collection_duration_seconds old"] == 2
    assert "topics old" not in of_page


def test_a_page_keeps_the_most_urgent_topics_and_says_how_many_it_leaves_out() -> None:
    others = [replace(EMPTY, topic=f"topic-{number}") for number in range(20)]
    of_page = samples(facts(*others[:10], FULL, *others[10:]), max_topics=3)
    shown = [name for name in of_page if name.startswith("topic_up")]
    assert shown == ["topic_up clicks main", "topic_up main topic-0", "topic_up main topic-1"]
    assert (of_page["topics main"], of_page["topics_left_out main"]) == (21, 18)


ORDERS = replace(FULL, topic="clicks/orders", table="/lake/main/clicks~2forders", last_error=None)


def test_a_table_of_a_topic_has_no_samples_of_what_the_topic_has() -> None:
    of_page = samples(facts(FULL, ORDERS, proofs={"clicks/orders": PROOF}), partitions=True)
    of_table = {name.split()[0] for name in of_page if "clicks/orders" in name}
    of_topic = {name.split()[0] for name in of_page if " clicks" in name and "/" not in name}
    proof = {name for name in of_table if name.startswith("proof_")}
    assert of_topic - of_table == {
        *("lag_offsets", "late_seconds", "until_loss_seconds", "lost_offsets", "topic_state"),
        *("last_load_failed", "failing_since_timestamp_seconds"),
        *(name for name in of_topic if name.startswith("partition_")),
    }
    assert (of_table - of_topic, "proof_success" in proof) == (proof, True)
    assert of_page["topics main"] == 1


def test_a_topic_is_on_the_page_with_all_its_tables_or_with_none() -> None:
    tables = (FULL, ORDERS, EMPTY, replace(EMPTY, topic="empty/orders"))
    of_page = samples(facts(*tables), max_topics=1)
    assert (of_page["topics main"], of_page["topics_left_out main"]) == (2, 1)
    assert {name for name in of_page if name.startswith("topic_up")} == {
        "topic_up clicks main",
        "topic_up clicks/orders main",
    }


def test_a_page_limits_partitions_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MAX_PARTITIONS", 3)
    parts = tuple(PartitionStatus(id=BrokerPartition(None, number)) for number in range(5))
    of_page = samples(facts(replace(FULL, partitions=parts)), partitions=True)
    assert [name for name in of_page if name.startswith("partition_lost")] == [
        f"partition_lost_offsets {number} clicks main" for number in range(3)
    ]
    assert of_page["partitions_left_out main"] == 2
    assert "partitions_left_out main" not in samples(facts(FULL))


class Counted(MetricsSource):
    """Collects a page without topics, and counts how often."""

    collections = 0

    def collect(self) -> list[ClusterFacts]:
        """See MetricsSource."""
        Counted.collections += 1
        return [replace(facts(), now_ms=Counted.collections * 1000)]


def test_a_server_collects_again_only_after_some_seconds() -> None:
    now_s = 0.0
    settings = Settings.model_validate({"lake": "lake", "clusters": {"main": {"bootstrap": "127.0.0.1:1"}}})
    source = Counted(settings=settings, clusters=["main"], max_topics=10)
    cached = CachedMetrics(source, keep_s=15, clock=lambda: now_s)

    def collected() -> Sequence[float]:
        return [sample.value for family in cached.collect() for sample in family.samples if "collected" in sample.name]

    assert (collected(), collected()) == ([1], [1])
    now_s = 14.9
    assert collected() == [1]
    now_s = 15
    assert collected() == [2]
