"""A load writes its own metrics if the settings say where. It ends as it would have ended, whatever happens to them."""

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.ledger.failure import SliceFailure
from pipelines.load.load import Loader
from pipelines.reports.load_metrics import LOAD_METRICS, LoadMetrics, file_name, load_page
from pipelines.reports.outcome import PartitionLoad, TopicLoad
from resources.kafka import open_cluster
from resources.settings.metrics import MetricsSettings
from resources.settings.settings import ClusterSettings, Settings
from tests.brokers.ports import free_ports
from tests.fakes.cluster import FakeCluster
from tests.pipelines.load.test_run_target import load, no_spark


def partition(number: int, gaps: dict[str, int]) -> PartitionLoad:
    return PartitionLoad(offsets=OffsetRange(BrokerPartition(None, number), 0, 10), rows=8, gaps=gaps, bad_records=1)


LOADED = TopicLoad(
    topic="clicks",
    table="/lake/main/clicks",
    rows=16,
    bytes=160,
    files=2,
    seconds=1.5,
    partitions=(partition(0, {"compacted": 2}), partition(1, {"compacted": 1, "expired": 1})),
)
FAILURE = SliceFailure(kind="Corrupt", reason="a checksum is wrong")


def values(text: str) -> dict[str, float]:
    """The values of a page by name, with the cause if there is one."""
    return {
        " ".join(filter(None, (sample.name.removeprefix("penstock_load_"), sample.labels.get("cause")))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_page_of_a_load_says_what_it_did() -> None:
    text = load_page("main", LOADED, now_s=1000.5).text()
    assert values(text) == {
        "success": 1,
        "duration_seconds": 1.5,
        "rows": 16,
        "bytes": 160,
        "files": 2,
        "bad_records": 2,
        "errors": 0,
        "lag_offsets": 0,
        "timestamp_seconds": 1000.5,
        "gap_offsets compacted": 3,
        "gap_offsets expired": 1,
    }
    assert {family.name for family in text_string_to_metric_families(text)} == {name.name for name in LOAD_METRICS}
    assert 'penstock_load_rows{cluster="main",topic="clicks"} 16.0' in text


def test_a_failed_load_has_no_lag_and_counts_its_errors() -> None:
    failed = TopicLoad(topic="clicks", table="", error=str(FAILURE), failures=(FAILURE, FAILURE))
    of_page = values(load_page("main", failed, now_s=1).text())
    assert (of_page["success"], of_page["errors"], "lag_offsets" in of_page) == (0, 2, False)


def test_names_of_files_are_short_and_differ() -> None:
    names = {file_name("main", topic) for topic in ("clicks", "Clicks", "a/b", "a-b", "x" * 240, "x" * 239 + "y")}
    assert len(names) == 6
    assert all(len(name) < 200 and "/" not in name and name.endswith(".prom") for name in names)


def test_a_place_that_fails_is_one_warning_per_run(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    settings = MetricsSettings(push_url=f"http://127.0.0.1:{port}", textfile_folder=str(tmp_path / "missing"))
    write = LoadMetrics(settings, "main")
    folder, gateway = write(LOADED)
    assert folder.startswith("the metrics of this run are lost: the file ")
    assert gateway.endswith("did not take the metrics: connection refused")
    assert write(LOADED) == []


def test_each_load_replaces_the_file_of_its_topic(fake: FakeCluster, tmp_path: Path) -> None:
    (tmp_path / "metrics").mkdir()
    with fake:
        settings = Settings(
            lake=str(tmp_path / "lake"),
            clusters={"main": ClusterSettings(bootstrap=",".join(broker.address for broker in fake.bootstrap))},
            metrics=MetricsSettings(textfile_folder=str(tmp_path / "metrics")),
        )
        with open_cluster(settings, "main") as cluster:
            rows = []
            for _ in range(2):
                result = Loader.of(settings, cluster, no_spark).load("clicks")
                assert (result.error, result.warnings) == (None, ())
                [file] = (tmp_path / "metrics").iterdir()
                rows.append((values(file.read_text())["rows"], result.rows))
    assert rows == [(30, 30), (0, 0)]


def test_metrics_that_are_lost_are_a_warning_of_the_load(fake: FakeCluster, tmp_path: Path) -> None:
    with fake:
        result = load(fake, tmp_path, reports={"ended": lambda _load: ("the metrics of this run are lost",)})
    assert (result.error, result.rows, result.warnings) == (None, 30, ("the metrics of this run are lost",))
