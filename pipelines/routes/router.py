"""Finds the table of each record of a topic that has several tables: a header names the type of a record.

A record without the header, or whose header is not valid UTF-8, is in the topic's own table.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafka_io.errors import printable
from kafka_io.values.header_texts import header_texts
from resources.errors import RouteUnknown

if TYPE_CHECKING:  # workers need no settings, and pydantic is slow to import
    from resources.settings.rules.topic_tables import TopicTables

MAIN_ROUTE = ""
"""The route of the records in the topic's own table."""
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class RoutesOfRows:
    """The routes of the records of a batch: one of the `routes` for each of the `places`."""

    routes: tuple[str, ...]
    places: npt.NDArray[np.int64]

    def are(self, route: str) -> npt.NDArray[np.bool_]:
        """The mask of the records of one route."""
        is_own: npt.NDArray[np.bool_] = np.array([own == route for own in self.routes])[self.places]
        return is_own


@dataclass(frozen=True, slots=True, kw_only=True)
class Router:
    """Says for each record to which table it belongs.

    Args:
        header: the header with the type of a record.
        routes: regular expressions for types, with the routes of their records. The first that matches counts.
        others: the route of all other types; None if there must be none.
    """

    header: str
    routes: Mapping[str, str]
    others: str | None

    @classmethod
    def of(cls, tables: "TopicTables") -> Self:
        """The router of a section of the settings."""
        routes = {re.escape(name) if _PLAIN_NAME.fullmatch(name) else name: to for name, to in tables.routes.items()}
        return cls(header=tables.header, routes=routes, others=tables.of_others)

    def of_rows(self, records: pa.RecordBatch) -> RoutesOfRows:
        """The routes of the records of a batch.

        Raises:
            RouteUnknown: a record has a type for which there is no table.
        """
        [types] = header_texts(records.column("headers"), [self.header])
        distinct = types.dictionary_encode()
        places = distinct.indices.fill_null(len(distinct.dictionary)).to_numpy().astype(np.int64)
        routes = [self._route(type_) for type_ in distinct.dictionary.to_pylist()]
        if None in routes:
            unknown = routes.index(None)
            first = records.column("offset")[int(np.argmax(places == unknown))]
            raise RouteUnknown(
                f"the record at offset {first} has the type {printable(distinct.dictionary[unknown].as_py())} in its "
                f"header {self.header}, and `names` of [topics.NAME.tables] has no table for it: add the type, or "
                "name a table for `others`"
            )
        return RoutesOfRows((*(route for route in routes if route is not None), MAIN_ROUTE), places)

    def _route(self, type_: str) -> str | None:
        """The route of a type; None if it has none."""
        matching = (route for name, route in self.routes.items() if re.fullmatch(name, type_, re.DOTALL))
        return next(matching, self.others)
