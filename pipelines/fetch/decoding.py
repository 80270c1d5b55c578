"""Plans, in the driver, how workers decode values, and asks registries for the schemas that workers need.

An id should never get another schema, so a run asks for each id once. The table's ledger keeps the ids of all values
that were loaded, with digests of their schemas, and a run asks for them before it plans. If one of them has another
schema now, the run stops, because the same bytes would mean something else (fault A11). A worker that meets a new id
reports it, and the slice is fetched again. Values with an id that the registry does not know are bad records; `penstock
redecode` decodes them when the registry has got the schema.

Values without a declared schema are treated in the same way: a worker that meets keys without columns, or values that
their columns cannot hold, reports their fields, and the slice is fetched again with columns for them. So no key is
lost, and a load without new keys fetches everything once.

The first load reads a sample first, also to find ids of schemas, because otherwise it would fetch everything twice.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from kafka_io.errors import InvalidSchema
from kafka_io.schema_registry.client import SchemaRegistry
from pipelines.fetch.decode_plan import DecodePlan, Learned, PartPlan, WriterSchemas, plan_decoding
from pipelines.fetch.formats import encoding_of
from pipelines.fetch.typed_rows import fields_of, merged_needs
from pipelines.layout.columns import NO_COLUMNS
from pipelines.layout.delta_schema import delta_fields, type_text
from pipelines.layout.layout import RAW
from pipelines.ledger.schema_ids import NO_SCHEMAS, SchemaIds, messages_by_id
from pipelines.ledger.slice_facts import DecodingNeeds, SliceFacts
from pipelines.ledger.slice_times import RECORD_TIME, EventTimeColumn, is_time
from pipelines.rules.changes import check_rules
from pipelines.rules.row_rules import RowRules
from pipelines.rules.skip_condition import SkipCondition
from pipelines.schemas.schema_texts import KnownTexts
from pipelines.table.table_store import TableSnapshot
from resources.errors import TooManyColumns

if TYPE_CHECKING:
    from resources.settings.topic_formats import TopicFormat

_MAX_COLUMNS = 1000
"""The maximum number of columns that keys of values may add to a table, if nothing declares them."""
OpenRegistry = Callable[[str], SchemaRegistry]
"""Gives the client of a registry by its name in the settings."""


def no_registry(name: str) -> SchemaRegistry:
    """The registries of topics whose formats need none."""
    raise LookupError(f"there is no registry {name!r}")


class Decoding:
    """The plan by which the records of a topic are decoded into a table of a snapshot.

    Attributes:
        plan: the plan with all schemas that are known so far; None for a raw table.
        rules: what the table keeps of the records.

    Args:
        format_: the format of the topic.
        snapshot: the snapshot of the table.
        open_registry: gives the registries.
        adopts_schemas: whether the user chose to continue if an id has got another schema.

    Raises:
        KafkaIOError: the registry does not answer.
        SchemaChanged: an id that the table has met has another schema now.
        RulesChanged: the settings have other rules than those of the rows of the table.
        SecretMissing: a key of hashes cannot be read.
        ConditionInvalid: the condition `skip` is none, or does not fit the columns.
    """

    def __init__(
        self,
        format_: "TopicFormat",
        snapshot: TableSnapshot,
        open_registry: OpenRegistry,
        *,
        adopts_schemas: bool = False,
    ) -> None:
        self._format = format_
        self._snapshot = snapshot
        seen = snapshot.entry.schemas if snapshot.entry else NO_SCHEMAS
        texts = KnownTexts(seen.value_texts, adopts=adopts_schemas), KnownTexts(seen.key_texts, adopts=adopts_schemas)
        self._values = _Part(format_.encoding, format_.registry, open_registry, texts[0])
        self._keys = _Part(format_.key_encoding, format_.key_registry, open_registry, texts[1])
        self.rules = RowRules.of(format_).checked()
        if self.rules.skip and not format_.is_typed:
            SkipCondition(self.rules.skip, RAW, NO_COLUMNS)  # it has an error for what no record has
        if snapshot.entry:
            check_rules(snapshot.entry.state.rules, self.rules.recorded(), snapshot.layout.values)
        self.plan: DecodePlan | None = None
        self._of_plan: Sequence[str] = ()
        self._earlier_warnings: Sequence[str] = ()
        self._columns_of_files: pa.Schema | None = None
        self.learn(
            seen.of_values if format_.has_schemas else (),
            key_ids=seen.keys if format_.has_key_schemas else (),
        )

    @property
    def warnings(self) -> Sequence[str]:
        """Sentences for the user about schemas that have changed, and about the plan."""
        return [*self._values.texts.warnings, *self._keys.texts.warnings, *self._of_plan]

    @property
    def inferred(self) -> Sequence[pa.Field]:
        """The columns of the table, if values or keys show which there are; otherwise none."""
        encodings = [part.encoding for part in (self.plan, self.plan.keys) if part] if self.plan else []
        is_shown = any(encoding_of(encoding).of_sample is not None for encoding in encodings)
        return list(self._snapshot.layout.values) if is_shown else ()

    @property
    def schema_ids(self) -> SchemaIds:
        """The ids of the known schemas, with their texts."""
        values, keys = self._values, self._keys
        return SchemaIds(
            values=values.ids,
            keys=keys.ids,
            messages=values.learned.schemas.messages,
            value_texts=values.texts.texts,
            key_texts=keys.texts.texts,
        )

    @property
    def partition_by(self) -> str:
        """The kind of date in the names of the table's folders (see TableLayout)."""
        return self._snapshot.layout.partition_by

    @property
    def event_times(self) -> EventTimeColumn | None:
        """The column from which workers read event times; None if the settings name no event time."""
        setting, layout = self._format.event_time, self.plan.layout if self.plan else self._snapshot.layout
        if setting is None:
            return None
        times = self._snapshot.entry.event_time if self._snapshot.entry else None
        # The valid-through of another column says nothing about these times, so no row is late yet.
        known_ms = times.valid_through_ms if times and times.column == setting else None
        return EventTimeColumn(layout.name(setting) if setting == RECORD_TIME else setting, known_ms)

    def event_time_warnings(self) -> Iterator[str]:
        """A sentence if the table has no column with the event time of the settings."""
        times = self.event_times
        if times is None or self.plan is None or times.name == self.plan.layout.name(RECORD_TIME):
            return
        stored = self.plan.stored
        if times.name not in stored.names:
            yield f"event_time: the table has no column {times.name!r} yet, so no row has an event time"
        elif not is_time(stored.field(times.name).type):
            [column] = delta_fields([stored.field(times.name)])
            kind = type_text(column["type"])
            yield f"event_time: the column {times.name!r} has the type {kind}; it must be timestamp, date or long"

    def fix_columns(self, columns: pa.Schema) -> None:
        """Make later plans as if the table had these columns already, because files with them were written."""
        self._columns_of_files = columns

    def keep_columns(self, facts: Iterable[SliceFacts]) -> None:
        """Keep the plan's columns in later plans, if a slice has a file with them (fault L18).

        Without that, an older schema that a later fetch finds could give a column of this file another type.
        """
        if self.plan and any(slice_facts.files for slice_facts in facts):
            self.fix_columns(self.plan.stored)

    @property
    def needs_sample(self) -> bool:
        """Whether only a sample can say which columns the table needs, or which schemas its first records have."""
        if self.plan is None:
            return False
        parts = ((self.plan, self._format.has_schemas), (self.plan.keys, self._format.has_key_schemas))
        return any(part and _is_unknown(part, has_schemas=has_schemas) for part, has_schemas in parts)

    def learn_from(self, needs: Iterable[DecodingNeeds]) -> None:
        """Learn what records need and the plan lacks; see `learn`."""
        merged = merged_needs(needs)
        values, keys = merged.values, merged.keys
        self.learn(values.schemas, fields_of(values), key_ids=keys.schemas, key_fields=fields_of(keys))

    def learn(
        self,
        ids: Iterable[int | str],
        fields: Sequence[pa.Field] = (),
        *,
        key_ids: Iterable[int | str] = (),
        key_fields: Sequence[pa.Field] = (),
    ) -> None:
        """Ask the registry for the ids of schemas, unless they are known, and plan again with columns for the fields.

        Raises:
            KafkaIOError: the registry does not answer.
            SchemaChanged: an id that the table has met has another schema now.
            TooManyColumns: the fields need too many columns.
        """
        self._values.learn(ids, fields)
        self._keys.learn(key_ids, key_fields)
        # From here on the columns of written files count as columns of the table, so no schema can change them
        # (fault L18). The new plan no longer warns about them, so the warnings of the old plan are kept.
        if self._columns_of_files is not None:
            layout = replace(self._snapshot.layout, values=self._columns_of_files)
            self._snapshot, self._columns_of_files = replace(self._snapshot, layout=layout), None
            self._earlier_warnings = self._of_plan
        layout = self._snapshot.layout
        self.plan, warnings = plan_decoding(self._format, layout, self._values.learned, self._keys.learned, self.rules)
        self._of_plan = [*self._earlier_warnings, *warnings]
        columns = len(self.plan.stored) if self.plan else 0
        # Only inferred columns have a limit. A declared schema may have more.
        if (fields or key_fields) and columns > _MAX_COLUMNS:
            raise TooManyColumns(
                f"the keys of the objects would need {columns} columns, and {_MAX_COLUMNS} are allowed: objects with "
                "names as keys are maps, so declare their types with `columns` or `json_schema` in [topics.NAME]"
            )


