"""A table whose writes are answered wrongly."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from pipelines.loading.ledger import Entry, Range
from pipelines.loading.table_log import NoAnswer, Snapshot, TableLog
from pipelines.loading.work import Facts
from resources.errors import LakeUnavailable


@dataclass(slots=True)
class Unreliable:
    """A table whose writes are answered wrongly, each in its turn: lost after it landed, or not done at all."""

    table: TableLog
    landing: list[bool]
    error: type[Exception] = NoAnswer
    blind: bool = False
    synced: list[int] = field(default_factory=list)

    @property
    def uri(self) -> str:
        """The table's."""
        return self.table.uri

    def snapshot(self) -> Snapshot:
        """The table's, unless it cannot be seen."""
        if self.blind:
            raise LakeUnavailable("no answer")
        return self.table.snapshot()

    def entries(self, upto: Snapshot, *, after: int = -1) -> Iterator[tuple[int, Entry]]:
        """The table's."""
        return self.table.entries(upto, after=after)

    def check(self, files: Sequence[Facts]) -> None:
        """The table's."""
        self.table.check(files)

    def append(self, at: Snapshot, entry: Entry, files: Sequence[Facts]) -> int:
        """Write, or not, and give no answer."""
        return self._answer(lambda: self.table.append(at, entry, files))

    def held(self, at: Snapshot, pieces: Sequence[Range]) -> list[int]:
        """The table's."""
        return self.table.held(at, pieces)

    def replace(self, at: Snapshot, entry: Entry, pieces: Sequence[Range], files: Sequence[Facts]) -> int:
        """As `append`."""
        return self._answer(lambda: self.table.replace(at, entry, pieces, files))

    def restore(self, at: Snapshot, entry: Entry) -> int:
        """As `append`."""
        return self._answer(lambda: self.table.restore(at, entry))

    def sync(self, *, after: int) -> None:
        """The table's, told."""
        self.synced.append(after)
        self.table.sync(after=after)

    def _answer(self, write: Callable[[], int]) -> int:
        if not self.landing:
            return write()
        if self.landing.pop(0):
            write()
        raise self.error("connection reset by peer")
