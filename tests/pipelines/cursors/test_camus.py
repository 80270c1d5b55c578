"""Import of offsets from the execution history of Camus: those of the newest run."""

from pathlib import Path

import pytest

from kafka_io.model import BrokerPartition
from pipelines.cursors.camus import keys_in, offsets_in
from resources.errors import OffsetsUnreadable
from tests.pipelines.cursors.written import camus_file, etl_key, record, sequence_file

P0, P1 = BrokerPartition(None, 0), BrokerPartition(None, 1)


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
    assert offsets_in(history / run, "clicks", with_brokers=False) == {P0: 150, P1: 50}
    assert offsets_in(history / run, "views", with_brokers=False) == {P0: 7}
    assert offsets_in(history / run, "nothing", with_brokers=False) == {}


def test_a_partition_of_0_7_has_the_broker_of_its_key(tmp_path: Path) -> None:
    file = tmp_path / "offsets-m-00000"
    file.write_bytes(camus_file(etl_key("clicks", 0, 57, broker="3"), etl_key("clicks", 0, 44, broker="0")))
    assert offsets_in(file, "clicks", with_brokers=True) == {BrokerPartition(3, 0): 57, BrokerPartition(0, 0): 44}
    file.write_bytes(camus_file(etl_key("clicks", 0, 57, broker="host")))
    with pytest.raises(OffsetsUnreadable, match="'host' is not a broker id"):
        offsets_in(file, "clicks", with_brokers=True)


def test_files_that_camus_did_not_write_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OffsetsUnreadable, match="there is no file offsets-"):
        offsets_in(tmp_path, "clicks", with_brokers=False)
    with pytest.raises(OffsetsUnreadable, match=r"its keys are of the class java\.lang\.Long"):
        keys_in(sequence_file(key="java.lang.Long"), "file")
    with pytest.raises(OffsetsUnreadable, match="is cut short"):
        keys_in(sequence_file(record(etl_key("clicks", 0, 1)[:20])), "file")
    with pytest.raises(OffsetsUnreadable, match="partition 0 at offset -1"):
        keys_in(sequence_file(record(etl_key("clicks", 0, -1))), "file")
