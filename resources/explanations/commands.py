"""The codes 1xx: settings and commands."""

from resources.explanations.explanation import ExitCode, Explanation

COMMAND_ERRORS = (
    Explanation(
        number=101,
        kind="SettingsError",
        title="The settings are missing or wrong",
        meaning="Penstock read no settings, or refuses them, so the command has done nothing.",
        causes="The file does not exist, is no TOML, has a key that Penstock does not know, or a value that a key does "
        "not take. The message names the file and the key.",
        repairs=(
            "Correct the key that the message names. `penstock config reference` prints all keys.",
            "If the file is elsewhere, name it with `--settings` or in the variable PENSTOCK_SETTINGS.",
            "Test the file with `penstock config check --offline`.",
        ),
        page="start.md#how-do-i-configure-it",
        exit_code=ExitCode.WRONG_USE,
    ),
    Explanation(
        number=102,
        kind="UsageError",
        title="The command line is wrong",
        meaning="An option or an argument does not exist, is missing, or has a value that it does not take. The "
        "command has done nothing.",
        causes="A typing error, options that exclude each other, or the name of a topic or cluster that nobody knows.",
        repairs=(
            "Read the help of the command: `--help` lists its options, with examples.",
            "`penstock topics` lists the topics, and `penstock config show` the clusters.",
        ),
        page="start.md#which-commands-are-there",
        exit_code=ExitCode.WRONG_USE,
    ),
    Explanation(
        number=103,
        kind="ClickException",
        title="The command could not do what its options ask",
        meaning="The command ended without doing it. The message says what stood in the way.",
        causes="You answered no to its question, or the address to listen on is in use.",
        repairs=("Remove what the message names, and run the command again.",),
        page="start.md#which-commands-are-there",
    ),
    Explanation(
        number=104,
        kind="TopicUnknown",
        title="The cluster has no such topic",
        meaning="The topic cannot be loaded, because the cluster does not have it. Its table, if it has one, stays.",
        causes="The name is written in another way, the topic was deleted, it belongs to another cluster of the "
        "settings, or the login may not see it: brokers hide topics that it may not describe.",
        repairs=(
            "`penstock topics` lists the topics that the cluster shows to this login.",
            "If the topic exists, let the administrator of the brokers grant DESCRIBE and READ.",
            "If it was deleted for good, nothing needs to be done: leave it out of the command.",
        ),
        page="security.md#which-rights-does-penstock-need",
    ),
    Explanation(
        number=105,
        kind="TailRefused",
        title="The query of `penstock tail` does not fit the topic",
        meaning="Nothing was printed, because the topic or the partition does not exist, or because an offset was "
        "given without its partition.",
        causes="An offset has a meaning in one partition only.",
        repairs=("Name the partition with `--partition`, or use a time or a duration such as -15m.",),
        page="json.md#what-does-penstock-tail-print",
        exit_code=ExitCode.WRONG_USE,
    ),
    Explanation(
        number=106,
        kind="SecretMissing",
        title="A secret is not where the settings say",
        meaning="A password, token or key of the settings cannot be read, so Penstock cannot log in.",
        causes="The variable is not set for this process (a service or a cron job has another environment than your "
        "shell), the file does not exist or cannot be read, or the command that prints the secret failed.",
        repairs=(
            "Set the variable, or create the file, for the user who runs Penstock.",
            "`penstock config check` reads all secrets and shows none.",
        ),
        page="security.md#where-do-i-put-passwords-and-tokens",
        exit_code=ExitCode.WRONG_USE,
    ),
    Explanation(
        number=107,
        kind="EventTimeUnknown",
        title="The table records no event time",
        meaning="Nothing is known about how complete the table is. Its rows are not affected.",
        causes="The section of the topic in the settings does not set `event_time`, or no load has run since it does.",
        repairs=(
            (
                "Set `event_time` in the section `[topics.NAME]`, and load the topic: each commit records the proof "
                "from then on."
            ),
        ),
        page="event-time.md#how-do-i-wait-for-an-hour",
    ),
    Explanation(
        number=108,
        kind="AuditUnknown",
        title="The counts of producers are missing",
        meaning="The table cannot be compared with what producers sent. Its rows are not affected.",
        causes="The topic that the setting `audit` names was not loaded, records no event time, or its messages are "
        "not counts.",
        repairs=("Load the topic of counts, and check that it has the fields that the page describes.",),
        page="event-time.md#how-do-i-compare-with-what-producers-sent",
    ),
    Explanation(
        number=109,
        kind="OffsetsUnreadable",
        title="The offsets of another loader cannot be read",
        meaning="Nothing was imported.",
        causes="The path leads to another folder or file, the checkpoint of Spark has no committed batch, or the file "
        "was changed.",
        repairs=(
            "Check the path that is given with `--from`.",
            "`penstock offsets import TOPIC --from SOURCE --dry-run` shows what would be imported.",
        ),
        page="migrating.md#how-do-i-continue-where-another-loader-ended",
    ),
    Explanation(
        number=110,
        kind="ImportRefused",
        title="A table cannot begin at the offsets of the other loader",
        meaning="Nothing has changed. No table was created.",
        causes="The table has been loaded already, or the log does not hold the offsets of some partitions any more.",
        repairs=(
            (
                "If the log lost records, `penstock offsets import TOPIC --from SOURCE --on-expired skip` records them "
                "as a gap."
            ),
            "If the table exists already, it continues at its own cursors: nothing needs to be imported.",
        ),
        page="migrating.md#when-does-an-import-refuse",
    ),
    Explanation(
        number=111,
        kind="RewindRefused",
        title="The table cannot go back to this version",
        meaning="Nothing has changed.",
        causes="The version does not exist, or `penstock clean` has deleted files that it needs.",
        repairs=(
            "`penstock history TOPIC` lists the versions. Choose a later one.",
            "To repair rows instead, use `penstock replay TOPIC --from POINT --to POINT`.",
        ),
        page="operations.md#how-do-i-undo-a-load",
    ),
    Explanation(
        number=112,
        kind="ReplayRefused",
        title="The interval cannot be replayed",
        meaning="Nothing has changed.",
        causes="The brokers no longer hold all records of the interval, the table does not cover it, the log was "
        "truncated, or the files of the interval also hold rows outside of it that are lost.",
        repairs=(
            "Choose an interval that the message allows; `earliest` and `latest` are the bounds of the table.",
            "If the log was truncated, run `penstock load TOPIC` first: it says what to choose.",
            "If the brokers no longer have the records, `penstock rewind` can go back to a version without the damage.",
        ),
        page="operations.md#how-do-i-fetch-an-interval-again",
    ),
    Explanation(
        number=113,
        kind="RedecodeRefused",
        title="The records of the table cannot be decoded again",
        meaning="Nothing has changed.",
        causes="The table is raw and `--all` was not given, the table is typed already, or the settings name "
        "no format.",
        repairs=(
            "To make a raw table typed, set the format in `[topics.NAME]` and run `penstock redecode TOPIC --all`.",
            "In a typed table, `penstock redecode TOPIC` decodes what did not decode before.",
        ),
        page="operations.md#how-do-i-get-columns-for-a-topic-that-was-loaded-as-bytes",
    ),
    Explanation(
        number=114,
        kind="LayoutRefused",
        title="The column for the folders of a table has no day",
        meaning="The topic is not loaded until the setting is corrected. Nothing was written.",
        causes="`partition_by` names a column that is neither a date nor a timestamp.",
        repairs=("Name another column, or declare the column as a date or timestamp.",),
        page="layout.md#choose",
        exit_code=ExitCode.WRONG_USE,
    ),
)
"""The rows, in the order of their numbers."""
