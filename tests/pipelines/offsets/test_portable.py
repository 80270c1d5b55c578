"""What we print we read back, and nothing else."""

import json
from pathlib import Path

import pytest

from kafka_io.model import BrokerPartition
from pipelines.offsets.portable import Cursor, FileSource, to_csv
from resources.errors import OffsetsUnreadable

IDS = (BrokerPartition(None, 0), BrokerPartition(None, 11), BrokerPartition(2, 3))
CURSORS = [Cursor(cluster="main", topic=topic, id=id_, offset=7) for topic in ("clicks", 'odd, "name"') for id_ in IDS]


def test_kafkas_tools_know_the_lines() -> None:
    assert to_csv(CURSORS[:2]) == "clicks,0,7\nclicks,11,7\n"
    assert to_csv([]) == ""


@pytest.mark.parametrize("topic", ["clicks", 'odd, "name"'])
@pytest.mark.parametrize("form", ["json", "csv"])
def test_what_is_exported_comes_back(form: str, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "offsets"
    file.write_text(to_csv(CURSORS) if form == "csv" else json.dumps([one.as_dict() for one in CURSORS]))
    assert FileSource(file, cluster="main")(topic) == dict.fromkeys(IDS, 7)
    assert FileSource(file, cluster="main")("nothing") == {}


def test_offsets_of_another_cluster_are_not_of_this_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text(json.dumps([one.as_dict() for one in CURSORS]))
    assert FileSource(tmp_path / "file", cluster="other")("clicks") == {}


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
def test_what_was_not_exported_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(OffsetsUnreadable):
        FileSource(tmp_path / "file", cluster="main")("clicks")


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(OffsetsUnreadable, match="none cannot be read: No such file"):
        FileSource(tmp_path / "none", cluster="main")("clicks")
    (tmp_path / "bytes").write_bytes(b"\xff")
    with pytest.raises(OffsetsUnreadable, match="is not UTF-8"):
        FileSource(tmp_path / "bytes", cluster="main")("clicks")
