"""Makes the router of a topic, in the driver: it asks the registry for the names of schemas.

A run begins with the schemas in the ledgers of all tables of the topic. A worker that meets another one reports it, the
registry is asked for it, and the slice is fetched again. An id that has another schema now than in one of the ledgers
stops the run, because the same bytes would be in another table (fault A11).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kafka_io.errors import InvalidSchema
from kafka_io.schema_registry.client import SchemaRegistry
from kafka_io.schema_registry.schemas import RegisteredSchema, SchemaType
from pipelines.ledger.ledger import LedgerEntry
from pipelines.ledger.schema_ids import message_of
from pipelines.ledger.table_routes import ID_PREFIX, SCHEMA, TableRoutes
from pipelines.routes.router import Router
from pipelines.schemas.schema_names import SchemaNames, SchemaUse, names_of
from pipelines.schemas.schema_texts import KnownTexts
from resources.errors import RoutesChanged
from resources.settings.settings import SettingsError
from resources.table_names import table_name

if TYPE_CHECKING:
    from resources.settings.rules.topic_tables import TopicTables
    from resources.settings.topic_formats import TopicFormat

_KINDS: Mapping[type, str] = {int: "id", str: "GUID"}


class TopicRouter:
    """The router of a topic, which learns the names of schemas.

    Attributes:
        router: the router for workers, with all names that are known so far.

    Args:
        tables: the settings of the tables of the topic.
        topic: the topic.
        format_of: gives the format of a table by its name.
        open_registry: gives the registry of a format.
        entries: the newest entry of each table of the topic, by its route.
        adopts_schemas: whether the user chose to continue if an id has got another schema.

    Raises:
        SettingsError: the records of a table cannot have schemas of this registry.
        KafkaIOError: the registry does not answer.
        SchemaChanged: an id that a table has met has another schema now.
        RoutesChanged: the settings name the id of a schema, and another table has records of it.
    """

    def __init__(
        self,
        tables: "TopicTables",
        topic: str,
        format_of: Callable[[str], "TopicFormat"],
        open_registry: Callable[[str], SchemaRegistry],
        entries: Mapping[str, LedgerEntry | None],
        *,
        adopts_schemas: bool = False,
    ) -> None:
        self.router = Router.of(tables)
        if tables.by != SCHEMA:
            return
        format_ = format_of(topic)
        _check_formats(format_, {name: format_of(name) for name in TableRoutes.of(tables).table_names(topic)})
        seen = {route: entry.schemas for route, entry in entries.items() if entry}
        self._texts = [KnownTexts(schemas.value_texts, adopts=adopts_schemas) for schemas in seen.values()]
        self._registry = open_registry(format_.registry or "")
        names = SchemaNames(id_bytes=format_.id_bytes, has_paths=format_.format == "protobuf")
        self.router = replace(self.router, schemas=names)
        self.learn((id_, "") for id_ in sorted({id_ for schemas in seen.values() for id_ in schemas.values}))
        for route, id_ in ((route, id_) for route, schemas in seen.items() for id_ in schemas.values):
            if self.router.of_id(id_) not in {None, route}:
                raise RoutesChanged(
                    f'`names` of [topics.NAME.tables] has another table for "{ID_PREFIX}{id_}" than '
                    f"{table_name(topic, route)}, which has records of this schema: restore the former value, or move "
                    "all tables of the topic away and load it into new ones"
                )

    def learn(self, uses: Iterable[SchemaUse]) -> Mapping[str, Sequence[int | str]]:
        """Ask the registry for the names of schemas; returns for each route the ids that its plan lacks now.

        Raises:
            KafkaIOError, SchemaChanged: see the class.
        """
        uses = tuple(uses)
        registered = self._registry.known_schemas(dict.fromkeys(id_ for id_, _ in uses))
        names = self.router.schemas or SchemaNames()
        for id_ in dict.fromkeys(id_ for id_, _ in uses):
            names = self._with(names, id_, registered.get(id_))
        self.router = replace(self.router, schemas=names)
        needed = defaultdict[str, list[int | str]](list)
        for id_, path in uses:
            schema = registered.get(id_)
            # Without the index path of a message type, the plan of its table asks for it later.
            if schema is None or (not path and schema.schema_type is SchemaType.PROTOBUF):
                continue
            route = self.router.of_type((schema.id, path))
            if isinstance(route, str):
                message = names.known[schema.id].get(path) if path else None
                needed[route] += [id_, message_of(schema.id, message)] if message else [id_]
        return needed

    def _with(self, names: SchemaNames, id_: int | str, schema: RegisteredSchema | None) -> SchemaNames:
        """The names with those of a schema, or with the reason why it has none."""
        if schema is None:
            reason = f"the registry {self._registry.name} has no schema with this {_KINDS[type(id_)]}"
            return replace(names, refused={**names.refused, str(id_): reason})
        for texts in self._texts:
            texts.check(schema, self._registry)
        try:
            known = {**names.known, schema.id: names_of(schema)}
        except InvalidSchema as error:
            return replace(names, refused={**names.refused, str(id_): f"it cannot be used: {error.reason}"})
        by_guid = {**names.by_guid, schema.guid: schema.id} if schema.guid else names.by_guid
        return replace(names, known=known, by_guid=by_guid)


def _check_formats(own: "TopicFormat", formats: Mapping[str, "TopicFormat"]) -> None:
    """Check that the schemas of all tables are where those of the topic are.

    Raises:
        SettingsError: those of one table are not.
    """
    for name, format_ in formats.items():
        if (format_.has_schemas, format_.registry, format_.id_bytes) != (True, own.registry, own.id_bytes):
            raise SettingsError(
                f'[topics."{name}"]: its topic has by = "{SCHEMA}" in [topics.NAME.tables], so this table also needs a '
                f"format with schemas in the registry {own.registry}, and the `id_bytes` of its topic"
            )
