"""Reads Kafka's own message schemas from the jars of its clients. Tests compare our message tables with them."""

import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.brokers.jars import classpath

# 4.x removed old versions, and the fields that only these had. 3.9 is the last release that has them.
OLD, NEW = "3.9.1", "4.1.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of a message in one version. If it is a struct, `fields` are the fields of the struct."""

    name: str
    kind: str
    array: bool
    nullable: bool
    tag: int | None
    default: Any
    ignorable: bool
    fields: tuple["Field", ...]

    @property
    def snake(self) -> str:
        """The name in snake_case, as in our message tables."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", self.name).lower()

    @property
    def camel(self) -> str:
        """The name in camelCase, as in Kafka's JSON."""
        return self.name[0].lower() + self.name[1:]

    @property
    def text(self) -> str:
        """`name type`: [] before the type of an array, ? if it may be null, # before a tag, and a struct in braces."""
        kind = "bytes" if self.kind == "records" else f"{{{texts(self.fields)}}}" if self.fields else self.kind
        tag = "" if self.tag is None else f" #{self.tag}"
        return f"{self.snake} {'[]' * self.array}{kind}{'?' * self.nullable}{tag}"

    def everywhere(self, path: str = "") -> Iterator[tuple[str, "Field"]]:
        """This field and all fields inside it, each with its path."""
        yield path + self.snake, self
        for field in self.fields:
            yield from field.everywhere(f"{path}{self.snake}.")


def texts(fields: tuple[Field, ...]) -> str:
    """The texts of the fields. Tagged fields come last, ordered by tag."""
    return ", ".join(field.text for field in sorted(fields, key=lambda field: -1 if field.tag is None else field.tag))


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """The schema of a request or answer in one release of Kafka."""

    key: int
    name: str
    release: str
    versions: tuple[int, int]
    flexible_from: int | None
    raw: Mapping[str, Any]

    def fields(self, version: int) -> tuple[Field, ...]:
        """The fields that the message has in one version."""
        structs = {struct["name"]: struct["fields"] for struct in self.raw.get("commonStructs", ())}
        return _fields(self.raw["fields"], version, structs)


def message(name: str, *, release: str) -> Message:
    """Read a message by its name in the schemas, such as FetchRequest. Its newest version may be unstable in 4.1."""
    jar = Path(classpath(release)).parent / f"kafka-clients-{release}.jar"
    with zipfile.ZipFile(jar) as file:
        text = file.read(f"common/message/{name}.json").decode()
    raw = json.loads(re.sub(r"^\s*//.*$|(?<=[,\]}\"])\s*//.*$", "", text, flags=re.MULTILINE))
    first, last = _range(raw["validVersions"])
    assert last is not None
    flexible = raw["flexibleVersions"]
    return Message(
        key=raw["apiKey"],
        name=name,
        release=release,
        versions=(first, last),
        flexible_from=None if flexible == "none" else _range(flexible)[0],
        raw=raw,
    )


def _range(text: str) -> tuple[int, int | None]:
    first, _, last = text.partition("-")
    if text.endswith("+"):
        return int(text[:-1]), None
    return int(first), int(last or first)


def _holds(text: str | None, version: int) -> bool:
    if text is None or text == "none":
        return False
    first, last = _range(text)
    return first <= version and (last is None or version <= last)


def _fields(raw: list[dict[str, Any]], version: int, structs: Mapping[str, Any]) -> tuple[Field, ...]:
    return tuple(_field(field, version, structs) for field in raw if _holds(field["versions"], version))


def _field(raw: dict[str, Any], version: int, structs: Mapping[str, Any]) -> Field:
    kind = raw["type"].removeprefix("[]")
    inner = raw.get("fields") or structs.get(kind, [])
    return Field(
        name=raw["name"],
        kind=kind,
        array=raw["type"].startswith("[]"),
        nullable=_holds(raw.get("nullableVersions"), version),
        tag=raw["tag"] if _holds(raw.get("taggedVersions"), version) else None,
        default=raw.get("default"),
        ignorable=raw.get("ignorable", False),
        fields=_fields(inner, version, structs),
    )
