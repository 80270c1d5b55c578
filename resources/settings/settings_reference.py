"""The settings reference (docs/settings.md), generated from the pydantic models that read the settings file."""

import ast
import inspect
import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from resources.settings.section import DATACLASS_SECTIONS, Section
from resources.settings.topic_options import TopicOptions
from resources.settings.topic_sections import TopicSections

EXAMPLE = Path(__file__).parent / "settings_example.toml"
"""A settings file that sets every key."""

_OURS = ("resources.", "kafka_io.", "pipelines.")
_Schema = Mapping[str, Any]
_HEAD = """\
# Settings

The command line and Dagster read one settings file in [TOML](https://toml.io). Its path is the first of these that is
given: the option `--settings`, the environment variable `PENSTOCK_SETTINGS`, `penstock.toml` in the working directory.
An unknown key is an error.

`penstock config check` tests a settings file, and `penstock config show` prints all settings with their defaults. This
page is generated from the code; `penstock config reference` prints it.
"""
_TAIL = """\
## Example

This file sets every key. Your own file needs only `lake` and one cluster.

```toml
{example}```
"""
_PER_NAME = "NAME"  # stands for the name of a cluster or a schedule
_KINDS = {"string": "text", "boolean": "true or false", "integer": "whole number", "number": "number"}
_BOUNDS = {"exclusiveMinimum": " above {}", "minimum": " from {}", "maximum": " up to {:_}"}
_FORMATS = {"secret": "`env:NAME`, `file:PATH` or `command:LINE`", "path": "path, relative to this file"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of a section. `kind` is its type in words; `default` is empty for a required key."""

    name: str
    kind: str
    default: str
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionPage:
    """A section of the file. `places` are the names under which it can appear, such as `choices`."""

    places: tuple[str, ...]
    meaning: str
    keys: tuple[Key, ...]


def sections(settings: type[Section]) -> Sequence[SectionPage]:
    """All sections of a file that `settings` describes. The keys at the top of the file come first."""
    schema = settings.model_json_schema()
    sections = (*Section.__subclasses__(), *DATACLASS_SECTIONS, TopicSections, TopicOptions)
    classes: dict[str, type] = {section.__name__: section for section in sections}
    for name, model in [(settings.__name__, schema), *schema["$defs"].items()]:
        for field, meaning in meanings(classes[name]).items() if name in classes else ():
            model["properties"][field]["description"] = meaning
    _put_side_by_side(schema["$defs"])
    places: dict[str, list[str]] = {}
    models = {"": schema}
    waiting = deque([("", "")])
    while waiting:
        place, model = waiting.popleft()
        places.setdefault(model, []).append(place)
        # A section with `additionalProperties` has sections of names that the user chooses.
        for name, field in [*models[model]["properties"].items(), ("", models[model])]:
            model_name, below = _section_of(field)
            if "properties" in schema["$defs"].get(model_name, ()):
                section = schema["$defs"][model_name]
                # Two models with the same keys are one section, such as [topics] and [clusters.NAME.topics].
                same_models = (name for name, model in models.items() if model["properties"] == section["properties"])
                model_name = next(same_models, model_name)
                models.setdefault(model_name, section)
                waiting.append((".".join(part for part in (place, name, below) if part), model_name))
    return [_page(schema, models[model], names) for model, names in places.items()]


def reference(settings: type[Section]) -> str:
    """The whole page in Markdown."""
    parts = [_HEAD, *("\n".join(_lines(section)) + "\n" for section in sections(settings))]
    return "\n".join([*parts, _TAIL.format(example=EXAMPLE.read_text(encoding="utf-8"))])


def _put_side_by_side(models: Mapping[str, dict[str, Any]]) -> None:
    """In the sections of topics, replace the parts by their keys, as the file has them."""
    topics, options = models["TopicSections"], models["TopicOptions"]
    topics["additionalProperties"] = topics["properties"]["sections"]["additionalProperties"]
    topics["properties"] = models["TopicRules"]["properties"]
    parts = [models[part]["properties"] for part in ("TopicFormat", "TopicAudit", "TopicCatalog")]
    own = {name: options["properties"][name] for name in ("keep_days", "state", "tables")}
    options["properties"] = {key: field for part in (*parts, own) for key, field in part.items()}


def meanings(class_: type) -> dict[str, str]:
    """The docstring below each field of a class of ours, by the name of the field."""
    texts: dict[str, str] = {}
    for parent in reversed(class_.__mro__):
        if parent.__module__.startswith(_OURS):
            [definition] = ast.parse(inspect.getsource(parent)).body
            assert isinstance(definition, ast.ClassDef)
            for statement, follower in pairwise(definition.body):
                match statement, follower:
                    case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                        texts[name] = inspect.cleandoc(text)
    return texts


def _page(schema: _Schema, model: _Schema, places: Sequence[str]) -> SectionPage:
    required = model.get("required", ())
    keys = tuple(
        Key(
            name=name,
            kind=_kind(schema, field),
            default="" if name in required else _default(field),
            meaning=_line(field["description"]),
        )
        for name, field in model["properties"].items()
    )
    meaning = _line(model["description"].partition("\n\nRaises:")[0])
    return SectionPage(places=tuple(places), meaning=meaning, keys=keys)


def _section_of(field: _Schema) -> tuple[str, str]:
    """The model of a field that is a section, and `NAME` if there is a section per name. Empty for other fields."""
    per_name = field.get("additionalProperties")
    if isinstance(per_name, Mapping):
        return _section_of(per_name)[0], _PER_NAME
    return _without_null(field).get("$ref", "").rpartition("/")[2], ""


def _without_null(field: _Schema) -> _Schema:
    """The schema of a field without the alternative `null`."""
    options = field.get("anyOf", ())
    return next(({**field, **option} for option in options if option.get("type") != "null"), field)


def _kind(schema: _Schema, field: _Schema) -> str:
    field = _without_null(field)
    if "$ref" in field:
        target = schema["$defs"][field["$ref"].rpartition("/")[2]]
        return _kind(schema, target) if "enum" in target else "section"
    if "enum" in field:
        return " or ".join(f"`{json.dumps(value)}`" for value in field["enum"])
    if "additionalProperties" in field:
        return "section for each name" if "$ref" in field["additionalProperties"] else "section of text"
    if field["type"] == "array":
        return f"list of {_kind(schema, field['items'])}"
    return _FORMATS.get(field.get("format", ""), _KINDS[field["type"]]) + _bounds(field)


def _bounds(field: _Schema) -> str:
    bounds = {bound: field[bound] for bound in _BOUNDS if bound in field}
    return "".join(_BOUNDS[bound].format(int(value)) for bound, value in bounds.items() if value == int(value))


def _default(field: _Schema) -> str:
    value = field.get("default")
    if value is None or isinstance(value, Mapping):
        return "-"
    return f"`{value:_}`" if type(value) is int else f"`{json.dumps(value)}`"


def _lines(page: SectionPage) -> Iterator[str]:
    heading = ", ".join(f"`[{place}]`" for place in page.places if place)
    yield f"## {heading or 'Top of the file'}\n\n{page.meaning}\n"
    yield "| key | type | default | meaning |\n|---|---|---|---|"
    for key in page.keys:
        cells = (f"`{key.name}`", key.kind, key.default or "required", key.meaning)
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _line(text: str) -> str:
    return " ".join(text.split())
