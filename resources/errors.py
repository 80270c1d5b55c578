"""Errors of the lake and of a load, each with its place as data, like those of kafka_io."""

from kafka_io.errors import PlacedError


class LoadError(PlacedError):
    """A topic cannot be loaded, or not in full."""


class TopicUnknown(LoadError):
    """The registry has no such topic, or the settings do not allow it."""


class CursorExpired(LoadError):
    """Retention removed offsets that no run has committed."""


class CursorAheadOfLog(LoadError):
    """The log ends before the committed cursor: it was truncated, or the topic was made anew."""


class LogTruncated(LoadError):
    """What was loaded is no longer what the log holds: it was cut, as in an unclean election, and written anew."""


class CursorStrayed(LoadError):
    """The table's cursor and its newest commit do not agree."""


class ClusterChanged(LoadError):
    """The settings lead to another cluster than the one whose topic the table holds."""


class PartitionsVanished(LoadError):
    """The cluster has fewer partitions of the topic than the table."""


class TopicRecreated(LoadError):
    """The table holds another incarnation of the topic."""


class CommitRefused(LoadError):
    """Another run moved the cursor first; nothing of this run is visible."""

    retriable = True


class CommitUnknown(LoadError):
    """The commit call failed and the table cannot be read to see whether it landed."""

    retriable = True


class RewindRefused(LoadError):
    """The table cannot be taken back to what was asked for; nothing has changed."""


class ReplayRefused(LoadError):
    """The interval cannot be replayed; nothing has changed."""


class OffsetsUnreadable(LoadError):
    """What another loader left of its offsets is not there, or is not of the form that it writes."""


class ImportRefused(LoadError):
    """A table cannot begin where another loader ended; nothing has changed."""


class FileRefused(LoadError):
    """A data file that was to be committed is missing or not what the worker wrote."""


class LakeUnavailable(LoadError):
    """The lake's store cannot be read or written."""

    retriable = True


class LogTorn(LakeUnavailable):
    """An entry of a table's log is not whole: only what lies before it can be trusted."""

    retriable = False


class TableMissing(LoadError):
    """The topic has no table."""


class TableForeign(LoadError):
    """A table in the topic's place that Penstock did not make."""


class SparkFailed(LoadError):
    """Spark could not run the plan, or gave up on one of its tasks."""

    retriable = True
