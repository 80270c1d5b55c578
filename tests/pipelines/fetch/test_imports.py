"""The modules that each Spark worker, each verify and each process of Dagster import."""

import subprocess
import sys
from pathlib import Path

import pytest

from kafka_io.producer.opening import open_producer
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer

# A worker of Spark imports pyspark's part for workers before, and deltalake only if the lake is in an object store.
WORKER = {
    "dagster",
    "deltalake",
    "duckdb",
    "google.protobuf",
    "pandas",
    "pydantic",
    "kazoo",
    "pyspark",
    "rich",
    "resources.settings.settings",
}
# A load with nothing new is over in the time that these take.
LOAD = {
    "dagster",
    "duckdb",
    "google.protobuf",
    "kafka_io.cluster.v07_cluster",
    "kafka_io.consumer.group_offsets",
    "kafka_io.producer.producer",
    "kafka_io.reader.modern_partition",
    "kafka_io.records.decoder",
    "kafka_io.values.framing",
    "kazoo",
    "llvmlite",
    "numba",
    "pandas",
    "py4j",
    "pyspark",
}
# Decoders, compilers and Spark would take more memory than the proof of a long history.
VERIFY = {"dagster", "llvmlite", "numba", "pandas", "pydantic", "pyspark", "kazoo", "rich", "kafka_io.records.decoder"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "unneeded"),
    [
        ("pipelines.fetch.fetch", WORKER),
        ("pipelines.load.load", LOAD),
        ("pipelines.verify.verify", VERIFY),  # fault U19
        ("pipelines.defs.build", {"duckdb", "numba", "pandas", "pyarrow.dataset"}),
    ],
)
def test_a_process_imports_nothing_that_only_other_processes_need(module: str, unneeded: set[str]) -> None:
    code = f"import sys, {module}; sys.exit(str({unneeded} & set(sys.modules)))"
    process = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert process.stderr.strip() == "set()"


@pytest.mark.slow
@pytest.mark.parametrize("settings", ["", '[topics.clicks]\nformat = "json"\n'])
def test_a_load_imports_a_decoder_only_if_the_topic_has_new_records(settings: str, tmp_path: Path) -> None:
    with ModernBrokerServer(ModernBrokerConfig(broker_id=0, data_dir=tmp_path / "broker")) as broker:
        bootstrap = f"127.0.0.1:{broker.port}"
        file = tmp_path / "penstock.toml"
        file.write_text(f'lake = "lake"\n[clusters.main]\nbootstrap = "{bootstrap}"\n{settings}')
        with open_producer(bootstrap=bootstrap) as producer:
            producer.send("clicks", b'{"a": 1}')
        code = f"""
import sys
from pipelines.__main__ import run
sys.argv = ["penstock", "--settings", {str(file)!r}, "load", "clicks"]
try:
    run()
except SystemExit as end:
    sys.exit(f"{{end.code}} {{sorted({LOAD} & set(sys.modules))}}")
"""
        first, second = (
            subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
            for _ in range(2)
        )
    assert "'numba'" in first.stderr
    assert second.stderr.strip() == "0 []"
