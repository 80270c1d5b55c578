"""The page about scale has the tables of the model, and real tables have the sizes that the model says."""

from pathlib import Path

from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from pipelines.load.load import Loader
from resources.kafka import open_cluster
from resources.settings.settings import ClusterSettings, Settings
from tests.bench import growth
from tests.bench.growth import Deployment
from tests.docs.pages import ROOT
from tests.publishing import publish

PAGE = (ROOT / "docs" / "scale.md").read_text()
_PARTITIONS = 40


def test_the_page_has_the_table_of_the_model() -> None:
    assert growth.table() in PAGE


def test_the_page_compares_the_cpu_time_of_the_model() -> None:
    for partitions in (1, 10, 100, 1000):
        model_s = growth.TOPIC_S + partitions * growth.FILE_S
        [row] = [line for line in PAGE.splitlines() if line.startswith(f"| {partitions:,} | ") and line.count("|") == 6]
        assert float(row.split("|")[3]) == float(f"{model_s:.2g}")
        measured_s = float(row.split("|")[2])
        assert 0.75 < model_s / measured_s < 1.33


def test_more_records_than_a_slice_holds_are_more_files() -> None:
    one_day = Deployment(partitions=10, topics=1, bytes_per_s=1e6, loads=1)
    assert one_day.files == 10 * -(-one_day.records // (10 * growth.SLICE_RECORDS))


def test_entries_and_checkpoints_have_the_sizes_of_the_model(tmp_path: Path) -> None:
    config = ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "broker", partitions=_PARTITIONS)
    with ModernBrokerServer(config) as broker:
        bootstrap = f"127.0.0.1:{broker.port}"
        settings = Settings(lake=str(tmp_path / "lake"), clusters={"main": ClusterSettings(bootstrap=bootstrap)})
        files = 0
        for _ in range(growth.CHECKPOINT_COMMITS):
            publish("clicks", [b"x" * growth.RECORD_BYTES] * 8 * _PARTITIONS, bootstrap=bootstrap)
            with open_cluster(settings, "main") as cluster:
                load = Loader.of(settings, cluster, lambda: None).load("clicks")  # type: ignore[arg-type,return-value] # no Spark
            assert load.error is None
            files += load.files
    log = tmp_path / "lake" / "main" / "clicks" / "_delta_log"
    entries = sum(file.stat().st_size for file in log.glob("*[1-9].json"))
    [checkpoint] = log.glob("*.checkpoint.parquet")
    files_of_entries = files * 9 / 10
    assert 0.85 < (9 * growth.ENTRY_BYTES + files_of_entries * growth.ENTRY_BYTES_OF_FILE) / entries < 1.15
    assert 0.8 < files * growth.CHECKPOINT_BYTES_OF_FILE / (checkpoint.stat().st_size - 15_000) < 1.2
