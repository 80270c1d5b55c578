"""The codes 3xx: what the log of a topic holds, and what it lost."""

from resources.explanations.explanation import ExitCode, Explanation

_CHOICES = "operations.md#what-happens-when-a-log-and-its-table-are-inconsistent"
_UNTOUCHED = "The load stops in these partitions and changes nothing there. Other partitions are loaded."

LOG_ERRORS = (
    Explanation(
        number=301,
        kind="CursorExpired",
        title="Retention removed records before they were loaded",
        meaning=f"The log begins after the next offset of the table, so the records between are lost for the table. "
        f"{_UNTOUCHED}",
        causes="Loads ran too rarely or failed for too long, or the retention of the topic is too short.",
        repairs=(
            (
                "If another copy of the records exists, for example a mirrored cluster, keep the table as it is and "
                "load from there."
            ),
            (
                "Otherwise continue: `penstock load TOPIC --on-expired skip` records the lost offsets as a gap with "
                "the cause `expired`."
            ),
            "Then load more often, or let the brokers keep records for longer. `penstock status` shows the time left.",
        ),
        page="incidents.md#retention-removed-records-before-they-were-loaded",
        exit_code=ExitCode.CHOICE_NEEDED,
    ),
    Explanation(
        number=302,
        kind="CursorAheadOfLog",
        title="The log ends before the next offset of the table",
        meaning=f"The table has records that the log no longer has. {_UNTOUCHED}",
        causes="The log was truncated, for example by an unclean leader election, or the topic was deleted and created "
        "again on brokers that do not report an id of the topic.",
        repairs=(
            "Find out from the logs of the brokers what happened.",
            (
                "`penstock load TOPIC --on-truncated rewind` removes the rows that the log has lost, and loads what "
                "the log has instead."
            ),
            "If the topic was created again, choose `--on-recreated restart` or `--on-recreated adopt`.",
        ),
        page="incidents.md#the-log-was-cut",
        exit_code=ExitCode.CHOICE_NEEDED,
    ),
    Explanation(
        number=303,
        kind="LogTruncated",
        title="The log was truncated and written again",
        meaning=f"From some offset on, the table holds other records than the log. {_UNTOUCHED}",
        causes="A replica that was not in sync became leader (an unclean election), or somebody restored a broker from "
        "an old copy.",
        repairs=(
            "To keep only what the log has now: `penstock load TOPIC --on-truncated rewind`.",
            "The removed rows stay in older versions of the table until `penstock clean` deletes them.",
        ),
        page="incidents.md#the-log-was-cut",
        exit_code=ExitCode.CHOICE_NEEDED,
    ),
    Explanation(
        number=304,
        kind="TopicRecreated",
        title="The topic was deleted and created again",
        meaning="The offsets of the table belong to the deleted topic. Nothing was loaded and nothing has changed.",
        causes="Somebody deleted the topic, and it was created again with the same name, also automatically.",
        repairs=(
            (
                "`penstock load TOPIC --on-recreated restart` keeps the old rows and loads all records of the new "
                "topic into the same table."
            ),
            (
                "`penstock load TOPIC --on-recreated adopt` keeps the old rows and continues at the old offsets, for a "
                "topic that was restored with the same records."
            ),
            "If it happened while a load was running, load again first.",
        ),
        page="incidents.md#the-topic-was-created-again",
        exit_code=ExitCode.CHOICE_NEEDED,
    ),
    Explanation(
        number=305,
        kind="TopicReplaced",
        title="The topic or the cluster is another one than when the read began",
        meaning="What was planned does not fit any more, so nothing of it was loaded.",
        causes="The topic was deleted and created again during the load, or the address leads to another cluster now.",
        repairs=("Load again: the next load sees the new topic, and says which choices there are.",),
        page="incidents.md#the-topic-was-created-again",
    ),
    Explanation(
        number=306,
        kind="OffsetsMissing",
        title="The log has a hole",
        meaning="Offsets that were not loaded are in no batch of the log, and neither compaction nor a transaction "
        f"explains it. What lies before the hole was loaded. {_UNTOUCHED}",
        causes="A broker lost a segment or a part of it, somebody deleted records, or the topic was compacted earlier "
        "and is not now.",
        repairs=(
            "Ask the administrator what happened to the log of the broker that the message names.",
            "`penstock load TOPIC --on-missing skip` records the offsets as a gap with the cause `missing`.",
        ),
        page="incidents.md#offsets-are-missing-and-nothing-explains-it",
        exit_code=ExitCode.CHOICE_NEEDED,
    ),
    Explanation(
        number=307,
        kind="Corrupt",
        title="A message or a batch is corrupt",
        meaning=f"A checksum, a length or a count is wrong. Records before it were loaded. {_UNTOUCHED}",
        causes="A disk of a broker is damaged, a producer wrote a wrong batch, or bytes were changed on their way.",
        repairs=(
            "Load again: another replica may have the right bytes after the leader changes.",
            (
                "`penstock load TOPIC --on-corrupt skip` records its offsets as a gap with the cause `corrupt`, keeps "
                "the bytes in the folder _quarantine of the table, and continues after it."
            ),
        ),
        page="incidents.md#a-batch-is-corrupt",
        exit_code=ExitCode.CHOICE_NEEDED,
    ),
    Explanation(
        number=308,
        kind="TooLarge",
        title="A message or a batch is larger than a limit",
        meaning=f"Records before it were loaded. {_UNTOUCHED}",
        causes="A batch is larger than `caps.max_fetch_bytes`, or is larger than `caps.max_decompressed_bytes` after "
        "decompression. The message names the limit.",
        repairs=(
            "Raise the limit in the settings, and load again. Each task needs memory for such a batch.",
            (
                "Or leave it out: `penstock load TOPIC --on-too-large skip` records its offsets as a gap with the "
                "cause `too large`."
            ),
        ),
        page="incidents.md#a-record-is-too-large",
        exit_code=ExitCode.CHOICE_NEEDED,
    ),
    Explanation(
        number=309,
        kind="PartitionsVanished",
        title="The topic has fewer partitions than its table",
        meaning="Partitions that the table holds do not exist in the cluster. Nothing was loaded.",
        causes="The topic was created again with fewer partitions, or the cluster is another one. In Kafka 0.7 loads "
        "wait for missing partitions without this error.",
        repairs=(
            "`penstock load TOPIC --on-vanished wait` loads the partitions that exist.",
            "If the topic was created again, see also PS-304.",
        ),
        page=_CHOICES,
        exit_code=ExitCode.CHOICE_NEEDED,
    ),
    Explanation(
        number=310,
        kind="ClusterChanged",
        title="The settings lead to another cluster",
        meaning="The id of the cluster is not the one that the table knows. Nothing was loaded.",
        causes="The address in the settings was changed, or the cluster was built again.",
        repairs=(
            "Correct `bootstrap` or `zookeeper` in the settings.",
            "If the cluster was rebuilt with the same logs: `penstock load TOPIC --on-cluster-changed adopt`.",
        ),
        page=_CHOICES,
        exit_code=ExitCode.CHOICE_NEEDED,
    ),
    Explanation(
        number=311,
        kind="OffsetOutOfRange",
        title="The log does not hold the requested offset",
        meaning="A read began before or after the log. A table is not affected.",
        causes="Retention moved the start of the log during the read, or the offset never existed.",
        repairs=(
            "Run the command again.",
            "`penstock topics` shows which offsets the brokers hold.",
        ),
        page=_CHOICES,
    ),
    Explanation(
        number=312,
        kind="LogShort",
        title="A replica is behind",
        meaning="A broker has fewer records than the load planned to read. The next load reads them.",
        causes="A new leader has not caught up, or a replica in another rack is behind.",
        repairs=("Load again later. If the log stays shorter, the next load reports that it was truncated.",),
        page="incidents.md#the-log-was-cut",
        exit_code=ExitCode.TRY_AGAIN,
    ),
    Explanation(
        number=313,
        kind="PastEnd",
        title="An answer contains records after the end of the log",
        meaning="The records are not used, because their offsets could be wrong. The next load reads them.",
        causes="Records were written while the broker answered; if it stays so, an offset in the log is wrong.",
        repairs=("Load again. If it happens at the same offset each time, treat the batch as corrupt: see PS-307.",),
        page="incidents.md#a-batch-is-corrupt",
        exit_code=ExitCode.TRY_AGAIN,
    ),
)
"""The rows, in the order of their numbers."""
