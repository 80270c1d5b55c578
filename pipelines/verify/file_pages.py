"""Reads each page of each column of data files once, to find damage that no count of rows shows (fault A14).

A damaged page does not decompress, does not decode, or does not match its checksum. Penstock writes a checksum with
each page; files that other programs or earlier versions wrote may have none.
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

_ROWS_AT_ONCE = 4_096
_BUFFER_BYTES = 1024 * 1024


def damaged_column(store: pafs.FileSystem, path: str) -> str | None:
    """The first column of the file that cannot be read as it was written, and why; None if there is none.

    One column is read at a time, and a few rows of it, so the memory does not grow with the file.

    Raises:
        OSError: the store does not answer.
    """
    with store.open_input_file(path) as stream:
        try:
            file = pq.ParquetFile(stream, page_checksum_verification=True, buffer_size=_BUFFER_BYTES, pre_buffer=False)
        except pa.ArrowException as error:
            return f"the footer ({_reason(error)})"
        return next(_damaged(file), None)


def _damaged(file: pq.ParquetFile) -> Iterator[str]:
    for name in file.schema_arrow.names:
        try:
            rows = 0
            for batch in file.iter_batches(_ROWS_AT_ONCE, columns=[name], use_threads=False):
                batch.validate(full=True)
                rows += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            if not _is_damage(error):
                raise
            yield f"the column {name} ({_reason(error)})"
        else:
            if rows != file.metadata.num_rows:
                yield f"the column {name} (it has {rows} values for {file.metadata.num_rows} rows)"


def _is_damage(error: Exception) -> bool:
    """Whether an error is about the bytes of a file. Arrow also raises OSError, without a number, for damaged pages."""
    return isinstance(error, pa.ArrowException) or getattr(error, "errno", None) is None


def _reason(error: Exception) -> str:
    return str(error).splitlines()[0].strip().rstrip(".")[:200] if str(error) else type(error).__name__
