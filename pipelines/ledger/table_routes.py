"""Routes: rules that send each record of a topic to one of its tables. The ledger of each table keeps them."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from kafka_io.typed_json import JsonObject
from resources.table_names import table_name

if TYPE_CHECKING:  # workers need no settings, and pydantic is slow to import
    from resources.settings.rules.topic_tables import TopicTables

MAIN, FAIL = "main", "fail"
"""The texts in the place of a table that mean the topic's own table, and no table."""
SCHEMA = "schema"
"""The value of `by` if the schema of a record is its type, and no header is."""
ID_PREFIX = "id:"
"""The beginning of the names that are ids of schemas: records of a schema that nobody can name have a table too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRoutes:
    """The routes of one topic. Without `by` the topic has one table.

    Args:
        by: what names the type of a record.
        names: types with the names of their tables, in order: the first that matches counts.
        others: the table of all other types, or what happens to such a record.
    """

    by: str = ""
    names: tuple[tuple[str, str], ...] = ()
    others: str = ""

    def as_dict(self) -> JsonObject:
        """The fields for the ledger; none if the topic has one table."""
        return {"by": self.by, "names": self.names, "others": self.others} if self.by else {}

    def continued_by(self, planned: Self) -> bool:
        """Whether records that were stored by these routes are where the planned ones would have put them.

        Without a table for other types there were none, so further types can have any table. Whether a new id is one
        that no record had is not known here, see `TopicRouter`.
        """
        names = tuple(rule for rule in planned.names if rule in self.names or not self._is_id(rule[0]))
        planned = replace(planned, names=names)
        is_same_so_far = planned.by == self.by and names[: len(self.names)] == self.names
        return planned == self or (self.others == FAIL and is_same_so_far)

    def _is_id(self, name: str) -> bool:
        return self.by == SCHEMA and name.startswith(ID_PREFIX)

    @classmethod
    def of(cls, tables: "TopicTables | None") -> Self:
        """The routes of the settings."""
        if tables is None:
            return cls()
        return cls(by=tables.by, names=tuple(tables.names.items()), others=tables.others)

    @property
    def all_routes(self) -> tuple[str, ...]:
        """The routes of all tables but the topic's own, in order."""
        return tuple(sorted({*dict(self.names).values(), self.others} - {MAIN, FAIL, ""}))

    def table_names(self, topic: str) -> list[str]:
        """The names of all tables of a topic; its own comes first."""
        return [topic, *(table_name(topic, route) for route in self.all_routes)]


ONE_TABLE = TableRoutes()
