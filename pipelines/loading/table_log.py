"""The interface of a table for commits: a snapshot, and a write that lands on exactly that snapshot or not at all.

`LakeTable` is the implementation. Simulations use another one whose store loses answers.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pipelines.loading.ledger import LedgerEntry, TableState, TopicIdentity
from pipelines.loading.work import CommittedRange, SliceFacts
from resources.errors import ClusterChanged, TopicRecreated


class CommitConflict(Exception):
    """Another writer was first; nothing of this write is visible."""


class CommitOutcomeUnknown(Exception):
    """The write failed, and whether it landed is not known (fault L03)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSnapshot:
    """One version of a table.

    Args:
        version: the version's number.
        entry: Penstock's newest entry in the log; None before the first.
        table_id: the id that the table got when it was created.
        mismatch: why the rows do not agree with the cursors of that entry. No load continues from such a table.
        handle: what the table needs to write on top of this version.
    """

    version: int
    entry: LedgerEntry | None
    table_id: str = ""
    mismatch: str | None = None
    handle: Any = field(default=None, repr=False, compare=False)

    @property
    def next_sequence(self) -> int:
        """The sequence number of a commit on top of this version."""
        return self.entry.sequence + 1 if self.entry else 1


class TableLog(Protocol):
    """One topic's table."""

    @property
    def uri(self) -> str:
        """The table's URI."""

    def snapshot(self) -> TableSnapshot:
        """The newest version. A table that does not exist is created.

        Raises:
            LoadError: the table cannot be read, or must not be written to.
        """

    def newer(self, snapshot: TableSnapshot) -> TableSnapshot:
        """The newest version of the table of `snapshot`, which is never created again.

        Raises:
            TableReplaced: the table was removed, or another table is in its place.
            LoadError: the table cannot be read, or must not be written to.
        """

    def entries(self, upto: TableSnapshot, *, after: int = -1) -> Iterator[tuple[int, LedgerEntry]]:
        """Version and entry of Penstock's commits in `(after, upto.version]`, newest first."""

    def check(self, files: Sequence[SliceFacts]) -> None:
        """Check that every file of `files` exists with the content that its worker wrote.

        Raises:
            FileRefused: a file is missing or different.
        """

    def count_rows(self, snapshot: TableSnapshot, ranges: Sequence[CommittedRange]) -> list[int]:
        """The number of rows that the table has of each range: with its partition, offsets and loading time."""

    def write(
        self, snapshot: TableSnapshot, entry: LedgerEntry, new: Sequence[SliceFacts], replaced: Sequence[CommittedRange]
    ) -> int:
        """Write `entry` on top of `snapshot`, with what its kind does to the rows; returns the version.

        A load adds the files of the `new` slices. A replay or a cut replaces the rows of the `replaced` ranges by those
        of the new slices: they are copied, and the log does not name these files. A rewind brings back the files of
        version `entry.target`.

        Raises:
            CommitConflict: another commit is on top of the snapshot already.
            CommitOutcomeUnknown: whether the entry landed is not known.
            TableReplaced: the table of the snapshot was removed, or another table is in its place.
        """

    def sync(self, *, after: int) -> None:
        """Make the versions above `after` survive a loss of power.

        Raises:
            CommitUnknown: they may not survive it.
        """


def table_state(
    snapshot: TableSnapshot, topic: TopicIdentity, aliases: Collection[str] = (), *, restart: bool = False
) -> TableState:
    """The table's state at this snapshot, for a load of `topic`.

    `aliases` are other names of the topic's incarnation (see `TopicEntry.also`). With `restart`, a table of a former
    incarnation covers nothing of the present one yet.

    Raises:
        ClusterChanged: the table's topic belongs to another cluster.
        TopicRecreated: the table holds another incarnation of the topic (faults B05, B06).
    """
    if snapshot.entry is None:
        return TableState(topic=topic)
    loaded = snapshot.entry.topic
    if loaded.cluster_id and topic.cluster_id and loaded.cluster_id != topic.cluster_id:
        raise ClusterChanged(
            f"the table holds a topic of the cluster {loaded.cluster_id}, but the settings lead to {topic.cluster_id}",
            topic.where,
        )
    if loaded.incarnation in {topic.incarnation, *aliases}:
        return TableState.after(snapshot.entry)
    if restart:
        return TableState(topic=topic, replaced=loaded.incarnation)
    raise TopicRecreated(
        f"the table holds incarnation {loaded.incarnation} of the topic, but the cluster has {topic.incarnation}; "
        'on_recreated = "restart" loads it into the same table, and keeps the rows of the former one',
        topic.where,
    )
