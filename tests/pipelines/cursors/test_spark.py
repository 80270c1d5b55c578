"""Import of offsets from a genuine checkpoint: the ends of the newest committed batch."""

import shutil
from pathlib import Path

import pytest

from kafka_io.model import BrokerPartition
from pipelines.cursors.spark import batch_ends, spark_offsets
from resources.errors import OffsetsUnreadable

GOLDEN = Path(__file__).parents[2] / "golden" / "spark"


def test_a_batch_that_was_planned_but_not_committed_does_not_count() -> None:
    assert spark_offsets(GOLDEN, "orders") == {BrokerPartition(None, number): 21 for number in range(4)}
    assert spark_offsets(GOLDEN, "views") == {}


def test_the_ends_of_all_kafka_sources_are_read() -> None:
    lines = ["v1", "{}", '{"a":{"0":1}}', "-", '{"b":{"0":2,"1":-1}}']
    p0, p1 = (BrokerPartition(None, number) for number in (0, 1))
    assert list(batch_ends("\n".join(lines), "file")) == [
        ("a", p0, 1, "file"),
        ("b", p0, 2, "file"),
        ("b", p1, None, "file"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "v2\n{}\n{}",
        "v1",
        "v1\n{}",
        "v1\n{}\n[1]",
        "v1\n{}\n7",
        'v1\n{}\n{"a":7}',
        'v1\n{}\n{"a":{"p":7}}',
        'v1\n{}\n{"a":{"0":"x"}}',
        'v1\n{}\n{"a":{"0":true}}',
    ],
)
def test_a_file_that_is_not_an_offset_log_of_kafka_is_refused(text: str) -> None:
    with pytest.raises(OffsetsUnreadable, match="file"):
        list(batch_ends(text, "file"))


def test_a_folder_that_is_not_a_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OffsetsUnreadable, match="its folder commits is empty"):
        spark_offsets(tmp_path, "orders")
    shutil.copytree(GOLDEN / "commits", tmp_path / "commits")
    with pytest.raises(OffsetsUnreadable, match="cannot be read: no such file"):
        spark_offsets(tmp_path, "orders")
