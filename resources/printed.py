"""The JSON of results: the fields of a dataclass are the fields of an object.

`--json` prints what `printed` returns. docs/output.schema.json describes the same fields: it is made from the same
dataclasses by `pipelines/cli/output_schema.py`. A class with a method `printed` has the JSON of what it returns.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import date
from typing import Any, Generic, Self, TypeVar

from kafka_io.model import OffsetRange

ValueT = TypeVar("ValueT")

HIDDEN = {"printed": "not at all"}
"""The metadata of a field that is not printed."""
INLINED = {"printed": "inlined"}
"""The metadata of a field whose own fields are printed in its place."""


class printed_property(Generic[ValueT]):  # noqa: N801 - it is used as a decorator, like `property`
    """A property that is printed like a field, after the fields of its class."""

    def __init__(self, compute: Callable[[Any], ValueT]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __get__(self, result: Any, owner: type | None = None) -> ValueT:
        return self.compute(result)


def printed(value: Any) -> Any:
    """The JSON of a value, as dicts, lists and plain values."""
    if isinstance(value, OffsetRange):
        value = PrintedRange.of(value)
    if hasattr(value, "printed"):
        return printed(value.printed())
    if is_dataclass(value):
        return dict(_fields(value))
    match value:
        case Mapping():
            return {str(name): printed(item) for name, item in value.items()}
        case tuple() | list():
            return [printed(item) for item in value]
        case date():
            return value.isoformat()
    return value


def printed_properties(class_: type) -> dict[str, "printed_property[Any]"]:
    """The properties of a class that are printed, by name."""
    own = (item for parent in reversed(class_.__mro__) for item in vars(parent).items())
    return {name: member for name, member in own if isinstance(member, printed_property)}


def _fields(result: Any) -> Iterator[tuple[str, Any]]:
    """The names of a dataclass that are printed, with their values."""
    for item in fields(result):
        value = getattr(result, item.name)
        if item.metadata == INLINED:
            yield from printed(value).items()
        elif item.metadata != HIDDEN:
            yield item.name, printed(value)
    for name in printed_properties(type(result)):
        yield name, printed(getattr(result, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedRange:
    """Offsets `[start, end)` of a partition; `broker` is null from Kafka 0.8 on."""

    broker: int | None
    partition: int
    start: int
    end: int

    @classmethod
    def of(cls, offsets: OffsetRange) -> Self:
        """The printed form of a range."""
        id_ = offsets.partition
        return cls(broker=id_.broker, partition=id_.partition, start=offsets.start, end=offsets.stop)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedError:
    """An error. The fields of its place are null if the place is not known."""

    code: str
    """The code, such as `PS-301`: `penstock explain PS-301` says what it means. It never gets another meaning."""
    kind: str
    """The name of the error, such as `CursorExpired`; `UsageError` for wrong use."""
    message: str
    """A sentence that says what happened. It does not contain the place."""
    cluster: str | None = None
    broker: str | None = None
    topic: str | None = None
    partition: str | None = None
    """The partition in the form that `--partition` takes: a number, or `BROKER-N` in Kafka 0.7."""
    offset: int | None = None
    registry: str | None = None
    """The name of a schema registry of the settings."""
    subject: str | None = None
    """A subject of the schema registry."""
    schema_id: int | None = None
    """The id of a schema in the registry."""
    retriable: bool
    """Whether the same command can succeed later without a change."""
