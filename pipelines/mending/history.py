"""History: what was ever done to a table, commit by commit, and which of it a rewind took back."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pipelines.loading.ledger import Entry, Range
from pipelines.loading.logged import Logged
from pipelines.loading.table import LakeTable
from resources.errors import TableMissing


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """One commit, as `logged`; `undone_by` is the version of the rewind that took it back.

    Numbers are those of the ranges that it tells: a replay and a cut tell the rest of what they replace again.
    """

    logged: Logged
    undone_by: int | None = None

    @property
    def entry(self) -> Entry | None:
        """What Penstock says of it; None for a commit of others."""
        return self.logged.entry

    @property
    def ranges(self) -> tuple[Range, ...]:
        """The ranges it tells."""
        return self.entry.ranges if self.entry else ()

    @property
    def rows(self) -> int:
        """Their rows."""
        return sum(one.rows for one in self.ranges)

    @property
    def bytes(self) -> int:
        """What they take of the log, see Facts."""
        return sum(one.bytes for one in self.ranges)

    @property
    def files(self) -> int:
        """The files that they were written to."""
        return len({one.path for one in self.ranges if one.path})

    @property
    def partitions(self) -> int:
        """How many partitions they are of."""
        return len({one.id for one in self.ranges})

    @property
    def gaps(self) -> Mapping[str, int]:
        """Offsets without a row, by cause."""
        return dict(sum((Counter(one.gaps) for one in self.ranges), Counter()))

    @property
    def sources(self) -> tuple[str, ...]:
        """The brokers they were read from."""
        return tuple(sorted({one.source for one in self.ranges if one.source}))

    @property
    def what(self) -> str:
        """What it did, in a word or two."""
        if self.entry is None:
            return self.logged.operation
        return f"rewind to {self.entry.target}" if self.entry.target is not None else str(self.entry.kind)

    @property
    def notes(self) -> tuple[str, ...]:
        """What else a person should see of it."""
        undone = (f"taken back by version {self.undone_by}",) if self.undone_by is not None else ()
        restored = (f"version {self.logged.restored}",) if self.logged.restored is not None else ()
        choices = map(str, self.entry.choices) if self.entry else ()
        sources = (f"from {', '.join(self.sources)}",) if self.sources else ()
        code = (f"by {self.entry.code}",) if self.entry else ()
        return (*undone, *restored, *choices, *sources, *code)

    def as_dict(self) -> dict[str, Any]:
        """As `penstock history --json` prints it; of a commit of others no more than the log tells."""
        logged, entry = self.logged, self.entry
        always = {
            "version": logged.version,
            "time": logged.time.isoformat(),
            "operation": logged.operation,
            "restored": logged.restored,
            "undone_by": self.undone_by,
            "kind": None,
        }
        if entry is None:
            return always
        names = ("kind", "run", "commit", "sequence", "code", "target")
        return {
            **always,
            **{name: getattr(entry, name) for name in names},
            "incarnation": entry.topic.incarnation,
            "rows": self.rows,
            "bytes": self.bytes,
            "files": self.files,
            "gaps": self.gaps,
            "sources": list(self.sources),
            "choices": [asdict(one) for one in entry.choices],
            "covered": {str(id_): list(span) for id_, span in sorted(entry.covered.items())},
            "ranges": [asdict(one) for one in entry.ranges],
        }


def history(table: LakeTable) -> Iterator[Past]:
    """The table's commits, newest first; the log is read as far as they are asked for.

    Raises:
        TableMissing: there is none.
        LoadError: the table cannot be read, or is not Penstock's.
    """
    at = table.newest()
    if at is None:
        raise TableMissing(f"there is no table {table.uri}", table.where)
    return with_rewinds(table.commits(at.version))


def with_rewinds(commits: Iterable[Logged]) -> Iterator[Past]:
    """Commits, newest first, each with the rewind that took it back; `live.effective` leaves the same ones out."""
    rewind, target = 0, None
    for one in commits:
        if target is not None and one.version > target:
            yield Past(logged=one, undone_by=rewind)
            continue
        yield Past(logged=one)
        if one.entry is not None:
            rewind, target = one.version, one.entry.target
