"""A source is named by its kind."""

from pathlib import Path

import pytest

from kafka_io.client.opening import open_cluster
from kafka_io.errors import Unsupported
from pipelines.offsets.camus import CamusSource
from pipelines.offsets.handed import agreed, contents_of
from pipelines.offsets.portable import FileSource
from pipelines.offsets.sources import KINDS, GroupSource, parse_source
from pipelines.offsets.spark import SparkSource
from resources.errors import OffsetsUnreadable


@pytest.mark.parametrize("text", ["", "group", "group:", "nobody:x", "/a/path", ":x"])
def test_what_names_no_kind_is_refused_with_all_kinds(text: str) -> None:
    with pytest.raises(ValueError, match="is no source: give one of ") as refused:
        parse_source(text)
    assert all(f"{kind}:..." in str(refused.value) for kind in KINDS)


@pytest.mark.parametrize(
    ("text", "kind"),
    [("group:a:b", GroupSource), ("camus:c:/x", CamusSource), ("spark:x", SparkSource), ("file:x", FileSource)],
)
def test_each_kind_is_its_own_source(text: str, kind: type) -> None:
    with open_cluster("main", bootstrap="127.0.0.1:1") as cluster:
        assert isinstance(parse_source(text)(cluster), kind)


def test_a_source_that_the_cluster_cannot_have_says_so() -> None:
    with open_cluster("main", bootstrap="127.0.0.1:1") as cluster:
        with pytest.raises(Unsupported, match="keeps no offsets by zookeeper"):
            parse_source("zookeeper:x")(cluster)
        with pytest.raises(OffsetsUnreadable, match=r"reads clusters of 0\.7"):
            parse_source("hadoop:x")(cluster)


def test_a_file_that_is_too_large_is_no_file_of_offsets(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(65 * 1024 * 1024)
    with pytest.raises(OffsetsUnreadable, match="no file of offsets is as large"):
        contents_of(tmp_path / "large")


def test_nothing_told_is_nothing() -> None:
    assert agreed([]) == {}
