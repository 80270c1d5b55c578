"""The ledger of an Iceberg table: it outlives the snapshots of its commits, because every engine lets snapshots expire.

A table property has the newest entries, compressed, and the name of a file with those before them, which names the file
before it, and so on. Each commit sets the property in its one request, so that entries and rows land together. A file
is written when the entries in the property have become too long for one: it has them, and those of the file before it
if that was small. The commit names it, with its digest, and it never changes. It is in a folder that cleaners of orphan
files leave alone.

    property  = base64(zlib({"earlier": PATH, "digest": SHA-256, "records": [[VERSION, SNAPSHOT, MS, ENTRY], ...]}))
    each file =        zlib({"earlier": PATH, "digest": SHA-256, "records": [[VERSION, SNAPSHOT, MS, ENTRY], ...]})
"""

import base64
import hashlib
import json
import uuid
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from pipelines.ledger.ledger import LedgerEntry
from resources.errors import EntryUnknown, LogTorn
from resources.stores import durable
from resources.stores.lake import filesystem, write_file

LEDGER = "penstock.ledger"
"""The table property."""
LEDGER_FOLDER = "_ledger"
"""The folder inside a table for earlier entries. Readers and cleaners ignore names that begin with an underscore."""
_MAX_BYTES = 8 * 1024
"""How long the entries of a property become: each commit writes them again, and each reader reads them."""
_MAX_FILE_BYTES = 256 * 1024
"""How long a file becomes before the next one begins: whoever needs all entries reads one file after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRecord:
    """An entry with the snapshot that committed it.

    Args:
        version: the sequence number of the snapshot.
        snapshot_id: the id of the snapshot.
        time_ms: when it was committed, in ms since 1970.
        text: the entry as JSON.
    """

    version: int
    snapshot_id: int
    time_ms: int
    text: str

    def entry(self) -> LedgerEntry:
        """The entry.

        Raises:
            EntryUnknown: a newer Penstock wrote it, or it is damaged.
        """
        try:
            return LedgerEntry.from_json(self.text)
        except EntryUnknown as error:
            raise EntryUnknown(f"{error.reason} (version {self.version} of the table)") from error.__cause__


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLedger:
    """The entries of a table, or of a file with earlier ones.

    Args:
        records: the newest ones, oldest first.
        earlier: the path of the file with those before them, relative to the table; empty if there are none.
        digest: the SHA-256 of this file.
        stored: the bytes from which it was read.
    """

    records: tuple[LedgerRecord, ...] = ()
    earlier: str = ""
    digest: str = ""
    stored: bytes = field(default=b"", repr=False, compare=False)

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> "StoredLedger":
        """The ledger in the properties of a table; an empty one if they have none.

        Raises:
            EntryUnknown: the property is damaged.
        """
        text = properties.get(LEDGER)
        try:
            return cls() if text is None else cls._decoded(base64.b64decode(text))
        except (ValueError, TypeError, KeyError, zlib.error) as error:
            raise EntryUnknown(f"the property {LEDGER} of the table is damaged: {error}") from error

    @classmethod
    def _decoded(cls, stored: bytes) -> "StoredLedger":
        content = json.loads(zlib.decompress(stored))
        records = (
            LedgerRecord(version=version, snapshot_id=snapshot, time_ms=ms, text=text)
            for version, snapshot, ms, text in content["records"]
        )
        return cls(records=tuple(records), earlier=content["earlier"], digest=content["digest"], stored=stored)

    def encoded(self) -> bytes:
        """The bytes that a property or a file stores."""
        records = [[record.version, record.snapshot_id, record.time_ms, record.text] for record in self.records]
        content = {"earlier": self.earlier, "digest": self.digest, "records": records}
        return zlib.compress(json.dumps(content).encode())

    def plus(self, record: LedgerRecord, uri: str, options: Mapping[str, str]) -> Mapping[str, str]:
        """The property with one more entry. If the entries are long, those before it are written into a file.

        Raises:
            OSError: the store does not take the file.
        """
        stored = replace(self, records=(*self.records, record)).encoded()
        if self.records and len(stored) > _MAX_BYTES:
            path = f"{LEDGER_FOLDER}/{record.version:020d}-{uuid.uuid4().hex}.json.zlib"
            content = self._for_file(uri, options)
            write_file(filesystem(uri, options), path, content)
            durable.sync_file(uri, path)
            digest = hashlib.sha256(content).hexdigest()
            stored = StoredLedger(records=(record,), earlier=path, digest=digest).encoded()
        return {LEDGER: base64.b64encode(stored).decode()}

    def _for_file(self, uri: str, options: Mapping[str, str]) -> bytes:
        """The content of a file with these entries, and with those of the file before it as long as that is small.

        If that is missing or damaged, the new file only names it, so that loads continue.
        """
        with suppress(LogTorn):
            if self.earlier and len((before := self.read_earlier(uri, options)).stored) < _MAX_FILE_BYTES:
                return replace(before, records=(*before.records, *self.records)).encoded()
        return self.stored

    def files(self, uri: str, options: Mapping[str, str]) -> set[str]:
        """The paths of all files of the ledger, relative to the table. Raises as `newest_first`."""
        paths, ledger = set[str](), self
        while ledger.earlier:
            paths.add(ledger.earlier)
            ledger = ledger.read_earlier(uri, options)
        return paths

    def newest_first(self, uri: str, options: Mapping[str, str]) -> Iterator[LedgerRecord]:
        """All entries of the table, newest first. A file is read when its entries are asked for.

        Raises:
            LogTorn: a file is missing or damaged.
        """
        ledger = self
        while True:
            yield from reversed(ledger.records)
            if not ledger.earlier:
                return
            ledger = ledger.read_earlier(uri, options)

    def read_earlier(self, uri: str, options: Mapping[str, str]) -> "StoredLedger":
        """The entries before these. Raises as `newest_first`."""
        try:
            with filesystem(uri, options).open_input_file(self.earlier) as file:
                stored = bytes(file.read())
        except FileNotFoundError as error:
            raise LogTorn(f"the file {self.earlier} of the table {uri} is gone: it has the table's ledger") from error
        if hashlib.sha256(stored).hexdigest() != self.digest:
            raise LogTorn(f"the file {self.earlier} of the table {uri} is damaged: it has the table's ledger")
        return self._decoded(stored)
