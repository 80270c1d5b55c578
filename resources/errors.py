"""Errors of the lake and of a load. Like those of kafka_io, each has its location (topic, partition ...) as data."""

from typing import Self

from kafka_io.errors import LocatedError, Where, system_reason

_UNEXPECTED = "an unexpected error; `penstock --debug` with the same command shows its details"


def sentence_of(error: BaseException) -> str:
    """The sentence about an error, without its place. It contains no text of other programs (fault U11).

    Our own errors are sentences already. The details of others are in their stack trace, which `--debug` shows.
    """
    if isinstance(error, LocatedError):
        return error.reason
    if isinstance(error, OSError) and error.errno:
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{system_reason(error)}"
    return _UNEXPECTED


class LoadError(LocatedError):
    """A topic cannot be loaded, or not completely."""


class TopicUnknown(LoadError):
    """The cluster has no such topic, or the settings do not allow it."""


class CursorExpired(LoadError):
    """Retention removed offsets that were not loaded."""


class CursorAheadOfLog(LoadError):
    """The log ends before the committed cursor: it was truncated, or the topic was deleted and created again."""


class LogTruncated(LoadError):
    """The log differs from the loaded rows: it was truncated, for example by an unclean election, and written again."""


class OffsetsMissing(LoadError):
    """The log lacks offsets that were not loaded, and compaction does not explain it."""


class ExtraMissing(LoadError):
    """A package that a command or a load needs is not installed. The message names the extra that brings it."""


class MetricsNotWritten(LocatedError):
    """Metrics could not be written to a file, or sent to a Pushgateway."""

    retriable = True


class EventTimeUnknown(LoadError):
    """The table records no event time, because the settings of its topic do not ask for it."""


class AuditUnknown(LoadError):
    """The counts of producers, with which a table is compared, are missing, or are not in the form of counts."""


class BadRecords(LoadError):
    """More records do not decode than the settings of the topic allow."""


class TooManyColumns(LoadError):
    """The keys of the values need more columns than a table may have."""


class SchemaChanged(LoadError):
    """A registry has another schema with an id than the one that has decoded rows of the table."""


class RulesChanged(LoadError):
    """The rules of the settings would put values of two meanings into one column of the table."""


class RoutesChanged(LoadError):
    """The settings would put records of a topic into other tables than those that have the earlier ones."""


class RouteUnknown(LoadError):
    """A record has a type for which the settings of its topic name no table."""


class TooManySkipped(LoadError):
    """The condition `skip` leaves out a larger share of the records than the settings of the topic allow."""


class RewriteRefused(LoadError):
    """The rows of a table cannot be stored again by the rules of the settings. Nothing has changed."""


class FormatChanged(LoadError):
    """The settings want a raw table where a typed one is, or the other way round."""


class LayoutChanged(LoadError):
    """The settings want other folders than the table has."""


class LayoutRefused(LoadError):
    """The column that the settings name for the folders of a table has no day."""


class TableNotProven(LoadError):
    """The rows of a table are not what its commits say, or they could not be checked."""


class CursorMismatch(LoadError):
    """The cursor of the table and its newest commit do not agree."""


class ClusterChanged(LoadError):
    """The table holds a topic of another cluster than the one in the settings."""


class PartitionsVanished(LoadError):
    """The cluster has fewer partitions of the topic than the table."""


class TopicRecreated(LoadError):
    """The table holds another incarnation of the topic."""


class CommitRefused(LoadError):
    """Another run moved the cursor first. Nothing of this run is visible."""

    retriable = True


class CommitUnknown(LoadError):
    """The commit call failed, and the table cannot be read to find out whether the commit succeeded."""

    retriable = True


class RewindRefused(LoadError):
    """The table cannot go back to the requested version. Nothing has changed."""


class ReplayRefused(LoadError):
    """The interval cannot be replayed. Nothing has changed."""


class RedecodeRefused(LoadError):
    """The records of a table cannot be decoded again from what the table keeps of them."""


class ConditionInvalid(LoadError):
    """A condition on rows cannot be understood, or does not fit the columns of the table."""


class EraseRefused(LoadError):
    """Rows cannot be erased as requested."""


class ErasedSince(RewindRefused):
    """A rewind would bring back rows that were erased."""


class OffsetsUnreadable(LoadError):
    """The offsets of another loader are missing, or their file has other contents."""


class ImportRefused(LoadError):
    """A table cannot begin at the offsets of another loader. Nothing has changed."""


class FileRefused(LoadError):
    """A data file of a commit is missing, or differs from what the worker wrote."""


class LakeUnavailable(LoadError):
    """The store of the lake cannot be read or written."""

    retriable = True


class LakeRefused(LakeUnavailable):
    """The store of the lake or the table refuses a request, and would refuse it again."""

    retriable = False


class LogTorn(LakeUnavailable):
    """An entry of a Delta log is incomplete. Only the entries before it can be trusted."""

    retriable = False


class StoreUnsafe(LoadError):
    """The store of the lake replaces objects that must be created only once, so commits could be lost."""


class TableReplaced(LoadError):
    """The table on which a load was planned is gone, or another table is in its place."""


class TableMissing(LoadError):
    """The topic has no table."""


class TableLost(LoadError):
    """The topic was loaded before, but the lake has no rows of it."""

    @classmethod
    def of_one(cls, uri: str, where: Where) -> Self:
        """The error if one of several tables of a topic has no rows."""
        return cls(
            f"the table {uri} has no rows, but the topic was loaded into it before: put it back, or load all tables of "
            "the topic again",
            where,
        )


class TableForeign(LoadError):
    """The folder of the topic holds a table that Penstock did not create."""


class EntryUnknown(LoadError):
    """A commit of the table has a ledger entry that this version of Penstock does not know."""


class ExactSetLost(LoadError):
    """A set of offsets without rows, which the ledger names, is missing or damaged."""


class SparkFailed(LoadError):
    """Spark could not run the load, or one of its tasks failed too often."""

    retriable = True


class IncrementOvertaken(LoadError):
    """Another process of the same consumer has committed first. Nothing of this increment is in the output."""

    retriable = True


class RowsReplaced(LoadError):
    """The source has replaced or removed rows that the consumer has seen, and the consumer chose to fail then."""


class RowsRetired(LoadError):
    """Rows that the consumer has not seen yet are retired, and the consumer chose to fail then."""


class SourceChanged(LoadError):
    """The source is another table, or an older copy, than the one whose rows are in the output."""


class SourceLogCleaned(LoadError):
    """The log of the source lacks entries that are needed to tell what is new since the consumer looked last."""


class SourceFilesCleaned(LoadError):
    """A data file of an old version of the source was deleted, so its removed rows cannot be read any more."""


class OutputRefused(LoadError):
    """The output cannot take the increment. Nothing of it is in the output."""


class OutputBusy(LoadError):
    """Another process has the output open, has locked it, or creates it."""

    retriable = True
