"""The format of a topic's records: whether its table keeps their values as bytes, or has a column for each field."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, ValidationInfo, model_validator

from kafka_io.errors import InvalidSchema
from kafka_io.net.security import FILE
from resources.settings.rules.load_rules import DROP, NO_RULES, HashSecret, LoadRules, named_rule
from resources.settings.schedules import MAX_MINUTES, Share, Texts
from resources.settings.section import Section, absolute_path

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_io.values.protobuf.descriptors import ProtobufSchema

Format = Literal["raw", "text", "json", "avro", "protobuf", "debezium"]
OnBadRecords = Literal["keep", "fail"]
_WITH_SCHEMAS: Mapping[Format, str] = {
    "avro": "avro",
    "protobuf": "protobuf",
    "json": "framed json",
    "debezium": "debezium avro",
}
"""The encodings of values whose schemas are in a registry."""
_KEY_ENCODINGS: Mapping[Format, str] = {"raw": "", "json": "inferred json", "debezium": "debezium key"}
"""The encodings of keys that have other names than their formats."""
_ALWAYS_WITH_SCHEMAS = frozenset({"avro", "protobuf"})
_DAYS_OF_ALL_TABLES = {"loaded", "event_day"}
"""The values of `partition_by` that name no column."""
_MESSAGE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
ALL_MESSAGES = "*"
"""The value of `message` for values of any message type."""
_AVRO_FRAME = re.compile(r"single_object|azure:[0-9a-f]{32}|glue:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HEADER_NAME = re.compile(r"[^ ,;{}()\n\t=\x00]+")
_MINUTE_MS = 60_000
_OWN_PREFIX, _PREFIXES_OF_PARTS = "_kafka_", ("_kafka_key_", "_kafka_header_")
_PERSONAL_OF_TYPED = {"_kafka_key", "_kafka_headers"}
_PERSONAL_OF_RAW = {"key", "value", "headers"}
"""The columns of Penstock that can be personal."""


def _with_absolute_path(schema: Any, info: ValidationInfo) -> Any:
    """The value of `json_schema`, where a path is absolute."""
    return absolute_path(schema, info) if isinstance(schema, str) and _is_path(schema) else schema


def _is_path(json_schema: str) -> bool:
    return bool(json_schema) and not json_schema.lstrip().startswith("{")


def _avro_frame(text: str) -> str:
    if not _AVRO_FRAME.fullmatch(text):
        raise ValueError(
            'write "single_object", "glue:" with the UUID of a schema version, or "azure:" with the id of a schema in '
            "32 hexadecimal digits; UUIDs and ids have lower-case letters"
        )
    return text


def _header_names(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"the name {name!r} is empty, or has a character that names of columns cannot have")
    if len({name.lower() for name in names}) < len(names):
        raise ValueError("two names are the same, and SQL does not distinguish capital letters")
    return names


class TopicFormat(Section):
    """Settings that say how the records of topics become rows.

    NAME is the name of a topic, or a regular expression that matches whole names. It is an expression if it has other
    characters than letters, digits, `.`, `_` and `-`. The first section that matches a topic applies to it.
    """

    format: Format = "raw"
    """Format of the values. With "raw" the table has keys and values as bytes. With every other format it is typed.
    "text" decodes a value as UTF-8 into the column `value`. "json" decodes JSON objects: `columns`, `json_schema` or
    the schemas of a `registry` declare the columns, and without them every key that occurs gets a column. "avro" and
    "protobuf" decode values that Confluent's serializers wrote and whose schemas are in a registry. "avro" also decodes
    the values of an `avro_file`, and "protobuf" the messages of a `proto_file`. "debezium" decodes Debezium's change
    events into the row after the change; the events are in JSON, or in Avro if there is a `registry`."""

    key_format: Format = "raw"
    """Typed tables: format of the keys. With "raw" they are only in the column `_kafka_key`, as bytes. Every other
    format adds columns for the fields of the keys; the names of these columns begin with `_kafka_key_`. "debezium" is
    for Debezium's keys in JSON."""

    key_registry: str | None = None
    """NAME of the section `[registries.NAME]` with the schemas of keys. Keys in Avro and Protobuf need one: by default
    it is `registry`, or the only registry. If it is set, keys in JSON have the frame of Confluent's serializers."""

    key_message: str | None = None
    """The key format "protobuf": full name of the message type of the keys, such as `shop.OrderKey`. By default it is
    the first one of each `.proto` file. A key of another message type does not decode."""

    columns: dict[str, str] = Field(default={})
    """The columns of the format "json": keys of the objects, with their types. Types are `long`, `double`, `string`,
    `boolean`, `binary`, `date`, `timestamp`, `decimal(38, SCALE)`, `array<TYPE>`, `map<string, TYPE>`,
    `struct<NAME: TYPE, ...>` and those of docs/typed-tables.md. Other keys are not loaded."""

    json_schema: Annotated[str, BeforeValidator(_with_absolute_path)] = ""
    """The format "json": a JSON Schema whose properties are the columns, instead of `columns`. It is the path of a
    file, relative to this file, or the schema itself: a text that begins with `{`. Other keys are not loaded."""

    message: str | None = None
    """The format "protobuf": full name of the message type of the values, such as `shop.Order`. By default it is the
    first one of each `.proto` file. A value of another message type does not decode. With "*" values of a registry can
    have any message type, and the table has the fields of all types that occur; with `by = "schema"` in
    `[topics.NAME.tables]` that is the default."""

    proto_file: Annotated[str, BeforeValidator(absolute_path), Field(**FILE)] | None = None
    """The format "protobuf" without a registry: path of a `.proto` file, or of a descriptor set that
    `protoc --descriptor_set_out --include_imports` wrote, relative to this file. The values are messages of its
    types, without a frame."""

    proto_path: tuple[Annotated[str, BeforeValidator(absolute_path)], ...] = ()
    """The folders in which a `.proto` file finds its imports, relative to this file. By default that is the folder of
    `proto_file`."""

    avro_file: Annotated[str, BeforeValidator(absolute_path), Field(**FILE)] | None = None
    """The format "avro" without a registry: path of a file with an Avro schema as JSON, relative to this file. All
    values have this schema. They are plain Avro without a frame, unless `avro_frame` is set."""

    avro_frame: Annotated[str, AfterValidator(_avro_frame)] | None = None
    """With `avro_file`: what is before each value and names its schema. It is "single_object" for the single objects of
    Avro's specification, "glue:UUID" for the serializers of AWS Glue, or "azure:ID" for those of Azure Event Hubs (in
    the header `content-type`, or before the value). A value that names another schema does not decode."""

    registry: str | None = None
    """NAME of the section `[registries.NAME]` with the registry that has the schemas. The formats "avro" and "protobuf"
    need one, unless `avro_file` or `proto_file` is set; it can be omitted if there is only one. With the format "json"
    it also means that values have the frame of Confluent's serializers, and that their schemas are JSON Schemas. With
    the format "debezium" it means that the events are in Avro."""

    id_bytes: Literal[4, 8] = 4
    """Values and keys with schemas in a registry: the size of the id in their frame. Confluent's serializers write 4
    bytes, and those of Apicurio 8 by default. With 8, both are decoded. The registry must have the schemas under these
    ids at `/schemas/ids`: if Apicurio's serializers write global ids, its Confluent API must use them too."""

    header_columns: Annotated[Texts, AfterValidator(_header_names)] = ()
    """Typed tables: names of headers. Each gets a column of text, such as `_kafka_header_ce_id`. It has the content of
    the last header of that name, and is null for a record without it and for content that is not UTF-8."""

    add_schema_ids: bool = False
    """Values with schemas in a registry: whether a table without the column `_kafka_schema_id` gets it with its next
    rows. Older rows are null in it, until `penstock replay` fetches them again. New tables have the column anyway."""

    partition_by: str = "loaded"
    """The kind of date in the names of a new table's folders. With "loaded" it is the date of the load, with
    "event_day" the day of the record's time. Every other text is the name of a column of a typed table, a date or a
    timestamp: then it is the day of that value. A slice of a load has at most 16 open days; its other rows are in the
    folder without a day. See docs/layout.md."""

    bad_records: OnBadRecords = "keep"
    """Typed tables: what happens to records that do not decode. "keep" loads them as rows with `_error` and `_raw`, up
    to the two limits below. With "fail" one such record makes the load fail."""

    max_bad_records: Annotated[int, Field(ge=0, le=10**15)] | None = None
    """Maximum number of records of a run that do not decode. Above it, the load fails. The step that crosses the limit
    commits nothing; earlier steps of the run stay. Unlimited by default."""

    max_bad_share: Share = 0.01
    """Maximum share of a run's records that do not decode. Above it, the load fails, as above `max_bad_records`."""

    event_time: Annotated[str, Field(min_length=1)] | None = None
    """The event time of a record: "timestamp" for the record's own time, or a column of a typed table with the type
    `timestamp`, `date` or `long` (ms since 1970). With it each commit records up to which event time the table is
    complete; see docs/event-time.md. By default nothing is recorded."""

    allowed_lateness_minutes: Annotated[float, Field(ge=0, le=MAX_MINUTES, allow_inf_nan=False)] = 10
    """Minutes that a record may arrive after its event time, and that the clocks of producers, brokers and Penstock may
    differ. A record that arrives later is late: it is loaded and counted, but no valid-through waits for it."""

    personal: Texts = ()
    """Fields with values about persons, such as `email` or `address.contact`. "_kafka_key" and "_kafka_headers" are the
    key and the headers; a raw table has "key", "value" and "headers". New log entries, the statistics of new files and
    Dagster's sample rows have no value of them. With the format "json" and no declared columns, an object in such a
    field becomes JSON text, so that its keys are no columns. See docs/privacy.md."""

    personal_tags: Texts = ()
    """Tags that make a field of a schema personal, as `personal` does: those of `confluent:tags` in Avro and in JSON
    Schemas, such as "PII"."""

    @model_validator(mode="after")
    def _checked_personal(self) -> Self:
        own = _PERSONAL_OF_TYPED if self.is_typed else _PERSONAL_OF_RAW
        for path in self.personal:
            is_of_table = path in own or path.startswith(_PREFIXES_OF_PARTS)
            if not self.is_typed and path not in own:
                raise ValueError(f'`personal`: a raw table has no field {path!r}; write "key", "value" or "headers"')
            if path.startswith(_OWN_PREFIX) and not is_of_table:
                raise ValueError(
                    f"`personal`: {path} is a column of Penstock; write a field, {' or '.join(sorted(own))}"
                )
            if self.columns and not is_of_table and not self._declares(path):
                raise ValueError(f"`personal`: the settings declare no column {path!r}")
        for setting in ("partition_by", "event_time"):
            if getattr(self, setting) in self.personal:
                raise ValueError(
                    f"`{setting}` names the personal field {getattr(self, setting)!r}, and so the table would show "
                    "its values in names of folders or in its log"
                )
        if self.personal_tags and not (self.has_schemas or self.has_key_schemas or self.json_schema):
            raise ValueError("`personal_tags` needs schemas with tags: those of a registry, or `json_schema`")
        return self

    def _declares(self, path: str) -> bool:
        """Whether a path leads to a declared column, or into one."""
        return any(path == name or path.startswith(f"{name}.") for name in self.columns)

    load: LoadRules = NO_RULES
    """What a load stores of the records. Everything by default."""

    _secrets: Mapping[str, HashSecret] = PrivateAttr(default={})

    @model_validator(mode="after")
    def _checked_load(self) -> Self:
        problem = next(self._problems_of_rules(), None)
        if problem:
            raise ValueError(f"load: {problem}")
        return self

    def _problems_of_rules(self) -> Iterator[str]:
        """Sentences that say why records of this format cannot be loaded by the rules."""
        rules = self.load
        if not self.is_typed:
            if rules.has_columns or rules.raw:
                setting = next(name for name in ("drop", "mask", "hash", "raw") if getattr(rules, name))
                yield f'`{setting}` needs a `format` other than "raw": a raw table has no columns for fields'
            return
        if rules.key == DROP and self.key_encoding:
            yield '`key` = "drop" stores no columns for the fields of keys: remove `key_format`'
        for setting in ("partition_by", "event_time"):
            name = getattr(self, setting)
            if name is not None and (rule := rules.rule_of(name)):
                yield f"`{setting}` is {name}, and {named_rule(rule)} leaves no time in this column"

    @model_validator(mode="after")
    def _checked_raw_table(self) -> Self:
        if not self.partition_by:
            raise ValueError('write "loaded", "event_day" or the name of a column')
        if self.is_typed:
            return self
        if self.event_time not in {None, "timestamp"}:
            raise ValueError('`event_time` of a raw table is "timestamp": it has no columns for fields')
        if self.header_columns:
            raise ValueError('`header_columns` needs a `format` other than "raw": a raw table has only `headers`')
        if self.key_format != "raw":
            raise ValueError('`key_format` needs a `format` other than "raw": a raw table has keys as bytes')
        if self.partition_by not in _DAYS_OF_ALL_TABLES:
            raise ValueError(
                f'`partition_by` = "{self.partition_by}" needs a `format` other than "raw": a raw table has no columns '
                'for fields; write "loaded" or "event_day"'
            )
        return self

    @model_validator(mode="after")
    def _checked_columns(self) -> Self:
        sources = [name for name in ("columns", "json_schema", "registry") if getattr(self, name)]
        if self.format != "json" and (self.columns or self.json_schema):
            raise ValueError(f'`{sources[0]}` belongs to the format "json"')
        if self.format == "json" and len(sources) > 1:
            raise ValueError(f"set `{sources[0]}` or `{sources[1]}`, not both")
        if self.add_schema_ids and not self.has_schemas:
            raise ValueError("`add_schema_ids` needs values with schemas in a registry")
        if self.columns or (self.json_schema and not self.schema_file):
            self.declared_columns()
        return self

    @model_validator(mode="after")
    def _checked_protobuf(self) -> Self:
        if (self.proto_file or self.proto_path) and self.format != "protobuf":
            raise ValueError('`proto_file` and `proto_path` belong to the format "protobuf"')
        if self.proto_path and not self.proto_file:
            raise ValueError("`proto_path` needs a `proto_file`")
        if self.proto_file and self.registry:
            raise ValueError("set `proto_file` or `registry`, not both")
        if self.message is not None and self.format != "protobuf":
            raise ValueError('`message` belongs to the format "protobuf"')
        if self.key_message is not None and self.key_format != "protobuf":
            raise ValueError('`key_message` belongs to the key format "protobuf"')
        if self.message == ALL_MESSAGES and self.proto_file:
            raise ValueError(f'message: "{ALL_MESSAGES}" needs a registry, because a frame names the type of a value')
        for name in ("message", "key_message"):
            message = getattr(self, name)
            is_all = name == "message" and message == ALL_MESSAGES
            if message is not None and not is_all and not _MESSAGE_NAME.fullmatch(message):
                raise ValueError(f"{name}: write the full name of a message type, such as `shop.Order`")
        return self

    @model_validator(mode="after")
    def _checked_avro(self) -> Self:
        if self.avro_file and self.format != "avro":
            raise ValueError('`avro_file` belongs to the format "avro"')
        if self.avro_frame and not self.avro_file:
            raise ValueError("`avro_frame` needs an `avro_file`")
        if self.avro_file and self.registry:
            raise ValueError("set `avro_file` or `registry`, not both")
        return self

    @property
    def schema_file(self) -> Path | None:
        """The file that `json_schema`, `avro_file` or `proto_file` names; None if there is none."""
        if file := self.avro_file or self.proto_file:
            return Path(file)
        return Path(self.json_schema) if _is_path(self.json_schema) else None

    def declared_columns(self) -> "pa.Schema":
        """The columns that the settings declare.

        Raises:
            ValueError: a type or the schema is not valid.
            OSError: the file with the schema cannot be read.
        """
        # Imported here, because Arrow is slow to import, and most commands need no types of columns.
        from kafka_io.values.json.schema import columns_of_json_schema  # noqa: PLC0415
        from kafka_io.values.json.settings import columns_of_settings  # noqa: PLC0415

        if self.columns:
            return columns_of_settings(self.columns)
        file = self.schema_file
        return columns_of_json_schema(file.read_text(encoding="utf-8-sig") if file else self.json_schema)

    def declared_avro(self) -> str:
        """The text of `avro_file`.

        Raises:
            InvalidSchema: it is no Avro schema.
            OSError: the file cannot be read.
        """
        # Imported here for the same reason.
        from kafka_io.values.avro.schema import parse_avro  # noqa: PLC0415

        assert self.avro_file is not None
        try:
            text = Path(self.avro_file).read_text(encoding="utf-8-sig")
            parse_avro(text)
        except UnicodeDecodeError as error:
            raise InvalidSchema(f"{self.avro_file}: the text is not valid UTF-8") from error
        except InvalidSchema as error:
            raise InvalidSchema(f"{self.avro_file}: {error.reason}") from error
        return text

    def declared_messages(self) -> "ProtobufSchema":
        """The message types of `proto_file`.

        Raises:
            InvalidSchema: a file is not valid, or lacks something.
            OSError: a file cannot be read.
        """
        # Imported here for the same reason.
        from kafka_io.values.protobuf.files import read_protobuf  # noqa: PLC0415

        assert self.proto_file is not None
        return read_protobuf(Path(self.proto_file), [Path(folder) for folder in self.proto_path])

    @property
    def has_schemas(self) -> bool:
        """Whether the schemas of the values are in a registry."""
        is_always = self.format in _ALWAYS_WITH_SCHEMAS and not (self.avro_file or self.proto_file)
        return is_always or (self.registry is not None and self.format in _WITH_SCHEMAS)

    def with_all_messages(self) -> Self:
        """The format with values of all message types of Protobuf, unless it names one."""
        if self.format != "protobuf" or self.message or self.proto_file:
            return self
        return self.model_copy(update={"message": ALL_MESSAGES})

    def with_registries(self, names: Iterable[str]) -> Self:
        """The format with the names of the registries that it needs. One that is missing is the first of `names`."""
        only = next(iter(names), None)
        needed = {}
        if self.has_schemas and not self.registry:
            needed["registry"] = only
        if self.needs_key_registry and not self.key_registry:
            needed["key_registry"] = self.registry or only
        return self.model_copy(update=needed) if needed else self

    @property
    def secrets(self) -> Mapping[str, HashSecret]:
        """The keys of the hashes that the rules name."""
        return self._secrets

    def with_secrets(self, secrets: Mapping[str, HashSecret]) -> Self:
        """The format with the keys of the hashes that its rules name."""
        if not self.load.secrets:
            return self
        format_ = self.model_copy()
        format_._secrets = {name: secrets[name] for name in self.load.secrets}  # noqa: SLF001 - it is this class
        return format_

    def registry_problem(self, names: Collection[str]) -> str | None:
        """A key, and why it is missing or wrong if the settings have registries of these names; None if all is well."""
        for key in ("registry", "key_registry"):
            registry = getattr(self, key)
            if registry is not None and registry not in names:
                return f"{key}: there is no registry {registry!r} in the settings"
        if self.needs_key_registry and not (self.key_registry or self.registry or len(names) == 1):
            return f'key_registry: keys in "{self.key_format}" need the name of a registry'
        if self.has_schemas and not (self.registry or len(names) == 1):
            return f'registry: the format "{self.format}" needs the name of a registry in [registries]'
        return None

    @property
    def encoding(self) -> str:
        """The encoding of the values: its name in `pipelines.fetch.formats`, and a message type or a frame after it."""
        if self.avro_file:
            return " ".join(filter(None, ("local avro", self.avro_frame)))
        if self.format == "protobuf":
            return " ".join(filter(None, ("local protobuf" if self.proto_file else "protobuf", self.message)))
        if self.has_schemas:
            return _WITH_SCHEMAS[self.format]
        is_inferred = self.format == "json" and not (self.columns or self.json_schema)
        return "inferred json" if is_inferred else self.format

    @property
    def needs_key_registry(self) -> bool:
        """Whether keys of this format always have schemas in a registry."""
        return self.key_format in _ALWAYS_WITH_SCHEMAS

    @property
    def has_key_schemas(self) -> bool:
        """Whether the schemas of the keys are in a registry."""
        return self.needs_key_registry or self._has_framed_keys

    @property
    def _has_framed_keys(self) -> bool:
        return self.key_format == "json" and self.key_registry is not None

    @property
    def key_encoding(self) -> str:
        """How the keys are encoded, as `encoding` says it; empty if they stay bytes."""
        if self._has_framed_keys:
            return "framed json"
        encoding = _KEY_ENCODINGS.get(self.key_format, self.key_format)
        return f"{encoding} {self.key_message}" if encoding == "protobuf" and self.key_message else encoding

    @property
    def allowed_lateness_ms(self) -> int:
        """`allowed_lateness_minutes` in milliseconds."""
        return round(self.allowed_lateness_minutes * _MINUTE_MS)

    @property
    def is_typed(self) -> bool:
        """Whether the table has columns for the fields of the values."""
        return self.format != "raw"


RAW_FORMAT = TopicFormat()


def check_name(name: str) -> None:
    """Check the NAME of a section.

    Raises:
        ValueError: it is no topic and no regular expression.
    """
    try:
        re.compile(name)
    except re.error as error:
        raise ValueError(f"{name!r} is neither a topic nor a regular expression: {error}") from error
