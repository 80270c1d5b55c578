"""Choices: what a load does when a Kafka log no longer fits the table. By default it stops and reports the problem."""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, ValidationError

from resources.settings.section import Section, first_problem


class Choices(Section):
    """What a load does when a log no longer fits its table. The next commit records each choice that was applied."""

    # These texts are not docstrings, as in other sections: commands show them, and would read the source at each start.

    on_expired: Literal["fail", "skip"] = Field(
        default="fail",
        description='Retention removed offsets before they were loaded. "skip" records them as a gap and continues '
        "at the log's earliest offset.",
    )

    on_missing: Literal["fail", "skip"] = Field(
        default="fail",
        description="The log has a hole that neither compaction nor a transaction explains: it lost records before "
        'they were loaded. "skip" records the missing offsets as a gap and loads what comes after them.',
    )

    on_truncated: Literal["fail", "rewind"] = Field(
        default="fail",
        description='The log was truncated below the table\'s cursor. "rewind" removes the rows that the log no '
        "longer has and loads what the log has instead.",
    )

    on_recreated: Literal["fail", "restart", "adopt"] = Field(
        default="fail",
        description='The topic was deleted and created again. "restart" keeps the rows of the deleted topic and '
        'loads all records of the recreated topic into the same table. "adopt" keeps them and continues '
        "at the table's cursors, for a topic that was restored with the same offsets.",
    )

    on_cluster_changed: Literal["fail", "adopt"] = Field(
        default="fail",
        description='The address of the cluster leads to a cluster with another id. "adopt" records the new id and '
        "continues the tables, for a cluster that was rebuilt from the same logs.",
    )

    on_vanished: Literal["fail", "wait"] = Field(
        default="fail",
        description='Kafka 0.8 and later: the topic has fewer partitions than its table. "wait" loads the partitions '
        "that exist. (In 0.7 the partitions of a broker disappear while the broker is down, so every "
        "load waits for them.)",
    )

    on_corrupt: Literal["fail", "skip"] = Field(
        default="fail",
        description='A message or batch is corrupt. The records before it are loaded in any case. "skip" records its '
        "offsets as a gap, keeps its bytes in the folder `_quarantine` of the table, and continues after "
        "it.",
    )

    on_too_large: Literal["fail", "skip"] = Field(
        default="fail",
        description="A message or batch is above `caps.max_fetch_bytes` or `caps.max_decompressed_bytes`. The "
        'records before it are loaded in any case. "skip" records its offsets as a gap and continues '
        "after it.",
    )

    on_schema_changed: Literal["fail", "adopt"] = Field(
        default="fail",
        description="Typed tables: a registry has another schema with an id than the one that has decoded rows of the "
        'table. "adopt" decodes new records with the new schema. Rows that the table has already stay as they are.',
    )

    def with_overrides(self, overrides: Mapping[str, str | None]) -> Self:
        """A copy with the values of `overrides`. A value of None keeps the choice as it is.

        Raises:
            ValueError: there is no such choice, or it does not have this value.
        """
        values = {name: value for name, value in overrides.items() if value is not None}
        try:
            return type(self).model_validate(self.model_dump() | values)
        except ValidationError as error:
            key, _, phrase = first_problem(error)
            raise ValueError(f"{key} {phrase}") from error
