"""The plan by which workers decode values. It is made before the fetch: all rows of a file have the same columns."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Protocol, Self

import pyarrow as pa
import pyarrow.ipc

from kafka_io.errors import InvalidSchema, printable
from kafka_io.schema_registry.schemas import RegisteredSchema
from kafka_io.values.column_types import MAX_NESTING, content_type, nesting, with_content_type
from kafka_io.values.columns import assign, field_name, grow, grow_until_stable
from kafka_io.values.json.inference import grow_by_fields
from pipelines.fetch.formats import encoding_of
from pipelines.layout.columns import (
    KEY_PREFIX,
    SCHEMA_ID_COLUMN,
    Grow,
    grown,
    header_columns,
    key_columns,
    rename_warnings,
    schema_id_columns,
    stored_type,
    value_columns,
    with_columns,
    with_key_prefix,
)
from pipelines.layout.layout import DATE_COLUMN, EVENT_DAY, LOADED, RAW, TYPED, TableLayout
from pipelines.layout.personal import is_personal, marked, paths_of_headers, paths_of_keys, without_keys
from pipelines.ledger.schema_ids import message_of
from pipelines.rules.column_rules import (
    ColumnRule,
    Rules,
    as_stored,
    has_field,
    has_rule,
    of_sampled_table,
    rules_of_members,
    sampled,
    stored_field,
    without_dropped,
    without_drops_of,
    without_rules,
)
from pipelines.rules.row_rules import NO_RULES, RowRules
from pipelines.rules.skip_condition import SkipCondition, paths_of
from resources.errors import ConditionInvalid, FormatChanged, LayoutChanged, LayoutRefused

if TYPE_CHECKING:  # pydantic is slow to import, and workers need no settings; the log's interface imports this module
    from pipelines.table.table_store import TableSnapshot
    from resources.settings.topic_formats import TopicFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterSchemas:
    """The schemas of a topic's values that are known, by id, and why the values of other ids cannot be decoded.

    Some values name their schema by its GUID instead of its id.
    """

    known: Mapping[int, RegisteredSchema] = field(default_factory=dict)
    refused: Mapping[int, str] = field(default_factory=dict)
    refused_guids: Mapping[str, str] = field(default_factory=dict)

    @property
    def ids(self) -> frozenset[int | str]:
        """All ids and GUIDs that need not be asked for, and the message types of known schemas."""
        return frozenset().union(self.known, self.messages, self.by_guid, self.refused, self.refused_guids)

    @property
    def messages(self) -> tuple[str, ...]:
        """The message types that values of Protobuf have, if the table has those of several types."""
        return tuple(message_of(id_, name) for id_, schema in self.known.items() for name in schema.messages)

    @property
    def by_guid(self) -> Mapping[str, int]:
        """The ids of the known schemas that have a GUID."""
        return {schema.guid: id_ for id_, schema in self.known.items() if schema.guid}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartPlan:
    """The columns for the fields of one part of the records, values or keys, and the encoding of that part.

    Args:
        encoding: how it is encoded: a name that `encoding_of` takes.
        columns: all columns of the table for its fields, with those that the load adds, as an Arrow IPC message.
        schemas: its schemas, for an encoding that has them: those of a registry, or the one in a file of the settings.
        id_bytes: the size of the ids of schemas in its frames.
        personal: the paths of its personal fields.
        rules: what the table keeps of its fields.
        table: with rules, the columns that the table has for its fields, as an Arrow IPC message.
    """

    encoding: str
    columns: bytes
    schemas: WriterSchemas = field(default_factory=WriterSchemas)
    id_bytes: int = 4
    personal: tuple[str, ...] = ()
    rules: tuple[ColumnRule, ...] = ()
    table: bytes = b""

    @property
    def values(self) -> pa.Schema:
        """The columns for fields, with the types that the decoder gives them; those for keys without their prefix."""
        return pa.ipc.read_schema(pa.py_buffer(self.columns))

    @property
    def stored_values(self) -> pa.Schema:
        """The same columns with the types that the table has; with rules, the table's own columns."""
        if self.rules:
            return pa.ipc.read_schema(pa.py_buffer(self.table))
        return pa.schema(_stored(self.values))


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodePlan(PartPlan):
    """The columns of the files of a load, and the encodings of what fills them.

    The plan itself is that of the values; `keys` is that of the keys, None if they stay bytes. `headers` are the names
    of the headers that have columns. `has_schema_ids` says whether the table has a column for the ids of the schemas.
    `row_rules` say what the table keeps of the records.
    """

    keys: PartPlan | None = None
    headers: tuple[str, ...] = ()
    has_schema_ids: bool
    date_column: str = DATE_COLUMN
    partition_by: str = LOADED
    row_rules: RowRules = NO_RULES

    @property
    def stored(self) -> pa.Schema:
        """The columns for ids, headers, and fields of values and keys, with the types that the table has.

        Those for ids and headers are the first ones, because Delta keeps statistics of a table's first columns only.
        """
        of_keys = with_key_prefix(self.keys.stored_values) if self.keys else ()
        of_headers = marked(header_columns(self.headers), paths_of_headers(self.personal))
        of_ids = schema_id_columns() if self.has_schema_ids else ()
        return pa.schema([*of_ids, *_stored(of_headers), *self.stored_values, *of_keys])

    @property
    def skips(self) -> SkipCondition | None:
        """The condition of records that get no row; None if there is none.

        Raises:
            ConditionInvalid: it does not fit the columns.
        """
        if not self.row_rules.skip:
            return None
        of_keys = with_key_prefix(pa.schema(_stored(self.keys.values))) if self.keys else ()
        of_ids = schema_id_columns() if self.has_schema_ids else ()
        columns = pa.schema([*of_ids, *header_columns(self.headers), *_stored(self.values), *of_keys])
        return SkipCondition(self.row_rules.skip, self.layout, columns, has_keys=self.keys is not None)

    @property
    def of_stored_rows(self) -> Self:
        """The plan for rows of the table that are decoded again: their keys can be hashes, which do not decode."""
        keys = None if self.row_rules.hides_keys else self.keys
        return replace(self, keys=keys, row_rules=self.row_rules.of_stored_rows())

    @property
    def layout(self) -> TableLayout:
        """The layout of the files."""
        return TableLayout(
            is_typed=True, values=self.stored, date_column=self.date_column, partition_by=self.partition_by
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What a run has learned of the values or of the keys.

    Args:
        schemas: the schemas that were asked for.
        samples: the fields of samples, in order: a sample has what the columns did not hold after the samples before
            it.
    """

    schemas: WriterSchemas = field(default_factory=WriterSchemas)
    samples: tuple[Sequence[pa.Field], ...] = ()


NOTHING_LEARNED = Learned()


class _GrowBy(Protocol):
    """Grows the columns of values, or those of keys, by the fields of a schema or of a sample."""

    def __call__(self, columns: pa.Schema, fields: Iterable[pa.Field], grow_: Grow) -> pa.Schema: ...


def plan_decoding(
    format_: "TopicFormat",
    layout: TableLayout,
    values: Learned = NOTHING_LEARNED,
    keys: Learned = NOTHING_LEARNED,
    rules: RowRules | None = None,
) -> tuple[DecodePlan | None, Sequence[str]]:
    """The plan for a topic of this format with a table of this layout, and warnings about columns with other names.

    There is no plan for a raw table. `rules` are those of the format, with the checks of their secrets if they matter.

    Raises:
        InvalidSchema: the columns would be nested so deep that readers could not open the table.
        LayoutRefused: the column of `partition_by` has no day.
    """
    if not format_.is_typed:
        return None, ()

    def grow_values(columns: pa.Schema, fields: Iterable[pa.Field], grow_: Grow) -> pa.Schema:
        return grown(columns, fields, layout.taken, grow_)

    def grow_keys(columns: pa.Schema, fields: Iterable[pa.Field], grow_: Grow) -> pa.Schema:
        return grow_(columns, fields)

    rules = rules or RowRules.of(format_)
    part = _Part(format_, format_.encoding, values, rules.columns, format_.personal, paths_of(rules.skip))
    columns, table = part.planned(value_columns(layout.values), grow_values)
    key_plan = None
    if format_.key_encoding:
        of_keys = _Part(format_, format_.key_encoding, keys, rules.of_key_columns, paths_of_keys(format_.personal))
        decoded_keys, key_table = of_keys.planned(key_columns(layout.values), grow_keys)
        key_plan = PartPlan(
            encoding=format_.key_encoding,
            columns=decoded_keys,
            schemas=keys.schemas,
            id_bytes=format_.id_bytes,
            personal=of_keys.personal,
            rules=of_keys.rules,
            table=key_table,
        )
    plan = DecodePlan(
        encoding=format_.encoding,
        columns=columns,
        schemas=_in_file(format_, format_.encoding) or values.schemas,
        id_bytes=format_.id_bytes,
        personal=format_.personal,
        rules=rules.columns,
        table=table,
        keys=key_plan,
        headers=format_.header_columns,
        has_schema_ids=_has_schema_ids(format_, layout),
        date_column=layout.date_column,
        partition_by=layout.partition_by,
        row_rules=rules,
    )
    _check_nesting(plan.stored)
    warnings = (
        rename_warnings(layout.values, plan.stored),
        _time_column_warnings(plan),
        _rule_warnings(plan),
        _skip_warnings(plan),
    )
    return plan, list(chain.from_iterable(warnings))


def _has_schema_ids(format_: "TopicFormat", layout: TableLayout) -> bool:
    """Whether the table has, or gets, the column for ids. Rows that a table has already lack them."""
    is_new = not layout.values.names
    return format_.has_schemas and (is_new or SCHEMA_ID_COLUMN in layout.values.names or format_.add_schema_ids)


def _check_nesting(columns: pa.Schema) -> None:
    """Check that readers can open a table with these columns (fault E15).

    Decoders keep to the limit. Columns of the settings may be deeper, and so may a member of a union that takes a type
    which was no union before.

    Raises:
        InvalidSchema: a column is nested too deep.
    """
    for column in columns:
        if nesting(column.type) > MAX_NESTING:
            raise InvalidSchema(
                f"the column {printable(column.name)} would be nested deeper than readers of Delta allow: about 40 "
                "structs, 49 lists or 30 maps inside each other; declare its inner part as `string`"
            )


def _time_column_warnings(plan: DecodePlan) -> Iterator[str]:
    """The warning that no value has had the field whose day is the folder of a row.

    Raises:
        LayoutRefused: the column is neither a date nor a time.
    """
    name, columns = plan.partition_by, plan.stored
    if name in {LOADED, EVENT_DAY} or set(columns.names) <= {SCHEMA_ID_COLUMN}:
        return
    if name not in columns.names:
        yield f"no record has had the field {name} of `partition_by`: all rows are in the folder without a day"
    elif is_personal(columns.field(name)):
        raise LayoutRefused(
            f"`partition_by` names the column {name}, which a tag of its schema makes personal: the names of folders "
            "would show its values"
        )
    elif not pa.types.is_temporal(columns.field(name).type):
        raise LayoutRefused(
            f"`partition_by` names the column {name} of the type {columns.field(name).type}, but only a date or a "
            "timestamp has a day. Declare such a type for it, for example with `columns` or in the schema"
        )


def _in_file(format_: "TopicFormat", encoding: str) -> WriterSchemas | None:
    """The schema in a file of the settings, for an encoding whose decoder needs it."""
    in_file = encoding_of(encoding).in_file
    return WriterSchemas(known=in_file(format_)) if in_file else None


def _rule_warnings(plan: DecodePlan) -> Iterator[str]:
    """The warnings about rules for fields that nothing has: a name may be misspelt, and then its values are stored."""
    if plan.values.names:
        for rule in plan.rules:
            if not has_field(plan.values, rule.path):
                yield f"load: no value has had the field {rule.path} of `{rule.treatment}`"


def _skip_warnings(plan: DecodePlan) -> Iterator[str]:
    """The warnings about fields of the condition `skip` that nothing has.

    Raises:
        ConditionInvalid: the condition does not fit the columns.
    """
    _check_types(plan, plan.row_rules.columns, paths_of(plan.row_rules.skip))
    skips = plan.skips
    for path in skips.missing if skips and plan.values.names else ():
        yield f"load: no value has had the field {path} of `skip`: it is null in all records"


def _check_types(plan: DecodePlan, rules: Rules, paths: Iterable[str]) -> None:
    """Check that fields that `skip` compares are decoded with their types.

    Raises:
        ConditionInvalid: a field has another rule, and its type is not declared: then it is decoded as JSON text.
    """
    inferred = encoding_of(plan.encoding).of_sample is not None
    of_keys = plan.keys and plan.keys.rules and encoding_of(plan.keys.encoding).of_sample is not None
    for path in paths:
        if (inferred and has_rule(rules, path)) or (of_keys and path.startswith(KEY_PREFIX)):
            raise ConditionInvalid(
                f"`skip` of [topics.NAME.load] compares {path}, which is also dropped, masked or hashed: declare its "
                "type with `columns` or a schema, because otherwise it is decoded as text"
            )


@dataclass(frozen=True, slots=True)
class _Part:
    """What is known of the values, or of the keys, when their columns are planned.

    `compared` are the paths of fields that a condition compares. They are decoded, also if they are dropped.
    """

    format: "TopicFormat"
    encoding: str
    learned: Learned
    rules: tuple[ColumnRule, ...]
    personal: tuple[str, ...]
    compared: Sequence[str] = ()

    def planned(self, present: pa.Schema, grow_by: _GrowBy) -> tuple[bytes, bytes]:
        """The columns with everything added that declared fields and samples need, as an Arrow IPC message.

        With rules the second message has the columns of the table, otherwise it is empty.

        Raises:
            LayoutRefused: the table already has members that are named after the keys of objects in a personal field.
        """
        if encoding_of(self.encoding).of_sample is not None:
            _check_no_keys(present, self.personal)
        samples, columns = self.learned.samples, present
        if self.rules:
            columns = pa.schema(self._decoded(present))
            samples = tuple(sampled(fields, self.rules) for fields in samples)
        rules = without_drops_of(self.rules, self.compared)
        in_schemas = (without_dropped(fields, rules) for fields in self._in_schemas())
        declared = [(fields, _stored(fields)) for fields in in_schemas]
        steps = [
            *(partial(grow_by, fields=stored, grow_=grow) for _, stored in declared),
            *(partial(grow_by, fields=_stored(fields), grow_=grow_by_fields) for fields in samples),
        ]
        columns = self._marked(grow_until_stable(columns, steps), [stored for _, stored in declared])
        read = _as_declared(columns, declared)
        message: bytes = read.serialize().to_pybytes()
        return message, self._of_table(present, read, grow_by) if self.rules else b""

    def _marked(self, columns: pa.Schema, in_schemas: Iterable[Sequence[pa.Field]]) -> pa.Schema:
        """The columns with the marks of personal ones; `in_schemas` are the fields of each schema."""
        return marked(columns, self.personal, self.format.personal_tags, in_schemas)

    def _decoded(self, present: pa.Schema) -> Sequence[pa.Field]:
        """The columns of the table as they are decoded before anything is added."""
        if encoding_of(self.encoding).of_sample is not None:
            return of_sampled_table(present, self.rules)
        return without_rules(present, self.rules)

    def _of_table(self, present: pa.Schema, decoded: pa.Schema, grow_by: _GrowBy) -> bytes:
        """The columns of the table with everything added that decoded columns need by the rules for them."""
        columns = present
        for column, rules in zip(decoded, rules_of_members(self.rules, list(decoded)), strict=True):
            if not rules:
                columns = with_columns(columns, pa.schema(_stored([column])))
            elif field := stored_field(column, rules):
                columns = grow_by(columns, [field], grow)
        in_schemas = (as_stored(fields, self.rules) for fields in self._in_schemas())
        message: bytes = self._marked(columns, in_schemas).serialize().to_pybytes()
        return message

    def _in_schemas(self) -> Iterator[Sequence[pa.Field]]:
        """The fields that the settings declare, and those of each schema; older schemas come first."""
        encoding = encoding_of(self.encoding)
        yield encoding.declared(self.format)
        for _, schema in sorted(self.learned.schemas.known.items()):
            yield from encoding.fields_of(schema)


def _check_no_keys(columns: Sequence[pa.Field], paths: Sequence[str]) -> None:
    """Check that no column has members that are named after keys of objects in a personal field (fault Y04)."""
    for column, allowed in zip(columns, without_keys(columns, paths), strict=True):
        if column.type != allowed.type:
            raise LayoutRefused(
                f"`personal` names the field {field_name(column)}, or one inside it, whose objects have become the "
                f"type {column.type}: each new key of an object would become a member of it. Declare the columns of "
                "the topic with `columns`, this field as map<string, TYPE> or as `json`"
            )


def _stored(fields: Iterable[pa.Field]) -> Sequence[pa.Field]:
    return [field.with_type(stored_type(field.type)) for field in fields]


def _as_declared(columns: pa.Schema, declared: Iterable[tuple[Sequence[pa.Field], Sequence[pa.Field]]]) -> pa.Schema:
    """The columns as the fields of each schema declare them; a later schema comes before an earlier one.

    Each schema is a pair: its fields, and the same fields with the types that the table stores. Delta's schema keeps no
    metadata of the elements of lists and maps, and no difference between the types of times.
    """
    read = list(columns)
    for fields, stored in declared:
        read = _with_declared(read, list(columns), fields, stored)
    return pa.schema(read)


def _with_declared(
    read: list[pa.Field], present: list[pa.Field], fields: Iterable[pa.Field], stored: Sequence[pa.Field]
) -> list[pa.Field]:
    """The `read` columns, or members of a struct, with the types of these fields where they are `present` as stored."""
    read = list(read)
    for declared_field, kind, place in zip(fields, stored, assign(stored, present), strict=True):
        if place is not None:
            types_ = read[place].type, present[place].type, declared_field.type, kind.type
            read[place] = read[place].with_type(_declared_type(*types_))
    return read


def _declared_type(read: pa.DataType, present: pa.DataType, declared: pa.DataType, stored: pa.DataType) -> pa.DataType:
    """The type of a column with the types of a field where it has them as stored; it can have more members."""
    if present == stored:
        return declared
    if pa.types.is_struct(present) and pa.types.is_struct(stored):
        return pa.struct(_with_declared(list(read), list(present), list(declared), list(stored)))
    if type(present) is type(stored) and (pa.types.is_list(present) or pa.types.is_map(present)):
        return with_content_type(read, _declared_type(*map(content_type, (read, present, declared, stored))))
    return read


def layout_of(format_: "TopicFormat") -> TableLayout:
    """The layout of a new table for a topic of this format."""
    return (TYPED if format_.is_typed else RAW).partitioned_by(format_.partition_by)


def check_format(format_: "TopicFormat", snapshot: "TableSnapshot", uri: str) -> None:
    """Check that the table is of the kind that the format needs.

    Raises:
        FormatChanged: it is not.
    """
    if format_.is_typed != snapshot.layout.is_typed:
        kinds = {True: "typed", False: "raw"}
        decode = "run `penstock redecode TOPIC --all` to make the table typed, " if format_.is_typed else ""
        raise FormatChanged(
            f'the table {uri} is {kinds[snapshot.layout.is_typed]}, but the format of the topic is "{format_.format}" '
            f"now: {decode}set the former format again in [topics.NAME], or move the table away to load the topic into "
            "a new one"
        )


def check_partition_by(format_: "TopicFormat", snapshot: "TableSnapshot", uri: str) -> None:
    """Check that the table has the folders of the settings, because Delta cannot change them.

    Raises:
        LayoutChanged: it has others.
    """
    present, wanted = snapshot.layout.partition_by, format_.partition_by
    if present != wanted:
        raise LayoutChanged(
            f'the table {uri} has folders for partition_by = "{present}", but the settings say "{wanted}" now, and the '
            f'folders of a table cannot change: set partition_by = "{present}" again in [topics.NAME], or move the '
            "table away to load the topic into a new one"
        )
