"""Import of offsets from the offset files of a genuine Hadoop consumer."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_io.cluster.opening import open_cluster
from kafka_io.model import Broker, BrokerPartition
from pipelines.cursors.hadoop import HadoopRequest, hadoop_offsets, requests_in
from resources.errors import OffsetsUnreadable
from tests.pipelines.cursors.written import request_file, sequence_file

GOLDEN = Path(__file__).parents[2] / "golden" / "hadoop"
PARTITION = BrokerPartition(0, 0)


def cluster_of(broker: Broker) -> Any:
    """A cluster of 0.7 where only this broker is registered."""
    return SimpleNamespace(partitions_have_brokers=True, brokers_by_id=lambda: {broker.id: broker})


CLUSTER = cluster_of(Broker(0, "127.0.0.1", 19072))
REQUEST_LINE = "tcp://a:1\tt\t0\t5"


@pytest.mark.parametrize(
    ("job", "topic", "offset"),
    [
        ("multi", "seg", 2541),
        ("multi", "mixed", 222),
        ("multi", "nested", 221),
        ("multi", "gz", 198),
        ("multi", "sn", 225),
        ("multi", "plain", 44),
        ("generator", "SimpleTestEvent", 722),
        ("purged", "purged", 2240),
        ("limit", "gz", 132),  # the start of a compressed message, of which a part was loaded
        ("limit2", "gz", 0),
        ("beyond", "plain", 9999),  # beyond the log's end: the import checks that, not the reader
    ],
)
def test_each_job_gives_the_offsets_that_its_next_run_would_read(job: str, topic: str, offset: int) -> None:
    assert hadoop_offsets(CLUSTER, GOLDEN / job, topic) == {PARTITION: offset}
    assert hadoop_offsets(CLUSTER, GOLDEN / job, "nothing") == {}


def test_two_files_that_disagree_are_refused() -> None:
    with pytest.raises(OffsetsUnreadable, match=r"partition 0-0 differ: 44 in offsets_000000m0.*, 15234 in"):
        hadoop_offsets(CLUSTER, GOLDEN / "silent", "plain")
    one_file = GOLDEN / "silent" / "offsets_000000m0-m-00000"
    assert hadoop_offsets(CLUSTER, one_file, "plain") == {PARTITION: 44}


def test_a_file_may_have_several_lines_and_a_negative_offset_means_none() -> None:
    requests = requests_in((GOLDEN / "multi" / "1.dat").read_bytes(), "1.dat")
    assert [(request.topic, request.offset) for request in requests] == [("gz", None), ("sn", 99), ("plain", 15)]
    assert requests[0] == HadoopRequest(address="127.0.0.1:19072", topic="gz", partition=0, offset=None)


def test_a_broker_that_is_not_registered_is_named() -> None:
    with pytest.raises(OffsetsUnreadable, match=r"no broker is registered at 127\.0\.0\.1:19072"):
        hadoop_offsets(cluster_of(Broker(1, "other", 9092)), GOLDEN / "multi", "gz")


def test_a_folder_without_offset_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OffsetsUnreadable, match="there is no file offsets_"):
        hadoop_offsets(CLUSTER, tmp_path, "gz")
    shutil.copy(GOLDEN / "README.md", tmp_path / "offsets_1")
    with pytest.raises(OffsetsUnreadable, match="offsets_1 is not a SequenceFile"):
        hadoop_offsets(CLUSTER, tmp_path, "gz")


def test_a_cluster_after_0_7_is_refused() -> None:
    with (
        open_cluster("main", bootstrap="127.0.0.1:1") as cluster,
        pytest.raises(OffsetsUnreadable, match="this cluster has a later version"),
    ):
        hadoop_offsets(cluster, GOLDEN, "gz")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tcp://a:1\tt\t0",
        "tcp://a:1\tt\t0\tx",
        "a:1\tt\t0\t5",
        "tcp://a:1\tt\tp\t5",
        "tcp://a:1\tt\t1-0\t5",
        f"tcp://a:1\tt\t0\t{2**63}",
        b"tcp://a:1\tt\t0\t5\xff",
    ],
)
def test_a_value_that_is_not_a_request_line_is_refused(text: str | bytes) -> None:
    with pytest.raises(OffsetsUnreadable, match=r"file"):
        requests_in(request_file(text), "file")


def test_files_that_the_hadoop_consumer_did_not_write_are_refused() -> None:
    with pytest.raises(OffsetsUnreadable, match="was not written by the Hadoop consumer"):
        requests_in(sequence_file(), "file")
    with pytest.raises(OffsetsUnreadable, match="is compressed"):
        requests_in(request_file(compressed=True), "file")
    with pytest.raises(OffsetsUnreadable, match="not a request line"):
        requests_in(request_file(REQUEST_LINE).replace(b"\0\0\0\x0f", b"\0\0\0\x10"), "file")
