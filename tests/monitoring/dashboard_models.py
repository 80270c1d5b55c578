"""Judges a dashboard of Grafana by the models of Grafana's own library: unknown fields, and values of other types."""

import json
import types
from collections.abc import Iterator
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

_NOT_MODELLED = frozenset({"definition"})
"""What Grafana writes into each variable with a query, for its list of variables; the models lack it."""
_SIMPLE = frozenset({str, int, bool, float, types.NoneType})
_PANELS = frozenset({"row", "stat", "table", "timeseries"})


def problems_of(dashboard: dict[str, Any]) -> list[str]:
    """What Grafana would ignore, or not understand."""
    register_default_plugins()
    model = Dashboard.from_json(dashboard)
    known = json.loads(JSONEncoder().encode(model))
    kinds = {panel["type"] for panel in dashboard["panels"]} - _PANELS
    return [
        *_ignored(dashboard, known, "dashboard"),
        *_wrong(model, Dashboard, "dashboard"),
        *(f"there is no panel of the type {kind}" for kind in sorted(kinds)),
    ]


def _ignored(written: Any, known: Any, place: str) -> Iterator[str]:
    """The fields that the models do not have."""
    if isinstance(written, dict):
        for name in written.keys() - _NOT_MODELLED:
            if not isinstance(known, dict) or name not in known:
                yield f"{place} has no field {name}"
            else:
                yield from _ignored(written[name], known[name], f"{place}.{name}")
    elif isinstance(written, list):
        for number, item in enumerate(written):
            yield from _ignored(item, known[number], f"{place}[{number}]")
    elif written != known:
        yield f"{place} is {written!r}, and {known!r} is understood"


def _wrong(value: Any, kind: Any, place: str) -> Iterator[str]:
    """The values that do not have the type of their field."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in {Union, types.UnionType}:
        problems = [list(_wrong(value, option, place)) for option in arguments]
        if all(problems):  # the option that fits best has the deepest problem
            yield from max(problems, key=lambda of_option: of_option[0].split(" ")[0].count("."))
    elif origin is Literal and value not in arguments:
        yield f"{place} is {value!r}, and not one of {arguments}"
    elif origin in {list, dict}:
        yield from _wrong_items(value, origin, arguments[-1], place)
    elif isinstance(kind, type) and (issubclass(kind, Enum) or kind in _SIMPLE):
        yield from _wrong_simple(value, kind, place)
    elif type(value).__module__.startswith("grafana_foundation_sdk"):
        for name, hint in get_type_hints(type(value)).items():
            yield from _wrong(getattr(value, name, None), hint, f"{place}.{name}")


def _wrong_items(value: Any, container: type, kind: Any, place: str) -> Iterator[str]:
    if not isinstance(value, container):
        yield f"{place} is {value!r}, and not of the type {container.__name__}"
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _wrong(item, kind, f"{place}.{name}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _wrong(item, kind, f"{place}[{number}]")


def _wrong_simple(value: Any, kind: type, place: str) -> Iterator[str]:
    if issubclass(kind, Enum):
        if value not in [member.value for member in kind]:
            yield f"{place} is {value!r}, and not one of {[member.value for member in kind]}"
    elif not isinstance(value, int | float if kind is float else kind):
        yield f"{place} is {value!r}, and not of the type {kind.__name__}"
