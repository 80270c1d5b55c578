"""Import of offsets from the execution history of Camus: those of the newest run."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_io.model import BrokerPartition
from pipelines.cursors.camus import camus_offsets, keys_in
from resources.errors import OffsetsUnreadable
from tests.pipelines.cursors.written import camus_file, etl_key, record, sequence_file

P0, P1 = BrokerPartition(None, 0), BrokerPartition(None, 1)
MODERN: Any = SimpleNamespace(partitions_have_brokers=False)
V07: Any = SimpleNamespace(partitions_have_brokers=True)


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """An execution history of two runs. The newer run has files with the offsets where it began and where it ended."""
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
        (tmp_path / run / "requests.previous").write_bytes(b"not read")
    (tmp_path / ".tmp").mkdir()
    return tmp_path


@pytest.mark.parametrize("run", ["", "2014-03-02-10-00-00"])
def test_the_largest_offset_of_the_newest_run_is_imported(run: str, history: Path) -> None:
    assert camus_offsets(MODERN, history / run, "clicks") == {P0: 150, P1: 50}
    assert camus_offsets(MODERN, history / run, "views") == {P0: 7}
    assert camus_offsets(MODERN, history / run, "nothing") == {}


def test_a_partition_of_0_7_has_the_broker_of_its_key(tmp_path: Path) -> None:
    file = tmp_path / "offsets-m-00000"
    file.write_bytes(camus_file(etl_key("clicks", 0, 57, broker="3"), etl_key("clicks", 0, 44, broker="0")))
    assert camus_offsets(V07, file, "clicks") == {BrokerPartition(3, 0): 57, BrokerPartition(0, 0): 44}
    file.write_bytes(camus_file(etl_key("clicks", 0, 57, broker="host")))
    with pytest.raises(OffsetsUnreadable, match="'host' is not a broker id"):
        camus_offsets(V07, file, "clicks")


def test_files_that_camus_did_not_write_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OffsetsUnreadable, match="there is no file offsets-"):
        camus_offsets(MODERN, tmp_path, "clicks")
    with pytest.raises(OffsetsUnreadable, match=r"its keys are of the class java\.lang\.Long"):
        keys_in(sequence_file(key="java.lang.Long"), "file")
    with pytest.raises(OffsetsUnreadable, match=r"file is damaged: .* bytes needed"):
        keys_in(sequence_file(record(etl_key("clicks", 0, 1)[:20])), "file")
    with pytest.raises(OffsetsUnreadable, match="partition 0 at offset -1"):
        keys_in(sequence_file(record(etl_key("clicks", 0, -1))), "file")
