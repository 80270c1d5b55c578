"""Sources of offsets by their names."""

from pathlib import Path

import pytest

from kafka_io.cluster.opening import open_cluster
from kafka_io.errors import Unsupported
from pipelines.cursors import import_offsets
from pipelines.cursors.import_offsets import KINDS, parse_source
from pipelines.cursors.imported import merged, read_bytes
from resources.errors import OffsetsUnreadable


@pytest.mark.parametrize("text", ["", "group", "group:", "nobody:x", "/a/path", ":x"])
def test_text_without_a_kind_and_a_name_is_refused_with_all_kinds(text: str) -> None:
    with pytest.raises(ValueError, match="is not a source of offsets; give one of ") as refused:
        parse_source(text)
    assert all(f"{kind}:..." in str(refused.value) for kind in KINDS)


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("group:a:b", "group", "a:b"),
        ("camus:c:/x", "camus", "c:/x"),
        ("spark:x", "spark", "x"),
        ("file:x", "file", "x"),
    ],
)
def test_a_source_is_called_with_its_name(text: str, kind: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, str, str]] = []
    kinds = {known: lambda _cluster, name, topic, known=known: calls.append((known, name, topic)) for known in KINDS}
    monkeypatch.setattr(import_offsets, "KINDS", kinds)
    with open_cluster("main", bootstrap="127.0.0.1:1") as cluster:
        parse_source(text)(cluster, "clicks")
    assert calls == [(kind, name, "clicks")]


def test_a_source_that_the_cluster_cannot_have_is_refused() -> None:
    with open_cluster("main", bootstrap="127.0.0.1:1") as cluster:
        with pytest.raises(Unsupported, match="opened without a ZooKeeper"):
            parse_source("zookeeper:x")(cluster, "clicks")
        with pytest.raises(OffsetsUnreadable, match=r"reads only clusters of Kafka 0\.7"):
            parse_source("hadoop:x")(cluster, "clicks")


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(65 * 1024 * 1024)
    with pytest.raises(OffsetsUnreadable, match="too many for a file of offsets"):
        read_bytes(tmp_path / "large")


def test_no_entries_give_no_offsets() -> None:
    assert merged([], "clicks") == {}
