"""The result of `penstock erase`: the values that the command line prints. None of them is a value of a row."""

from dataclasses import dataclass

from pipelines.ledger.failure import Failable


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedRows:
    """The rows of one partition that were erased; in a dry run, those that would be."""

    broker: int | None
    partition: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicErase(Failable):
    """A result of `penstock erase`.

    Args:
        topic: the topic's name.
        table: the table's URI.
        request: the request for which the rows were erased; `--certificate` takes it.
        version: the table's version afterwards.
        dry_run: whether nothing was to be changed.
        rows: the number of erased rows.
        found_in_bytes: how many of them only a search in undecoded bytes, keys and headers has found.
        files: the number of data files that had such rows.
        searched: the number of data files that were searched.
        partitions: the partitions with such rows.
        reasons: why rows are missing, if missing rows were recorded.
        gaps: how many other offsets without a row count as erased now, because nobody can tell them from missing rows.
        seconds: how long it took.
    """

    topic: str
    table: str
    request: str = ""
    version: int | None = None
    dry_run: bool = False
    rows: int = 0
    found_in_bytes: int = 0
    files: int = 0
    searched: int = 0
    partitions: tuple[ErasedRows, ...] = ()
    reasons: tuple[str, ...] = ()
    gaps: int = 0
    seconds: float = 0.0
