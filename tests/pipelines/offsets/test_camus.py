"""Camus's history gives where its newest run ended."""

from pathlib import Path

import pytest

from kafka_io.model import BrokerPartition
from pipelines.offsets.camus import CamusSource, keys_in
from resources.errors import OffsetsUnreadable
from tests.pipelines.offsets.written import camus_file, etl_key, record, sequence_file

P0, P1 = BrokerPartition(None, 0), BrokerPartition(None, 1)


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """Two runs; the files of the newer one tell where it began and where it ended."""
    runs = {
        "2014-03-01-10-00-00": {"offsets-m-00000": [etl_key("clicks", 0, 999)]},
        "2014-03-02-10-00-00": {
            "offsets-previous": [etl_key("clicks", 0, 100), etl_key("clicks", 1, 50)],
            "offsets-m-00000": [etl_key("clicks", 0, 150, extra=b"\x01"), etl_key("views", 0, 7)],
            "offsets-m-00001": [etl_key("clicks", 0, 120)],
        },
    }
    for run, files in runs.items():
        (tmp_path / run).mkdir()
        for name, keys in files.items():
            (tmp_path / run / name).write_bytes(camus_file(*keys))
        (tmp_path / run / "requests.previous").write_bytes(b"not looked at")
    (tmp_path / ".tmp").mkdir()
    return tmp_path


@pytest.mark.parametrize("run", ["", "2014-03-02-10-00-00"])
def test_the_largest_offset_of_the_newest_run_counts(run: str, history: Path) -> None:
    source = CamusSource(history / run, with_brokers=False)
    assert source("clicks") == {P0: 150, P1: 50}
    assert source("views") == {P0: 7}
    assert source("nothing") == {}


def test_in_0_7_partitions_have_brokers(tmp_path: Path) -> None:
    file = tmp_path / "offsets-m-00000"
    file.write_bytes(camus_file(etl_key("clicks", 0, 57, broker="3"), etl_key("clicks", 0, 44, broker="0")))
    found = CamusSource(file, with_brokers=True)("clicks")
    assert found == {BrokerPartition(3, 0): 57, BrokerPartition(0, 0): 44}
    file.write_bytes(camus_file(etl_key("clicks", 0, 57, broker="host")))
    with pytest.raises(OffsetsUnreadable, match="'host' is no broker"):
        CamusSource(file, with_brokers=True)("clicks")


def test_what_is_not_of_camus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OffsetsUnreadable, match="there is no file offsets-"):
        CamusSource(tmp_path, with_brokers=False)("clicks")
    with pytest.raises(OffsetsUnreadable, match=r"keys of java\.lang\.Long"):
        keys_in(sequence_file(key="java.lang.Long"), "file")
    with pytest.raises(OffsetsUnreadable, match="is cut short"):
        keys_in(sequence_file(record(etl_key("clicks", 0, 1)[:20])), "file")
    with pytest.raises(OffsetsUnreadable, match="partition 0 at offset -1"):
        keys_in(sequence_file(record(etl_key("clicks", 0, -1))), "file")
