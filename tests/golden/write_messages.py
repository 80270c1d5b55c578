"""Writes the files of tests/golden/messages: the schemas and the bytes of Kafka's own clients.

    python -m tests.golden.write_messages

`schemas.json` has the fields of each version and `errors.json` the error codes. `<api>.json` has examples: the
values of the fields, and the bytes that Kafka's classes wrote for them in each version. See README.md in that folder.
"""

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import py4j.java_gateway as py4j

from resources.machines.java import find_java
from tests.all_requests import REQUESTS
from tests.brokers.jars import classpath
from tests.golden.kafka_schemas import NEW, OLD, Field, Message, message, texts

FOLDER = Path(__file__).parent / "messages"
SIDES = ("Request", "Response")
CLIENT = "golden"
UNKNOWN_TAGS = {90: b"", 91: b"\xff\x00unknown", 100_000: b"far"}
_LINE = 120
Example = tuple[dict[str, Any], dict[str, str]]  # fields, and bytes by version


class Api:
    """One API in both releases: 4.1 for the versions that it has, 3.9 for older ones."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._known = {
            release: {side: message(name + side, release=release) for side in SIDES} for release in (OLD, NEW)
        }
        newest = self._known[NEW]["Request"]
        self.newest = newest.versions[1] - bool(newest.raw.get("latestVersionUnstable"))

    def of(self, side: str, version: int) -> Message:
        """The request or response schema of the release that has `version`."""
        newest = self._known[NEW][side]
        return newest if version >= newest.versions[0] else self._known[OLD][side]

    def schema(self) -> dict[str, Any]:
        """The entry of this API in `schemas.json`."""
        newest = self._known[NEW]["Request"]
        facts = {"key": newest.key, "versions": [0, self.newest], "flexible_from": newest.flexible_from}
        return facts | {side.lower(): self._side(side) for side in SIDES}

    def _side(self, side: str) -> dict[str, Any]:
        layouts: list[tuple[str, list[int]]] = []
        fields_by_path: dict[str, Field] = {}
        for version in range(self.newest + 1):
            fields = self.of(side, version).fields(version)
            fields_by_path |= {path: nested for field in fields for path, nested in field.everywhere()}
            if layouts and layouts[-1][0] == texts(fields):
                layouts[-1][1].append(version)
            else:
                layouts.append((texts(fields), [version]))
        return {
            "fields": {f"{versions[0]}-{versions[-1]}": text for text, versions in layouts},
            "defaults": {
                path: str(field.default) for path, field in fields_by_path.items() if field.default is not None
            },
            "ignorable": [path for path, field in fields_by_path.items() if field.ignorable],
        }


class Values:
    """Creates example values of every type; numbers and texts are never used twice."""

    def __init__(self) -> None:
        self._next = count(1)

    def full(self, fields: tuple[Field, ...]) -> dict[str, Any]:
        """A value for every field. Arrays have two items, and the second item has only what it must have."""
        return {field.snake: self._filled(field) for field in fields}

    def empty(self, fields: tuple[Field, ...]) -> dict[str, Any]:
        """The fields without a tag: null if the field may be null, else the smallest value."""
        return {field.snake: self._emptied(field) for field in fields if field.tag is None}

    def _filled(self, field: Field) -> Any:
        if not field.array:
            return self.full(field.fields) if field.fields else self._scalar(field.kind)
        if field.fields:
            return [self.full(field.fields), self.empty(field.fields)]
        return [self._scalar(field.kind), self._scalar(field.kind)]

    def _scalar(self, kind: str) -> Any:
        number = next(self._next)
        return {
            "bool": True,
            "int8": -number % 128,
            "int16": 300 + number,
            "int32": 70_000 + number,
            "int64": 5_000_000_000 - number,
            "string": f"s\u00e4{number}",
            "bytes": (b"\x00\xff%d" % number).hex(),
            "records": (b"records %d" % number).hex(),
            "uuid": str(UUID(int=2**127 + number)),
        }[kind]

    def _emptied(self, field: Field) -> Any:
        if field.nullable:
            return None
        if field.array:
            return []
        return {"bool": False, "string": "", "bytes": "", "records": "", "uuid": str(UUID(int=0))}.get(field.kind, 0)


def java_json(fields: tuple[Field, ...], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values in the JSON format of Kafka's converters."""
    return {field.camel: _java_value(field, values[field.snake]) for field in fields if field.snake in values}


def _java_value(field: Field, value: Any) -> Any:
    if isinstance(value, list):
        return [java_json(field.fields, element) if field.fields else element for element in value]
    if isinstance(value, dict):
        return java_json(field.fields, value)
    if value is None:
        return None
    if field.kind == "uuid":
        return base64.urlsafe_b64encode(UUID(value).bytes).decode().rstrip("=")
    if field.kind in {"bytes", "records"}:
        return base64.b64encode(bytes.fromhex(value)).decode()
    return value


