"""The result of `penstock rewrite`: the values that the command line prints."""

from dataclasses import dataclass

from pipelines.ledger.failure import Failable


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRewrite(Failable):
    """A result of `penstock rewrite`.

    Args:
        topic: the topic's name.
        table: the table's URI.
        version: the table's version afterwards.
        dry_run: whether nothing was to be changed.
        rows: the rows of the files that are written again.
        files: the number of files.
        changes: the fields and columns whose older rows the new rules change.
        seconds: how long it took.

    After a failure, nothing is changed, and a repeated run continues.
    """

    topic: str
    table: str
    version: int | None = None
    dry_run: bool = False
    rows: int = 0
    files: int = 0
    changes: tuple[str, ...] = ()
    seconds: float = 0.0
