"""Offset files of the genuine Hadoop consumer give the cursors that it would have gone on from."""

import shutil
from pathlib import Path

import pytest

from kafka_io.model import BrokerPartition
from pipelines.offsets.hadoop import HadoopSource, Request, hadoop_source, requests_in
from resources.errors import OffsetsUnreadable
from tests.pipelines.offsets.written import request_file, sequence_file

GOLDEN = Path(__file__).parents[2] / "golden" / "hadoop"
BROKERS = {"127.0.0.1:19072": 0}
ONE = BrokerPartition(0, 0)
GOOD = "tcp://a:1\tt\t0\t5"


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
        ("limit", "gz", 132),  # a compressed message's start: some of it was loaded
        ("limit2", "gz", 0),
        ("beyond", "plain", 9999),  # behind the log's end: who imports it sees
    ],
)
def test_each_job_gives_the_cursors_it_handed_on(job: str, topic: str, offset: int) -> None:
    source = HadoopSource(GOLDEN / job, BROKERS)
    assert source(topic) == {ONE: offset}
    assert source("nothing") == {}


def test_two_files_that_disagree_are_not_believed() -> None:
    with pytest.raises(OffsetsUnreadable, match=r"partition 0-0 is at 44 in offsets_000000m0.*, and at 15234 in"):
        HadoopSource(GOLDEN / "silent", BROKERS)("plain")
    one = HadoopSource(GOLDEN / "silent" / "offsets_000000m0-m-00000", BROKERS)
    assert one("plain") == {ONE: 44}


def test_a_file_may_hold_several_lines_and_a_negative_offset_is_none() -> None:
    found = requests_in((GOLDEN / "multi" / "1.dat").read_bytes(), "1.dat")
    assert [(one.topic, one.offset) for one in found] == [("gz", None), ("sn", 99), ("plain", 15)]
    assert found[0] == Request(address="127.0.0.1:19072", topic="gz", partition=0, offset=None)


def test_a_broker_that_is_not_there_is_named() -> None:
    with pytest.raises(OffsetsUnreadable, match=r"no broker is registered at 127\.0\.0\.1:19072"):
        HadoopSource(GOLDEN / "multi", {"other:9092": 1})("gz")


def test_a_folder_without_offset_files_is_no_job(tmp_path: Path) -> None:
    with pytest.raises(OffsetsUnreadable, match="there is no file offsets_"):
        HadoopSource(tmp_path, BROKERS)("gz")
    shutil.copy(GOLDEN / "README.md", tmp_path / "offsets_1")
    with pytest.raises(OffsetsUnreadable, match="offsets_1 is no SequenceFile"):
        HadoopSource(tmp_path, BROKERS)("gz")


def test_a_later_cluster_was_never_read_by_it() -> None:
    with pytest.raises(OffsetsUnreadable, match="this is a later one"):
        hadoop_source(None, GOLDEN)  # type: ignore[arg-type] # anything that is no cluster of 0.7


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
def test_what_is_no_request_line_is_refused(text: str | bytes) -> None:
    with pytest.raises(OffsetsUnreadable, match=r"file"):
        requests_in(request_file(text), "file")


def test_files_of_others_are_refused() -> None:
    with pytest.raises(OffsetsUnreadable, match="not the Hadoop consumer's"):
        requests_in(sequence_file(), "file")
    with pytest.raises(OffsetsUnreadable, match="is compressed"):
        requests_in(request_file(compressed=True), "file")
    with pytest.raises(OffsetsUnreadable, match="no request line"):
        requests_in(request_file(GOOD).replace(b"\0\0\0\x0f", b"\0\0\0\x10"), "file")
