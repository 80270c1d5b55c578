"""Messages that Kafka's own classes wrote, and our message tables in the notation of `schemas.json`."""

import dataclasses
import json
import types
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from kafka_io.wire import types as wire_types
from kafka_io.wire.schema import Api, FieldVersions, Request
from tests.all_requests import REQUESTS

MESSAGES = Path(__file__).parent / "golden" / "messages"
SIDES = ("request", "response")
KINDS: dict[str, type[Request[Any]]] = {kind.API.name: kind for kind in REQUESTS.values()}
_NAMES = {getattr(wire_types, name): name.lower() for name in ("Bool", "Int8", "Int16", "Int32", "Int64", "Uuid")} | {
    wire_types.String: "string",
    wire_types.WireBytes: "bytes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Golden:
    """One message in one version: `message` is our object, `header` and `body` are the bytes that Kafka wrote."""

    api: Api[Any]
    side: str
    version: int
    name: str
    message: Any
    header: bytes
    body: bytes

    @property
    def frame(self) -> bytes:
        """The bytes on the wire, with correlation id 0 and the client id "golden"."""
        return (len(self.header) + len(self.body)).to_bytes(4, "big") + self.header + self.body

    def __str__(self) -> str:
        return f"{self.api.name}-{self.side}-v{self.version}-{self.name}"


@cache
def load(name: str) -> Any:
    """The content of the file golden/messages/<name>.json."""
    return json.loads((MESSAGES / f"{name}.json").read_text())


def kind_of(api: str, side: str) -> type:
    """Our class of an API's request or response; `side` is one of SIDES."""
    kind = KINDS[api]
    return kind if side == "request" else kind.API.answer


def goldens(api: str, *names: str) -> Iterator[Golden]:
    """The examples of an API: "full", "empty", or "unknown_tags", which is "full" with unknown tagged fields."""
    for side in SIDES:
        for name in names:
            yield from _of(api, side, name)


def _of(api: str, side: str, name: str) -> Iterator[Golden]:
    file = load(api)[side]
    for example in file["full" if name == "unknown_tags" else name]:
        for version, body in example["bytes"].items():
            if name == "unknown_tags":
                if version not in file[name]:
                    continue
                body = file[name][version]  # noqa: PLW2901 - the fields are the same, the bytes are not
            yield Golden(
                api=KINDS[api].API,
                side=side,
                version=int(version),
                name=name,
                message=built(kind_of(api, side), example["fields"]),
                header=bytes.fromhex(file["headers"][version]),
                body=bytes.fromhex(body),
            )


def built(kind: type, values: dict[str, Any]) -> Any:
    """Our object with the values of an example."""
    hints = get_type_hints(kind, include_extras=True)
    return kind(**{name: _value(hints[name], value) for name, value in values.items()})


def _value(hint: Any, value: Any) -> Any:
    if value is None:
        return None
    inner, _ = without_none(hint)
    if get_origin(inner) is tuple:
        return tuple(_value(get_args(inner)[0], element) for element in value)
    if dataclasses.is_dataclass(inner):
        assert isinstance(inner, type)
        return built(inner, value)
    if inner == wire_types.Uuid:
        return UUID(value)
    return bytes.fromhex(value) if inner == wire_types.WireBytes else value


def without_none(hint: Any) -> tuple[Any, bool]:
    """The type hint without None, and whether it allowed None."""
    if get_origin(hint) in (Union, types.UnionType):
        (inner,) = (argument for argument in get_args(hint) if argument is not type(None))
        return inner, True
    return hint, False


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One field of one of our message tables; `path` includes the names of the structs around it."""

    path: str
    hint: Any
    default: Any
    row: FieldVersions


def columns(kind: type, path: str = "") -> Iterator[Column]:
    """The fields of a message table, and of all structs in it."""
    hints = get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        row = field.metadata.get("wire", FieldVersions())
        yield Column(path=path + field.name, hint=hints[field.name], default=field.default, row=row)
        inner, _ = without_none(hints[field.name])
        inner = get_args(inner)[0] if get_origin(inner) is tuple else inner
        if dataclasses.is_dataclass(inner):
            assert isinstance(inner, type)
            yield from columns(inner, f"{path}{field.name}.")


def text(kind: type, version: int) -> str:
    """The fields that a message table has in one version, in the notation of `schemas.json`."""
    hints = get_type_hints(kind, include_extras=True)
    rows = [(field.name, field.metadata.get("wire", FieldVersions())) for field in dataclasses.fields(kind)]
    present = [(name, row) for name, row in rows if row.is_in(version)]
    present.sort(key=lambda item: -1 if item[1].tag is None else item[1].tag)
    return ", ".join(_field_text(name, hints[name], row, version) for name, row in present)


def _field_text(name: str, hint: Any, row: FieldVersions, version: int) -> str:
    inner, nullable = without_none(hint)
    array = get_origin(inner) is tuple
    inner = get_args(inner)[0] if array else inner
    kind = _NAMES[inner] if get_origin(inner) is Annotated else f"{{{text(inner, version)}}}"
    null = "?" if nullable and version >= row.null_since else ""
    tag = "" if row.tag is None else f" #{row.tag}"
    return f"{name} {'[]' * array}{kind}{null}{tag}"
