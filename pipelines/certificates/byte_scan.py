"""Searches every byte below a folder of a table for what was erased: the values of a request, and its offsets.

Parquet files are searched page by page, decompressed, and everything between their pages as well. Their rows are
compared with the condition and with the erased offsets. All other objects are searched as bytes: commit
files, notes, checksums, sets of offsets, and kept bytes of batches and messages, also decompressed.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from pipelines.certificates.erased_rows import ErasedOffsets
from pipelines.certificates.kept_bytes import decompressed_contents
from pipelines.certificates.parquet_pages import searched_parts
from pipelines.certificates.searched_texts import NotSearchable, SearchedTexts
from pipelines.fetch.unreadable import QUARANTINE_FOLDER
from pipelines.layout.conditions import BoundCondition, Condition
from pipelines.layout.layout import RAW, TYPED, TableLayout
from pipelines.table.lake_table import LakeTable
from pipelines.verify.row_counts import IDENTIFYING
from resources.errors import ConditionInvalid
from resources.stores.lake import each_of, files_below, filesystem, lake_errors

_PARQUET = ".parquet"
_SCANS_AT_ONCE = 8
_ROWS_AT_ONCE = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteHit:
    """A place where something of a request was found. It has no value.

    Args:
        path: the object, relative to the table.
        place: where in the object.
    """

    path: str
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedFolder:
    """The result of searching a folder.

    Args:
        objects: the number of objects that were searched.
        bytes: their size.
        hits: what was found.
        unsearched: objects of which a part could not be searched.
    """

    objects: int = 0
    bytes: int = 0
    hits: tuple[ByteHit, ...] = ()
    unsearched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderScan:
    """A search for the rows of one request.

    Args:
        texts: the texts of the request.
        condition: the rows of the request; None if it is not known.
        erased: the offsets of the request.
    """

    texts: SearchedTexts = field(default_factory=SearchedTexts)
    condition: Condition | None = field(default=None, repr=False)
    erased: ErasedOffsets = field(default_factory=ErasedOffsets)

    def run(self, table: LakeTable, *, proven: Collection[str] = ()) -> ScannedFolder:
        """Search everything below the folder of a table.

        Args:
            table: the table.
            proven: data files that have no row with an erased offset, as a proof of the table says.

        Raises:
            LakeUnavailable: the store does not answer.
        """
        with lake_errors(table.uri):
            files = filesystem(table.uri, table.lake.options)
            infos = sorted(files_below(table.uri, files, ""), key=lambda info: str(info.path))
            scan = partial(self._scanned, files, frozenset(proven))
            parts = list(each_of(table.uri, scan, infos, at_once=_SCANS_AT_ONCE))
        return ScannedFolder(
            objects=len(infos),
            bytes=sum(info.size for info in infos),
            hits=tuple(dict.fromkeys(hit for part in parts for hit in part.hits)),
            unsearched=tuple(path for part in parts for path in part.unsearched),
        )

    def _scanned(self, files: pafs.FileSystem, proven: Collection[str], info: pafs.FileInfo) -> ScannedFolder:
        places: dict[str, None] = {}
        unsearched: tuple[str, ...] = ()
        try:
            with files.open_input_file(info.path) as file:
                for place in self._places(file, info.path, is_proven=info.path in proven):
                    places[place] = None
        except FileNotFoundError:  # it was deleted after it was listed
            return ScannedFolder()
        except NotSearchable:
            unsearched = (info.path,)
        return ScannedFolder(
            hits=tuple(ByteHit(path=info.path, place=place) for place in places), unsearched=unsearched
        )

    def _places(self, file: pa.NativeFile, path: str, *, is_proven: bool) -> Iterator[str]:
        if self.texts.in_bounds(path.encode()):
            yield "its path"
        if path.endswith(_PARQUET):
            yield from self._places_in_parquet(file)
            yield from self._places_in_rows(file, is_proven=is_proven)
        else:
            content = file.read()
            if self.texts.in_bounds(content):
                yield "its bytes"
            if path.startswith(f"{QUARANTINE_FOLDER}/"):
                kept = decompressed_contents(path.rpartition("/")[2], content)
                if any(map(self.texts.in_record, kept)):
                    yield "its records"

    def _places_in_parquet(self, file: pa.NativeFile) -> Iterator[str]:
        for column, content in searched_parts(file) if self.texts.count else ():
            if column is None and self.texts.in_bounds(content):
                yield "bounds or names of columns"
            elif column is not None and self.texts.in_record(content):
                has_name = self.texts.in_bounds(column.encode())
                yield "a column with a value in its name" if has_name else f"the column {column}"

    def _places_in_rows(self, file: pa.NativeFile, *, is_proven: bool) -> Iterator[str]:
        try:
            opened = pq.ParquetFile(file)
            schema = opened.schema_arrow
            layout = _layout_of(schema)
            identifying = [layout.name(name) for name in IDENTIFYING] if layout and not is_proven else []
            condition = _bound(self.condition, schema, layout)
            columns = list(dict.fromkeys([*identifying, *(condition.columns if condition else ())]))
            erased = matched = 0
            for rows in opened.iter_batches(_ROWS_AT_ONCE, columns=columns) if columns else ():
                erased += self.erased.count_in(rows.select(identifying)) if identifying else 0
                matched += condition.mask(rows).true_count if condition else 0
        except (pa.ArrowException, OSError) as error:
            raise NotSearchable("the rows cannot be read") from error
        if erased:
            yield f"{erased} rows with erased offsets"
        if matched:
            yield f"{matched} rows of the request"


def _bound(condition: Condition | None, schema: pa.Schema, layout: TableLayout | None) -> BoundCondition | None:
    """The condition for the rows of one file; None if the file has no rows of the table, or not its columns."""
    if condition is None or layout is None:
        return None
    try:
        return condition.bound(schema, layout.name("headers"))
    except ConditionInvalid:  # a file from before its columns, or before the table became typed
        return None


def _layout_of(schema: pa.Schema) -> TableLayout | None:
    """The layout of a data file; None for other Parquet files."""
    for layout in (TYPED, RAW):
        if {layout.name(name) for name in IDENTIFYING} <= set(schema.names):
            return layout
    return None
