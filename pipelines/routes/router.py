"""Finds the table of each record of a topic that has several tables: a header, or the schema, names its type.

A record without a type is in the topic's own table: it lacks the header, or the header is not valid UTF-8; it has no
value, no valid frame, or a schema without a name.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafka_io.errors import printable
from kafka_io.values.header_texts import header_texts
from pipelines.ledger.table_routes import ID_PREFIX
from pipelines.schemas.schema_names import SchemaNames, SchemaUse
from resources.errors import RouteUnknown

if TYPE_CHECKING:  # workers need no settings, and pydantic is slow to import
    from resources.settings.rules.topic_tables import TopicTables

MAIN_ROUTE = ""
"""The route of the records in the topic's own table."""
TypeOfRecord = str | SchemaUse
"""The type of a record: the text of its header, or its schema."""
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]+")
_Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class NoRoute:
    """Why no table is for the records of a type: a part of a sentence."""

    reason: str


@dataclass(frozen=True, slots=True)
class RoutesOfRows:
    """The routes of the records of a batch: one of the `routes` for each of the `places`.

    `unnamed` are the schemas whose names must be known first. Their records have no route yet, so nothing of the slice
    will be used.
    """

    routes: tuple[str | None, ...]
    places: _Places
    unnamed: frozenset[SchemaUse] = frozenset()

    def are(self, route: str) -> npt.NDArray[np.bool_]:
        """The mask of the records of one route."""
        is_own: npt.NDArray[np.bool_] = np.array([own == route for own in self.routes])[self.places]
        return is_own


@dataclass(frozen=True, slots=True, kw_only=True)
class Router:
    """Says for each record to which table it belongs.

    Args:
        header: the header with the type of a record; empty if its schema is the type.
        routes: regular expressions for types, with the routes of their records. The first that matches counts.
        others: the route of all other types; None if there must be none.
        schemas: the names of schemas; None if a header has the type.
    """

    header: str
    routes: Mapping[str, str]
    others: str | None
    schemas: SchemaNames | None = None

    @classmethod
    def of(cls, tables: "TopicTables", schemas: SchemaNames | None = None) -> Self:
        """The router of a section of the settings."""
        routes = {re.escape(name) if _PLAIN_NAME.fullmatch(name) else name: to for name, to in tables.routes.items()}
        return cls(header=tables.header, routes=routes, others=tables.of_others, schemas=schemas)

    def of_rows(self, records: pa.RecordBatch) -> RoutesOfRows:
        """The routes of the records of a batch.

        Raises:
            RouteUnknown: a record has a type for which there is no table, or a schema whose name nobody can know.
        """
        types, places = self._types_of(records)
        routes = list[str | None]()
        for number, route in enumerate(map(self.of_type, types)):
            if isinstance(route, NoRoute):
                first = records.column("offset")[int(np.argmax(places == number))]
                raise RouteUnknown(f"the record at offset {first} has {route.reason}")
            routes.append(route)
        unnamed = [
            type_ for type_, route in zip(types, routes, strict=True) if not isinstance(type_, str) and route is None
        ]
        return RoutesOfRows((*routes, MAIN_ROUTE), places, frozenset(unnamed))

    def _types_of(self, records: pa.RecordBatch) -> tuple[Sequence[TypeOfRecord], _Places]:
        """The different types, and for each record the place of its own; -1 for a record without a type."""
        if self.schemas:
            return self.schemas.of_rows(records.column("value"), records.column("headers"))
        [types] = header_texts(records.column("headers"), [self.header])
        distinct = types.dictionary_encode()
        return distinct.dictionary.to_pylist(), distinct.indices.fill_null(-1).to_numpy().astype(np.int64)

    def of_type(self, type_: TypeOfRecord) -> str | NoRoute | None:
        """The route of the records of a type, or why they have none; None if the name of its schema is not known."""
        if isinstance(type_, str):
            words = f"the type {printable(type_)} in its header {self.header}"
            return self._of_name(type_, words)
        id_, path = type_
        assert self.schemas is not None
        if (by_id := self.of_id(id_)) is not None:
            return by_id
        if reason := self.schemas.refused.get(str(id_)):
            return NoRoute(
                f"the schema {id_}, and {reason}: register it, or correct `registry`; or name a table for it, such as "
                f'"{ID_PREFIX}{id_}" = "main", in `names` of [topics.NAME.tables]'
            )
        names = self.schemas.known.get(id_) if isinstance(id_, int) else None
        if names is None:
            return None
        return self._of_name(names[path], f"the schema {printable(names[path])}") if path in names else MAIN_ROUTE

    def of_id(self, id_: int | str) -> str | None:
        """The route of the records that name a schema by this id or GUID; None if the settings do not name it."""
        guids = (guid for guid, known in (self.schemas or SchemaNames()).by_guid.items() if known == id_)
        routes = (self._matching(f"{ID_PREFIX}{number}", is_id=True) for number in (id_, *guids))
        return next((route for route in routes if route is not None), None)

    def _of_name(self, name: str, words: str) -> str | NoRoute:
        route = self._matching(name)
        if route is None:
            route = self.others
        if route is None:
            return NoRoute(
                f"{words}, and `names` of [topics.NAME.tables] has no table for it: add the type, or name a table for "
                "`others`"
            )
        return route

    def _matching(self, name: str, *, is_id: bool = False) -> str | None:
        """The route of the first rule that matches a name, or the id of a schema; None if no rule matches."""
        rules = (rule for rule in self.routes.items() if not self.schemas or rule[0].startswith(ID_PREFIX) == is_id)
        return next((to for pattern, to in rules if re.fullmatch(pattern, name, re.DOTALL)), None)
