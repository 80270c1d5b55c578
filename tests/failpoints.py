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
    "after compaction",
)

OF_ALL_INCREMENTS = ("increment begun", "increment known", "increment batch read", "increment batch written")
OF_DELTA_OUTPUTS = ("output created", "before increment entry", "after increment entry", "increment synced")
OF_SQL_OUTPUTS = (
    "before output transaction",
    "progress moved",
    "rows removed",
    "rows inserted",
    "after output transaction",
)
OF_SPARK_ROWS = ("increment files written",)
INCREMENT_FAILPOINTS = (*OF_ALL_INCREMENTS, *OF_DELTA_OUTPUTS, *OF_SQL_OUTPUTS, *OF_SPARK_ROWS)

STATE_FAILPOINTS = (
    "state rows decided",
    "state file written",
    "state files written",
)