class _Part:
    """What a run learns of the values, or of the keys, which have this encoding.

    Attributes:
        learned: what is known so far.
        texts: the texts of the schemas.
    """

    def __init__(self, encoding: str, registry: str | None, open_registry: OpenRegistry, texts: KnownTexts) -> None:
        self._encoding = encoding
        self._registry = registry
        self._open_registry = open_registry
        self.learned = Learned()
        self.texts = texts

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids of the known schemas."""
        return tuple(sorted(self.learned.schemas.known))

    def learn(self, ids: Iterable[int | str], fields: Sequence[pa.Field]) -> None:
        """Ask the registry for these ids, unless they are known, and add the fields.

        Raises:
            KafkaIOError: the registry does not answer.
        """
        if fields:
            self.learned = replace(self.learned, samples=(*self.learned.samples, fields))
        new = sorted(set(ids) - self.learned.schemas.ids, key=str)
        if new:
            self.learned = replace(self.learned, schemas=self._with(new))

    def _with(self, new: Sequence[int | str]) -> WriterSchemas:
        """The known schemas, and those of new ids, GUIDs and message types, or why they cannot be used."""
        messages = messages_by_id(new)
        learned = self._with_ids([id_ for id_ in new if " " not in str(id_)])  # message types have one
        known = {
            id_: replace(schema, messages=tuple(sorted({*schema.messages, *messages.get(id_, ())})))
            for id_, schema in learned.known.items()
        }
        return replace(learned, known=known)

    def _with_ids(self, ids: Sequence[int | str]) -> WriterSchemas:
        """The known schemas and those of these ids or GUIDs, or why they cannot be used."""
        assert self._registry is not None
        registry = self._open_registry(self._registry)
        learned = self.learned.schemas
        known, refused, refused_guids = dict(learned.known), dict(learned.refused), dict(learned.refused_guids)
        registered = registry.known_schemas(ids)
        for id_ in ids:
            # A registry that copies another one knows an id late (fault N31). The load continues with bad records,
            # which a redecode decodes later. A registry that does not answer has raised an error before.
            if id_ not in registered:
                reason = f"the registry {registry.name} has no schema with the"
                if isinstance(id_, str):
                    refused_guids[id_] = f"{reason} GUID {id_}"
                else:
                    refused[id_] = f"{reason} id {id_}"
                continue
            schema = registered[id_]
            self.texts.check(schema, registry)
            try:
                encoding_of(self._encoding).of_schema(schema)
            except InvalidSchema as error:
                reason = f"the schema {schema.id} cannot be used: {error.reason}"
                refused[schema.id] = reason
                if schema.guid:
                    refused_guids[schema.guid] = reason
            else:
                self.texts.keep(schema, registry)
                known[schema.id] = schema
        return WriterSchemas(known=known, refused=refused, refused_guids=refused_guids)


def _is_unknown(part: PartPlan, *, has_schemas: bool) -> bool:
    """Whether no column of this part is known, or no schema if it has schemas in a registry."""
    if has_schemas:
        schemas = part.schemas
        return not (schemas.messages if schemas.known and encoding_of(part.encoding).is_by_message else schemas.ids)
    return encoding_of(part.encoding).of_sample is not None and not part.stored_values
