"""Several tables for one topic: which records of a topic go to which table."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from resources.settings.section import Section, with_dotted_names

MAIN, FAIL = "main", "fail"
"""The values of `others` that name no table: the topic's own table, and a load that stops."""
_HEADER, SCHEMA = "header:", "schema"
_OTHER_ASSETS = frozenset({"state", "hours", "days"})
"""The last parts of the keys of other assets of a topic in Dagster."""
_TABLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def _by(text: str) -> str:
    if text != SCHEMA and (not text.removeprefix(_HEADER) or not text.startswith(_HEADER)):
        raise ValueError('write "schema", or "header:" and the name of a header')
    return text


class TopicTables(Section):
    """Tables for the records of a topic that have different types. See docs/typed-tables.md."""

    by: Annotated[str, AfterValidator(_by)]
    """Where the type of a record is. "schema": the type is the name of the value's schema in a registry, which is the
    full name of a type of Avro or of a Protobuf message, or the title of a JSON Schema. "header:" and the name of a
    header: the type is the value of this header. Of several headers of this name, the last one counts."""

    names: Annotated[dict[str, str], BeforeValidator(with_dotted_names), Field(min_length=1)]
    """Types, with the tables for their records. A type is a name, or a regular expression that matches whole names, as
    NAME of `[topics.NAME]` is. The first one that matches counts. The table `orders` of the topic `events` has the name
    `events/orders`, also in commands and in `[topics."events/orders"]`. With "schema", "id:" and a number is the schema
    of this id, whatever its name is."""

    others: str = MAIN
    """The table for records of other types: its name, or "main" for the topic's own table. With "fail" such a record
    makes the load fail. Records without a type are always in the topic's own table."""

    @model_validator(mode="after")
    def _checked_names(self) -> Self:
        for name in self.names:
            try:
                re.compile(name)
            except re.error as error:
                raise ValueError(f"names: {name!r} is neither a name nor a regular expression: {error}") from error
        for table in (*self.names.values(), self.others):
            if not _TABLE.fullmatch(table):
                raise ValueError(f"{table!r} is no name of a table: use letters, digits, `.`, `_` and `-`")
        if FAIL in self.names.values():
            raise ValueError(f'names: no table can have the name "{FAIL}"')
        self._check_keys(sorted({*self.names.values(), self.others} - {MAIN, FAIL}))
        return self

    @staticmethod
    def _check_keys(tables: Sequence[str]) -> None:
        """Check that Dagster can have an asset for each of the tables, with a key behind that of the topic."""
        by_output: dict[str, str] = {}
        for table in tables:
            if table in _OTHER_ASSETS:
                raise ValueError(
                    f"{table!r} is no name of a table: in Dagster another asset of the topic has this name"
                )
            twin = by_output.setdefault(re.sub("[.-]", "_", table), table)
            if twin != table:
                raise ValueError(
                    f"Dagster cannot tell the tables {twin!r} and {table!r} apart, because it replaces `-` and `.` by "
                    "`_`: rename one of them"
                )

    @property
    def routes(self) -> Mapping[str, str]:
        """The route of each type; empty for the topic's own table."""
        return {name: _route(table) for name, table in self.names.items()}

    @property
    def by_schema(self) -> bool:
        """Whether its schema names the type of a record."""
        return self.by == SCHEMA

    @property
    def header(self) -> str:
        """The name of the header with the type of a record; empty if its schema is the type."""
        return "" if self.by_schema else self.by.removeprefix(_HEADER)

    @property
    def of_others(self) -> str | None:
        """The route of records of other types; None if there must be none."""
        return None if self.others == FAIL else _route(self.others)


def _route(table: str) -> str:
    return "" if table == MAIN else table
