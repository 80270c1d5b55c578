"""The settings reference, in Markdown, made from the models that read the file: it cannot say what they do not do."""

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resources.settings import DEFAULT_PATH, PATH_VARIABLE, Settings

EXAMPLE = Path(__file__).parent / "settings_example.toml"
"""A file that sets every key."""

_Schema = Mapping[str, Any]
_HEAD = f"""\
# Settings

One file, `{DEFAULT_PATH}`, for the command line and Dagster alike; its path is `--settings`, else the variable
`{PATH_VARIABLE}`, else the working directory's. It is [TOML](https://toml.io). An unknown key is an error.

This page is made from the code: `penstock config reference` prints it. `penstock config check` says what a file means,
and `penstock config show` prints all settings that hold.
"""
_TAIL = """\
## An example

It sets every key; a file of your own needs `lake` and one cluster.

```toml
{example}```
"""
_PER_NAME = "NAME"  # stands for what the user calls a cluster or a group
_KINDS = {"string": "text", "boolean": "true or false", "integer": "whole number", "number": "number"}
_FORMATS = {"secret": "`env:NAME` or `file:PATH`", "path": "path, relative to this file"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of a section: `kind` is what may stand there, in words; `default` is empty where it must be given."""

    name: str
    kind: str
    default: str
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionPage:
    """A section of the file: all the places where it may stand, and its keys."""

    places: tuple[str, ...]
    meaning: str
    keys: tuple[Key, ...]


def sections() -> Sequence[SectionPage]:
    """All sections, those of the file itself first."""
    schema = Settings.model_json_schema()
    places: dict[str, list[str]] = {}
    models = {"": schema}
    waiting = deque([("", "")])
    while waiting:
        place, model = waiting.popleft()
        places.setdefault(model, []).append(place)
        for name, field in models[model]["properties"].items():
            found, below = _section_of(field)
            if found in schema["$defs"] and "properties" in schema["$defs"][found]:
                models[found] = schema["$defs"][found]
                waiting.append((".".join(part for part in (place, name, below) if part), found))
    return [_page(schema, models[model], found) for model, found in places.items()]


def reference() -> str:
    """The whole page."""
    parts = [_HEAD, *("\n".join(_lines(one)) + "\n" for one in sections())]
    return "\n".join([*parts, _TAIL.format(example=EXAMPLE.read_text(encoding="utf-8"))])


def _page(schema: _Schema, model: _Schema, places: Sequence[str]) -> SectionPage:
    required = model.get("required", ())
    keys = (_key(schema, name, field, required=name in required) for name, field in model["properties"].items())
    return SectionPage(places=tuple(places), meaning=_line(model["description"]), keys=tuple(keys))


def _key(schema: _Schema, name: str, field: _Schema, *, required: bool) -> Key:
    default = "" if required else _default(field)
    return Key(name=name, kind=_kind(schema, field), default=default, meaning=_line(field["description"]))


def _section_of(field: _Schema) -> tuple[str, str]:
    """The model that a field leads to, and `NAME` if there is one for each name; else nothing."""
    rest = field.get("additionalProperties")
    if isinstance(rest, Mapping):
        return _section_of(rest)[0], _PER_NAME
    return _plain(field).get("$ref", "").rpartition("/")[2], ""


def _plain(field: _Schema) -> _Schema:
    """A field that may be left out, as it is where it is not."""
    return next((one for one in field.get("anyOf", ()) if one.get("type") != "null"), field)


def _kind(schema: _Schema, field: _Schema) -> str:
    field = _plain(field)
    if "$ref" in field:
        target = schema["$defs"][field["$ref"].rpartition("/")[2]]
        return _kind(schema, target) if "enum" in target else "section"
    if "enum" in field:
        return " or ".join(f"`{json.dumps(one)}`" for one in field["enum"])
    if "additionalProperties" in field:
        return "section for each name" if "$ref" in field["additionalProperties"] else "section of text"
    if field["type"] == "array":
        return f"list of {_kind(schema, field['items'])}"
    return _FORMATS.get(field.get("format", ""), _KINDS[field["type"]]) + _bounds(field)


def _bounds(field: _Schema) -> str:
    told = [
        *([f"above {field['exclusiveMinimum']}"] if "exclusiveMinimum" in field else []),
        *([f"from {field['minimum']}"] if "minimum" in field else []),
        *([f"up to {field['maximum']:_}"] if "maximum" in field else []),
    ]
    return f" {' '.join(told)}" if told else ""


def _default(field: _Schema) -> str:
    value = field.get("default")
    if value is None or isinstance(value, Mapping):
        return "-"
    return f"`{value:_}`" if type(value) is int else f"`{json.dumps(value)}`"


def _lines(page: SectionPage) -> Iterator[str]:
    heading = ", ".join(f"`[{place}]`" for place in page.places if place)
    yield f"## {heading or 'The file itself'}"
    yield ""
    yield page.meaning
    yield ""
    yield "| key | type | default | meaning |"
    yield "|---|---|---|---|"
    for key in page.keys:
        cells = (f"`{key.name}`", key.kind, key.default or "must be given", key.meaning)
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _line(text: str) -> str:
    return " ".join(text.split())
