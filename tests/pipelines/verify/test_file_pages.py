"""Reading every page finds damage in a column that no count of rows reads, and names the file and the column."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.verify.file_pages import damaged_column
from pipelines.verify.verify import verify
from resources.stores.lake import filesystem

if TYPE_CHECKING:
    from tests.small_table import SmallTable

_ROWS = 3_000


def loaded(small: "SmallTable") -> Path:
    """Load values that a page has to store; returns the data file."""
    values = [b"value-%d-" % number * 5 for number in range(_ROWS)]
    columns: dict[str, Any] = {"offset": pa.array(range(_ROWS), pa.int64()), "value": pa.array(values)}
    facts: SliceFacts = small.write_columns(OffsetRange(BrokerPartition(0, 0), 0, _ROWS), columns)
    small.commit(facts)
    return Path(small.uri) / facts.files[0].path


def chunk_of(file: Path, name: str) -> pq.ColumnChunkMetaData:
    """The metadata of a column in the only row group of a file."""
    group = pq.read_metadata(file).row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    return next(column for column in columns if column.path_in_schema == name)


def flip(file: Path, name: str) -> None:
    """Change a byte near the end of the last page of a column."""
    chunk, content = chunk_of(file, name), bytearray(file.read_bytes())
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    content[start + chunk.total_compressed_size - 8] ^= 0x41
    file.write_bytes(content)


def test_a_damaged_page_of_values_is_found_where_every_page_is_read(small: "SmallTable") -> None:  # faults A14, N09
    file = loaded(small)
    flip(file, "value")
    short = verify(small.table)
    assert (short.proven, short.values_read) == (True, False)
    whole = verify(small.table, values=True)
    assert whole.values_read
    [problem] = whole.problems
    path = file.relative_to(small.uri)
    assert problem.startswith(f"the data file {path} is damaged in the column value (")
    assert "): move it away, and `penstock replay clicks --from earliest --to latest` fetches its rows again" in problem


@pytest.mark.parametrize("has_checksum", [False, True])
def test_a_page_that_still_decodes_is_found_by_its_checksum(has_checksum: bool, tmp_path: Path) -> None:  # fault A14
    """Without compression each byte of a value decodes."""
    file = tmp_path / "a.parquet"
    rows = pa.table({"value": [b"value-%d" % number for number in range(_ROWS)]})
    pq.write_table(rows, file, compression="none", use_dictionary=False, write_page_checksum=has_checksum)
    store = filesystem(str(tmp_path), {})
    assert damaged_column(store, file.name) is None
    flip(file, "value")
    damage = damaged_column(store, file.name)
    assert (damage is not None) == has_checksum
    assert damage is None or "CRC checksum" in damage


def test_a_table_without_damage_is_proven_with_its_values(small: "SmallTable") -> None:  # fault A14
    loaded(small)
    result = verify(small.table, values=True)
    assert (result.problems, result.values_read) == ((), True)


def test_each_page_that_penstock_writes_has_a_checksum(small: "SmallTable") -> None:  # fault A14
    file = loaded(small)
    for name in ("offset", "value"):
        content = bytearray(file.read_bytes())
        flip(file, name)
        with pytest.raises(OSError, match="CRC checksum"):
            pq.read_table(file, page_checksum_verification=True, partitioning=None)
        file.write_bytes(content)