class Clients:
    """Kafka's classes of one release, in a Java process of their own."""

    def __init__(self, jvm: Any) -> None:
        self._jvm = jvm
        self._json = jvm.com.fasterxml.jackson.databind.ObjectMapper()

    def encoded(self, of: Message, version: int, values: Mapping[str, Any], *, unknown: bool = False) -> str:
        """The bytes that Kafka writes, in hexadecimal; with `unknown` each struct also has unknown tagged fields."""
        package = self._jvm.org.apache.kafka.common.message
        converter = getattr(package, f"{of.name}DataJsonConverter")
        node = self._json.readTree(json.dumps(java_json(of.fields(version), values)))
        data = converter.read(node, version)
        if unknown:
            self._tagged(data, of.fields(version))
        return self._written(data, version)

    def header(self, api: Api, side: str, version: int) -> str:
        """The bytes of the header, in hexadecimal, with correlation id 0."""
        number = api.of(side, version).key
        key = self._jvm.org.apache.kafka.common.protocol.ApiKeys.forId(number)
        messages = self._jvm.org.apache.kafka.common.message
        if side == "Response":
            answered = messages.ResponseHeaderData().setCorrelationId(0)
            return self._written(answered, key.responseHeaderVersion(version))
        request_header = (
            messages.RequestHeaderData().setRequestApiKey(number).setRequestApiVersion(version).setClientId(CLIENT)
        )
        return self._written(request_header, key.requestHeaderVersion(version))

    def errors(self) -> Iterator[tuple[int, str, bool, bool]]:
        """For each error: code, name, whether Kafka's clients retry, and whether they refresh their metadata before."""
        kinds = {
            name: self._jvm.java.lang.Class.forName(f"org.apache.kafka.common.errors.{name}")
            for name in ("RetriableException", "InvalidMetadataException")
        }
        for error in self._jvm.org.apache.kafka.common.protocol.Errors.values():
            exception = error.exception()
            retriable, refresh = (exception is not None and kind.isInstance(exception) for kind in kinds.values())
            yield error.code(), error.name(), retriable, refresh

    def _written(self, data: Any, version: int) -> str:
        protocol = self._jvm.org.apache.kafka.common.protocol
        cache, size = protocol.ObjectSerializationCache(), protocol.MessageSizeAccumulator()
        data.addSize(size, cache, version)
        buffer = self._jvm.java.nio.ByteBuffer.allocate(size.totalSize())
        data.write(protocol.ByteBufferAccessor(buffer), cache, version)
        return bytes(buffer.array()).hex()

    def _tagged(self, data: Any, fields: tuple[Field, ...]) -> None:
        for tag, content in UNKNOWN_TAGS.items():
            data.unknownTaggedFields().add(
                self._jvm.org.apache.kafka.common.protocol.types.RawTaggedField(tag, content)
            )
        for field in fields:
            if field.fields:
                for struct in _structs(field, getattr(data, field.camel)()):
                    self._tagged(struct, field.fields)


def _structs(field: Field, value: Any) -> Iterator[Any]:
    if not field.array:
        yield value
    elif value is not None:
        iterator = value.iterator()
        while iterator.hasNext():
            yield iterator.next()


@contextmanager
def clients(release: str) -> Iterator[Clients]:
    """Start a Java process with Kafka's classes of this release; it ends with the `with` block."""
    gateway = py4j.JavaGateway.launch_gateway(
        classpath=classpath(release), java_path=str(find_java() / "bin" / "java"), die_on_exit=True
    )
    try:
        yield Clients(gateway.jvm)
    finally:
        gateway.shutdown()


def examples(api: Api, side: str, clients_by_name: Mapping[str, Clients]) -> dict[str, Any]:
    """One side of an API's file: headers and examples. Versions with the same values share one example."""
    examples_by_kind: dict[str, list[Example]] = {"full": [], "empty": []}
    tagged: dict[str, str] = {}
    for version in range(api.newest + 1):
        of = api.of(side, version)
        client, fields = clients_by_name[of.release], of.fields(version)
        for kind, pairs in examples_by_kind.items():
            values = Values().full(fields) if kind == "full" else Values().empty(fields)
            if not pairs or pairs[-1][0] != values:
                pairs.append((values, {}))
            pairs[-1][1][str(version)] = client.encoded(of, version, values)
            if kind == "full" and of.flexible_from is not None and version >= of.flexible_from:
                tagged[str(version)] = client.encoded(of, version, values, unknown=True)
    rows = {
        kind: [{"fields": fields, "bytes": data} for fields, data in pairs] for kind, pairs in examples_by_kind.items()
    }
    headers = {str(version): clients_by_name[NEW].header(api, side, version) for version in range(api.newest + 1)}
    return {"headers": headers, **rows, "unknown_tags": tagged}


def _write(name: str, content: Any) -> None:
    (FOLDER / f"{name}.json").write_text(_text(content) + "\n")


def _text(content: Any, *, depth: int = 0) -> str:
    """JSON in short lines, so that a diff shows what has changed."""
    flat = json.dumps(content)
    if len(flat) <= _LINE or not content:
        return flat
    inner, outer = "\n" + " " * (depth + 1), "\n" + " " * depth
    if isinstance(content, dict):
        rows = [f"{json.dumps(name)}: {_text(element, depth=depth + 1)}" for name, element in content.items()]
        return f"{{{inner}{(',' + inner).join(rows)}{outer}}}"
    if isinstance(content, list):
        return f"[{inner}{(',' + inner).join(_text(element, depth=depth + 1) for element in content)}{outer}]"
    return flat


def main() -> None:
    """Write all files."""
    FOLDER.mkdir(exist_ok=True)
    apis = [Api(kind.API.name) for kind in REQUESTS.values()]
    _write("schemas", {api.name: api.schema() for api in apis})
    with clients(OLD) as old, clients(NEW) as new:
        clients_by_name = {OLD: old, NEW: new}
        _write("errors", list(new.errors()))
        for api in apis:
            _write(api.name, {side.lower(): examples(api, side, clients_by_name) for side in SIDES})


if __name__ == "__main__":
    main()
