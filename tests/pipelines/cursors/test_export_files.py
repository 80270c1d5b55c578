"""Files of `penstock offsets export`: they can be imported again, and other files are refused."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from kafka_io.model import BrokerPartition
from pipelines.cursors.export import ExportedCursor, exported_offsets, to_csv
from resources.errors import OffsetsUnreadable

IDS = (BrokerPartition(None, 0), BrokerPartition(None, 11), BrokerPartition(2, 3))
CURSORS = [
    ExportedCursor(cluster="main", topic=topic, broker=id_.broker, partition=id_.partition, offset=7)
    for topic in ("clicks", 'odd, "name"')
    for id_ in IDS
]


def test_the_csv_has_the_form_of_kafkas_tools() -> None:
    assert to_csv(CURSORS[:2]) == "clicks,0,7\nclicks,11,7\n"
    assert to_csv([]) == ""


@pytest.mark.parametrize("topic", ["clicks", 'odd, "name"'])
@pytest.mark.parametrize("form", ["json", "csv"])
def test_exported_cursors_can_be_imported(form: str, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "offsets"
    file.write_text(to_csv(CURSORS) if form == "csv" else json.dumps([asdict(cursor) for cursor in CURSORS]))
    assert exported_offsets(file, topic, cluster="main") == dict.fromkeys(IDS, 7)
    assert exported_offsets(file, "nothing", cluster="main") == {}


def test_a_file_that_an_earlier_version_exported_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text(
        """[
  {"cluster": "main", "topic": "clicks", "broker": null, "partition": 0, "offset": 7},
  {"cluster": "main", "topic": "clicks", "broker": 2, "partition": 3, "offset": -1}
]"""
    )
    expected = {BrokerPartition(None, 0): 7, BrokerPartition(2, 3): None}
    assert exported_offsets(tmp_path / "file", "clicks", cluster="main") == expected


def test_offsets_of_another_cluster_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "file").write_text(json.dumps([asdict(cursor) for cursor in CURSORS]))
    assert exported_offsets(tmp_path / "file", "clicks", cluster="other") == {}


@pytest.mark.parametrize(
    "text",
    [
        "clicks,0",
        "clicks,zero,1",
        "clicks,0,one",
        "clicks,0,1\nclicks,0,2",
        "[",
        "[1]",
        '[{"cluster": "main"}]',
        '[{"cluster":"main","topic":"clicks","broker":null,"partition":"x","offset":1}]',
        "clicks,0,\u0661",
        '[{"cluster":"main","topic":"clicks","broker":null,"partition":0,"offset":true}]',
    ],
)
def test_other_contents_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(OffsetsUnreadable):
        exported_offsets(tmp_path / "file", "clicks", cluster="main")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(OffsetsUnreadable, match="none cannot be read: no such file"):
        exported_offsets(tmp_path / "none", "clicks", cluster="main")
    (tmp_path / "bytes").write_bytes(b"\xff")
    with pytest.raises(OffsetsUnreadable, match="is not UTF-8"):
        exported_offsets(tmp_path / "bytes", "clicks", cluster="main")
