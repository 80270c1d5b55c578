"""The settings for `penstock config show`: all values with their defaults, without secrets."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from kafka_io.net.secret import is_reference
from resources.settings.settings import Settings

_SECRET_KEY = re.compile(r"secret|password|token|credential|signature|\bsas\b|key", re.IGNORECASE)
# In the address of a Spark Connect server, and before the host of a URL.
_SECRET_VALUE = re.compile(r"(?<=token=)[^;]+|(?<=//)[^/@]+(?=@)")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_MASK = "***"


def shown(settings: Settings) -> dict[str, Any]:
    """All settings that are set or have a default. Secrets in the options of the lake and of Spark are masked."""
    values = settings.model_dump(mode="json", exclude_none=True)
    values["lake"] = _SECRET_VALUE.sub(_MASK, settings.lake)
    topics = values["topics"]
    values["topics"] = topics["rules"] | {name: _side_by_side(parts) for name, parts in topics["sections"].items()}
    for section in ("lake_options", "spark"):
        values[section] = {key: _masked(key, value) for key, value in values[section].items()}
    return values


def _side_by_side(parts: dict[str, Any]) -> dict[str, Any]:
    """A section `[topics.NAME]`, as the file has it."""
    return {**parts.pop("format"), **parts.pop("audit"), **parts.pop("catalog"), **parts}


def _masked(key: str, value: str) -> str:
    if is_reference(value):
        return value
    return _MASK if _SECRET_KEY.search(key) else _SECRET_VALUE.sub(_MASK, value)


def as_toml(settings: Mapping[str, Any]) -> str:
    """A line of TOML for each setting, with its full key."""
    return "".join(f"{line}\n" for line in _lines(settings, ""))


def _lines(table: Mapping[str, Any], prefix: str) -> Iterator[str]:
    for key, value in table.items():
        name = prefix + (key if _BARE_KEY.fullmatch(key) else json.dumps(key))
        if isinstance(value, Mapping):
            yield from _lines(value, f"{name}.")
        else:
            yield f"{name} = {json.dumps(value, ensure_ascii=False)}"  # for these types of values, JSON is valid TOML
