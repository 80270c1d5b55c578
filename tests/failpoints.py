"""The failpoints at which tests end loads, replays, rewinds, housekeeping, increments and updates of state tables."""

FAILPOINTS = (
    "discovered",
    "no table found",
    "table made",
    "table opened",
    "bounds known",
    "before cut entry",
    "after cut entry",
    "planned",
    "fetch began",
    "batch fetched",
    "file opened",
    "file written",
    "file closed",
    "file synced",
    "facts sent",
    "fetched",
    "replay planned",
    "replay staged",
    "replay compared",
    "before replay entry",
    "after replay entry",
    "redecode planned",
    "redecode staged",
    "before redecode entry",
    "after redecode entry",
    "conversion planned",
    "file converted",
    "table converted",
    "before convert entry",
    "after convert entry",
    "before rewind entry",
    "after rewind entry",
    "files checked",
    "before load entry",
    "columns changed",
    "log entry written",
    "after load entry",
    "conflict seen",
    "rebased",
    "log entry found",
    "log entry synced",
    "loaded",
    "mirrored",
    "before clean",
    "file cleaned",
    "clean announced",
    "before compaction",
    "compaction announced",
    "maps grown",
    "after compaction",
)

ERASE_FAILPOINTS = ("erasure staged", "offsets written", "before erase entry", "after erase entry")
"""At these, tests end erasures. They pass others of loads as well."""

REWRITE_FAILPOINTS = ("rewrite planned", "table rewritten", "before rewrite entry", "after rewrite entry")
"""At these, tests end rewrites. They pass others of loads as well."""

RETIRE_FAILPOINTS = ("retirement planned", "before retire entry", "after retire entry")
"""At these, tests end retirements of old rows. They pass others of loads as well."""

OF_EACH_SOURCE = ("source read", "source read again", "increment begun", "increment known", "increment batch read")
OF_EACH_OUTPUT = ("increment batch written", "last increment batch written", "attempt failed")
OF_ALL_INCREMENTS = (*OF_EACH_SOURCE, *OF_EACH_OUTPUT)
OF_DELTA_ENTRIES = (
    "output created",
    "before increment entry",
    "after increment entry",
    "increment write failed",
    "increment files synced",
    "increment synced",
)
OF_SQL_OUTPUTS = (
    "before output transaction",
    "progress moved",
    "output columns added",
    "rows removed",
    "rows inserted",
    "output transaction committed",
    "after output transaction",
)
OF_SPARK_ROWS = (
    "output columns added",
    "increment file described",
    "increment files written",
    "staged rows committed",
)
SCRUB_FAILPOINTS = (
    "log entry scrubbed",
    "checkpoint written",
    "checkpoint scrubbed",
    "old checkpoint deleted",
    "bounds hidden",
)
INCREMENT_FAILPOINTS = (*OF_ALL_INCREMENTS, *OF_DELTA_ENTRIES, *OF_SQL_OUTPUTS, *OF_SPARK_ROWS)

STATE_FAILPOINTS = (
    "state rows read",
    "state rows decided",
    "state file opened",
    "state row group written",
    "state file written",
    "state files written",
    "state rebuild begun",
)
