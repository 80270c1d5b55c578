"""The settings of a topic's state table, which keeps the newest row of each key."""

from collections.abc import Collection, Iterator
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from resources.settings.rules.load_rules import DROP, LoadRules, named_rule
from resources.settings.schedules import Texts
from resources.settings.section import Section
from resources.settings.topic_formats import TopicFormat

RECORD_KEY = "key"
"""The name by which settings mean the key of the record, in raw and in typed tables."""
UNAVAILABLE_VALUE = "__debezium_unavailable_value"
"""Debezium's default for `unavailable.value.placeholder`."""
_HEX = "hex:"
_KEY_PREFIX = "_kafka_key_"
_HEADER_PREFIX = "_kafka_header_"
_OWN_PREFIX = "_kafka_"


def placeholder_bytes(text: str) -> bytes:
    """What `unavailable_value` means.

    Raises:
        ValueError: the digits after `hex:` are not valid.
    """
    if not text.startswith(_HEX):
        return text.encode()
    try:
        return bytes.fromhex(text.removeprefix(_HEX))
    except ValueError as error:
        raise ValueError("write a text, or `hex:` and an even number of hexadecimal digits") from error


def _placeholder(text: str | None) -> str | None:
    placeholder_bytes(text or "")
    return text


class StateSettings(Section):
    """A second table with the newest row of each key. See docs/state-tables.md."""

    key: Texts = Field(min_length=1)
    """Fields that identify what a row is about. "key" is the key of the record, as bytes. Other names are columns of a
    typed table."""

    order: Texts = ()
    """Typed tables: fields that say which of two rows is newer, such as "__source.lsn"; a point leads to a member of a
    struct. By default it is the position in the log of the database with the format "debezium", and otherwise the
    offset."""

    unavailable_value: Annotated[str | None, AfterValidator(_placeholder)] = None
    """Typed tables: what Debezium writes in place of a large value that an update did not touch: the connector's
    `unavailable.value.placeholder`, a text, or `hex:` and bytes. The state table keeps the value of the row before. By
    default it is "__debezium_unavailable_value" with the format "debezium", and otherwise nothing; "" is nothing
    too."""

    memory_mib: Annotated[int, Field(ge=128, le=1_000_000)] = 1024
    """Maximum memory in MiB with which an update compares keys. What needs more goes to temporary files."""

    @model_validator(mode="after")
    def _has_distinct_fields(self) -> "StateSettings":
        for name in ("key", "order"):
            fields = getattr(self, name)
            if len(set(fields)) < len(fields):
                raise ValueError(f"{name}: a field is named twice")
        return self

    def problems(self, format_: TopicFormat) -> Iterator[str]:
        """Sentences that say why no table of this format can have such a state table."""
        if self.unavailable_value and not format_.is_typed:
            yield "unavailable_value: a raw table has no columns for fields; set a `format`"
        fields = [("key", name) for name in self.key if name != RECORD_KEY]
        fields += [("order", name.partition(".")[0]) for name in self.order]
        for setting, name in fields:
            if not format_.is_typed:
                yield f'{setting}: a raw table has no field {name!r}; use "key" as the key, or set a `format`'
            elif name.startswith(_KEY_PREFIX) and not format_.key_encoding:
                yield f"{setting}: the column {name} needs a `key_format`"
            elif name.startswith(_HEADER_PREFIX) and name.removeprefix(_HEADER_PREFIX) not in format_.header_columns:
                yield f"{setting}: the column {name} needs its header in `header_columns`"
            elif not name.startswith(_OWN_PREFIX) and name not in _declared(format_, name):
                yield f"{setting}: the table has no column {name!r}; it has only those that the settings declare"
        yield from self._problems_of_rules(format_.load)

    def _problems_of_rules(self, rules: LoadRules) -> Iterator[str]:
        """Sentences that say why no table with these rules can have such a state table."""
        for name in self.key:
            is_key = name == RECORD_KEY or name.startswith(_OWN_PREFIX)
            rule = ("drop" if rules.key == DROP else None) if is_key else rules.rule_of(name)
            if rule in {"drop", "mask"}:
                yield f"key: {named_rule(rule)} leaves the same value in {name} of all rows, so it identifies nothing"
        for name in self.order:
            if rule := rules.rule_of(name):
                yield f"order: {named_rule(rule)} leaves nothing in {name} that has an order"


def _declared(format_: TopicFormat, name: str) -> Collection[str]:
    """The names of the columns, if the settings declare all of them; otherwise any name may be one."""
    if format_.format == "text":
        return {"value"}
    return format_.columns or {name}
