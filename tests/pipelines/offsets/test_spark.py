"""A genuine checkpoint gives the ends of the newest batch that was committed."""

import shutil
from pathlib import Path

import pytest

from kafka_io.model import BrokerPartition
from pipelines.offsets.spark import SparkSource, ends_of
from resources.errors import OffsetsUnreadable

GOLDEN = Path(__file__).parents[2] / "golden" / "spark"


def test_a_batch_that_was_planned_and_not_committed_is_not_counted() -> None:
    assert SparkSource(GOLDEN)("orders") == {BrokerPartition(None, number): 21 for number in range(4)}
    assert SparkSource(GOLDEN)("views") == {}


def test_several_sources_are_told_together_and_must_agree() -> None:
    lines = ["v1", "{}", '{"a":{"0":1}}', "-", '{"b":{"0":2,"1":-1}}']
    p0, p1 = (BrokerPartition(None, number) for number in (0, 1))
    assert list(ends_of("\n".join(lines), "file")) == [("a", p0, 1), ("b", p0, 2), ("b", p1, None)]


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
def test_what_is_no_offset_log_of_kafka_is_refused(text: str) -> None:
    with pytest.raises(OffsetsUnreadable, match="file"):
        list(ends_of(text, "file"))


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OffsetsUnreadable, match="commits/ has none"):
        SparkSource(tmp_path)("orders")
    shutil.copytree(GOLDEN / "commits", tmp_path / "commits")
    with pytest.raises(OffsetsUnreadable, match="cannot be read: No such file"):
        SparkSource(tmp_path)("orders")
