"""The footers of new files are read before a commit: those in an object store at the same time, others in turn."""

import threading
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_io.errors import Where
from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.ledger.committed_range import CommittedRange, ExactCause
from pipelines.ledger.slice_facts import DataFile, SliceFacts
from pipelines.table import written_files
from pipelines.table.exact_sets import store_exact
from pipelines.table.written_files import check_files
from resources.errors import FileRefused
from resources.stores import durable
from tests.pipelines.taken_out import rows_of

WHERE = Where(topic="clicks")


def written(folder: Path, number: int, *, rows: int = 2, claimed_rows: int = 2) -> SliceFacts:
    """The facts of a slice whose file has so many rows."""
    path = f"{number}.parquet"
    pq.write_table(pa.table({"value": list(range(rows))}), folder / path)
    file = DataFile(path=path, size=(folder / path).stat().st_size, rows=claimed_rows, stats={})
    offsets = OffsetRange(BrokerPartition(None, number), 0, rows)
    return SliceFacts(range=CommittedRange(offsets=offsets, rows=claimed_rows), files=(file,))


@pytest.mark.parametrize("is_local", [True, False])
@pytest.mark.parametrize("count", [1, 3])
def test_threads_read_footers_only_if_they_have_to_wait(
    count: int, is_local: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    footer_rows = written_files._footer_rows

    def noted(*arguments: object) -> object:
        threads.append(threading.get_ident())
        return footer_rows(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(written_files, "_footer_rows", noted)
    if not is_local:
        monkeypatch.setattr(durable, "local_path", lambda _: None)
    check_files(str(tmp_path), {}, WHERE, [written(tmp_path, number) for number in range(count)])
    assert len(threads) == count
    assert (set(threads) == {threading.get_ident()}) == (is_local or count == 1)


@pytest.mark.parametrize("count", [1, 3])
def test_a_file_with_other_rows_is_refused(count: int, tmp_path: Path) -> None:  # fault L07
    facts = [written(tmp_path, number) for number in range(count - 1)]
    with pytest.raises(FileRefused, match="holds 2 rows; its worker wrote 3"):
        check_files(str(tmp_path), {}, WHERE, [*facts, written(tmp_path, 7, claimed_rows=3)])


def test_a_missing_set_of_offsets_is_refused(tmp_path: Path) -> None:
    stored = store_exact(str(tmp_path), {}, rows_of(*range(0, 2_000, 3)))
    facts = written(tmp_path, 0)
    with_set = replace(facts, range=replace(facts.range, exact={ExactCause.FILTERED: stored}))
    check_files(str(tmp_path), {}, WHERE, [with_set])
    (tmp_path / stored.path).unlink()
    with pytest.raises(FileRefused, match=f"{stored.path} is not there"):
        check_files(str(tmp_path), {}, WHERE, [with_set])
