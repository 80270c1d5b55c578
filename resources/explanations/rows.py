"""The codes 5xx and 6xx: values and schemas; increments, state tables and outputs."""

from resources.explanations.explanation import ExitCode, Explanation

_GONE_WRONG = "increments.md#what-can-go-wrong"

VALUE_ERRORS = (
    Explanation(
        number=501,
        kind="BadRecords",
        title="Too many records do not decode",
        meaning="More values are not of the format of the topic than the settings allow. Nothing of the step was "
        "loaded; earlier steps stay.",
        causes="`format` or the schema is wrong, or a producer sends something else.",
        repairs=(
            "The message has the first such record. If the format is wrong, correct `[topics.NAME]` and load again.",
            (
                "If the records are wrong, raise `max_bad_records` or `max_bad_share`: they become rows with `_error` "
                "and `_raw`, and `penstock redecode TOPIC` can decode them later."
            ),
        ),
        page="incidents.md#values-do-not-decode",
        exit_code=ExitCode.CHOICE_NEEDED,
    ),
    Explanation(
        number=502,
        kind="TooManyColumns",
        title="The values need more columns than a table may have",
        meaning="Nothing of the step was loaded.",
        causes="Objects have names as keys, for example an object with one member per customer.",
        repairs=(
            "Declare such an object as a map in `columns`, or declare only the columns that you need.",
            "Or load the topic as bytes, with the format `raw`.",
        ),
        page="typed-tables.md#columns",
        exit_code=ExitCode.CHOICE_NEEDED,
    ),
    Explanation(
        number=503,
        kind="InvalidSchema",
        title="A schema is not valid",
        meaning="No columns can be made from it, so nothing was loaded or encoded.",
        causes="A file or a schema of the registry breaks the rules of its language, or it is too large or too deep.",
        repairs=(
            "Correct the file or the schema at the line that the message names.",
            "`penstock schema TOPIC` shows the schemas of a topic and the columns made from them.",
        ),
        page="typed-tables.md#look-at-schemas",
    ),
    Explanation(
        number=504,
        kind="SchemaNotFound",
        title="The schema registry does not know the schema",
        meaning="The id, the subject or the version does not exist in the registry of the settings.",
        causes="The producer uses another registry, or the registry is a copy that is behind.",
        repairs=(
            "Check which registry the producers use, and correct `registry` in `[topics.NAME]`.",
            "If records did not decode for this reason, `penstock redecode TOPIC` decodes them later.",
        ),
        page="typed-tables.md#look-at-schemas",
    ),
    Explanation(
        number=505,
        kind="InvalidValue",
        title="A value does not fit its schema",
        meaning="The value was not published. Values before it may have been.",
        causes="A field is missing, has another type, or the line is not JSON. The message has the line and the field.",
        repairs=("Correct the line, and publish it and the lines after it again.",),
        page="start.md#which-commands-are-there",
    ),
)
"""The rows about values, in the order of their numbers."""

OUTPUT_ERRORS = (
    Explanation(
        number=601,
        kind="IncrementOvertaken",
        title="Another process of the consumer was first",
        meaning="Nothing of this increment is in the output. What the other process wrote is.",
        causes="Two processes of the same consumer, or another writer of the output, ran at the same time.",
        repairs=("Run it again. `apply_increment` does so by itself.",),
        page=_GONE_WRONG,
        exit_code=ExitCode.TRY_AGAIN,
    ),
    Explanation(
        number=602,
        kind="RowsReplaced",
        title="The source replaced rows that the consumer has seen",
        meaning="The consumer chose to fail then, so nothing of the increment is in the output.",
        causes="A rewind, a replay or a redecode changed old rows of the source.",
        repairs=("Run once with another choice for `on_replaced`: it says what happens to the old rows.",),
        page="increments.md#what-happens-when-old-rows-change",
        exit_code=ExitCode.CHOICE_NEEDED,
    ),
    Explanation(
        number=603,
        kind="SourceChanged",
        title="The source is another table",
        meaning="The rows of the output came from a table that is not there any more. Nothing was written.",
        causes="The table was removed and loaded again, or an old copy is in its place.",
        repairs=(
            "Build the output again: remove it, or choose another consumer and output.",
            "For a state table: `penstock state TOPIC --rebuild`.",
        ),
        page=_GONE_WRONG,
        exit_code=ExitCode.CHOICE_NEEDED,
    ),
    Explanation(
        number=604,
        kind="SourceLogCleaned",
        title="The log of the source does not tell what is new",
        meaning="Entries of the Delta log are missing that are newer than what the consumer has seen.",
        causes="Another program cleaned the log of the table. Penstock never does.",
        repairs=(
            "Copy the entries back from a backup, or build the output again.",
            "For a state table: `penstock state TOPIC --rebuild`.",
        ),
        page=_GONE_WRONG,
        exit_code=ExitCode.CHOICE_NEEDED,
    ),
    Explanation(
        number=605,
        kind="SourceFilesCleaned",
        title="Removed rows cannot be read any more",
        meaning="The consumer asks for rows that the source removed, and their file was deleted.",
        causes="`penstock clean` deleted files that are older than `housekeeping.keep_days`.",
        repairs=("Compute the affected groups in another way, or build the output again.", "Keep files for longer."),
        page=_GONE_WRONG,
        exit_code=ExitCode.CHOICE_NEEDED,
    ),
    Explanation(
        number=606,
        kind="OutputRefused",
        title="The output does not take the increment",
        meaning="Nothing of the increment is in the output.",
        causes="A column of the origin is missing, a type does not fit, the output would forget its progress, or "
        "somebody restored an old version of it.",
        repairs=("Do what the message says; it names the column or the property.",),
        page=_GONE_WRONG,
    ),
    Explanation(
        number=607,
        kind="OutputBusy",
        title="Another process uses the output",
        meaning="Nothing of the increment is in the output.",
        causes="Another process has the file of DuckDB open, holds a lock in Postgres, or creates the table.",
        repairs=("Run it again later. `apply_increment` does so by itself.",),
        page=_GONE_WRONG,
        exit_code=ExitCode.TRY_AGAIN,
    ),
    Explanation(
        number=608,
        kind="MetricsNotWritten",
        title="Metrics could not be written or sent",
        meaning="Tables are not affected. Monitoring shows old values.",
        causes="The folder does not exist, its disk is full, or the Pushgateway does not answer.",
        repairs=("Correct the path or the URL, or start the Pushgateway.",),
        page="monitoring.md#how-do-i-get-metrics-into-prometheus",
        exit_code=ExitCode.TRY_AGAIN,
    ),
    Explanation(
        number=609,
        kind="LineageFailed",
        title="An event of lineage could not be sent",
        meaning="Tables are not affected. The catalogue lacks the event.",
        causes="The server of `lineage.url` does not answer or refuses, or the file cannot be written.",
        repairs=("Correct the section `[lineage]` of the settings.",),
        page="lineage.md#how-do-i-send-events",
    ),
)
"""The rows about increments and outputs, in the order of their numbers."""
