"""Finds what a table asks of its readers and writers that Penstock does not do (faults E22, E23, E24).

Other programs can turn on features of Delta. Some change what the files of a table mean, and some add rules for rows or
commits. This is the only place that decides which of them are fine, and it is asked before deltalake is.
"""

from collections.abc import Iterator

from pipelines.delta.delta_log_segment import TableDefinition

_READER_VERSION, _WRITER_VERSION = 3, 7
_COLUMN_MAPPING_VERSION = 2  # the reader version with column mapping; from version 3 on a table names its features
_READABLE_FEATURES = {"timestampNtz", "vacuumProtocolCheck"}
_WRITABLE_FEATURES = {
    "appendOnly",
    "invariants",
    "checkConstraints",
    "changeDataFeed",
    "generatedColumns",
    "timestampNtz",
    "vacuumProtocolCheck",
}
"""The features that ask nothing of a commit, as long as no rule of _RULES uses them."""
_CONSTRAINT = "delta.constraints."
_RULES = {
    '"delta.invariants"': "a rule for the values of a column (delta.invariants)",
    '"delta.generationExpression"': "a generated column",
    '"delta.identity.': "an identity column",
}
"""Rules for the rows of a table, by a text in its schema."""


def foreign_features(definition: TableDefinition, uri: str) -> str:
    """The sentence about what the table asks for and Penstock does not do, with what to do; empty if there is nothing.

    With deletion vectors, for example, readers do not see all rows of a file (fault P05).
    """
    return next(_sentences(definition, uri), "")


def _sentences(definition: TableDefinition, uri: str) -> Iterator[str]:
    table, drop = f"delta.`{uri}`", "in Spark, ALTER TABLE"
    reader, writer = definition.min_reader_version, definition.min_writer_version
    if reader > _READER_VERSION or writer > _WRITER_VERSION:
        yield (
            f"the table {uri} needs version {reader} of Delta's protocol for readers and {writer} for writers, and "
            f"this Penstock knows them up to {_READER_VERSION} and {_WRITER_VERSION}: upgrade Penstock, or move the "
            "table away and load the topic again"
        )
    features = set(definition.reader_features)
    if reader == _COLUMN_MAPPING_VERSION:
        features.add("columnMapping")
    unreadable = sorted(features - _READABLE_FEATURES)
    if unreadable:
        yield (
            f"the table uses the Delta feature {' and '.join(unreadable)}, so its files do not show which rows readers "
            f"see; {drop} {table} DROP FEATURE {unreadable[0]} writes its files again without it"
        )
    unwritable = sorted(set(definition.writer_features) - _WRITABLE_FEATURES)
    if unwritable:
        yield (
            f"the table uses the Delta feature {' and '.join(unwritable)}, which asks of each writer what Penstock "
            f"does not do; {drop} {table} DROP FEATURE {unwritable[0]} removes it"
        )
    for name in sorted(definition.configuration):
        if name.startswith(_CONSTRAINT):
            constraint = name.removeprefix(_CONSTRAINT)
            yield (
                f"the table has the constraint {constraint} ({definition.configuration[name]}), and Penstock does not "
                f"compare the rows that it loads with it; {drop} {table} DROP CONSTRAINT {constraint} removes it"
            )
    for text, rule in _RULES.items():
        if text in definition.schema_json:
            yield (
                f"the table has {rule}, which Penstock does not follow; make the column an ordinary one, or move the "
                "table away and load the topic again"
            )
