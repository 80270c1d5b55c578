"""The base class of all sections of the settings file, and the sentences about their problems."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo

from kafka_io.net.secret import SecretReference, is_reference
from kafka_io.net.security import ClientCredentials, Sasl, Security, Tls
from kafka_io.schema_registry.settings import SchemaRegistrySettings

FOLDER = "folder"
"""The key of the settings file's folder in the context of a validation."""

_FILE = "file:"
UNKNOWN_KEY = "is not a setting"
NO_SECTION = "must be a section with settings"
_PHRASES = {  # by the type of pydantic's error; the names in braces are in its context
    "missing": "is missing",
    "extra_forbidden": UNKNOWN_KEY,
    "unexpected_keyword_argument": UNKNOWN_KEY,  # in a section that is a dataclass
    "value_error": "{error}",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "finite_number": "must be a finite number",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "string_type": "must be a text",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "is too large",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "tuple_type": "must be a list",
    "dict_type": "must be a section",
    "model_type": NO_SECTION,
    "dataclass_type": "must be a section",
}
DATACLASS_SECTIONS = (Security, Tls, Sasl, ClientCredentials, SchemaRegistrySettings)
"""The sections that are dataclasses of kafka_io."""


class Section(BaseModel):
    """A table of the settings file. Unknown keys are errors; error messages do not repeat values (fault X01).

    The docstring below a field is its text in docs/settings.md, which `settings_reference` reads from the source.
    pydantic would read it too, at each start of a process, which takes longer than making all sections.
    """

    # A value may be a secret, so pydantic must not print it in its errors.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def first_problem(error: ValidationError) -> tuple[str, str, str]:
    """The first problem of a section: its dotted key, the last name of the key, and a phrase (fault U11).

    If a key is missing and the same section has an unknown key, it is the unknown one: its name is probably misspelt.
    """
    problem, *others = error.errors(include_url=False, include_input=False)
    if problem["type"] == "missing":
        in_same_section = (other for other in others if other["loc"][:-1] == problem["loc"][:-1])
        problem = next((other for other in in_same_section if _PHRASES.get(other["type"]) == UNKNOWN_KEY), problem)
    names = [str(part) for part in problem["loc"]]
    phrase = _PHRASES.get(problem["type"], "is not valid").format(**problem.get("ctx", {}))
    return ".".join(names), names[-1] if names else "", phrase


def taken(keys: dict[str, Any], section: type[Section]) -> dict[str, Any]:
    """The keys of a section, with their values; they are removed from the others."""
    return {name: keys.pop(name) for name in section.model_fields if name in keys}


def with_new_names(file: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The content of a settings file with the new names of settings, and a sentence about each old one.

    Raises:
        ValueError: a setting has its old and its new name.
    """
    warnings: list[str] = []
    renamed = _renamed(file, "groups", "schedules", "", warnings)
    topics = renamed.get("topics")
    if isinstance(topics, Mapping):
        sections = {
            name: _renamed(topic, "group", "asset_group", f"topics.{name}.", warnings) for name, topic in topics.items()
        }
        renamed = {**renamed, "topics": sections}
    return renamed, tuple(warnings)


def _renamed(section: Any, old: str, new: str, place: str, warnings: list[str]) -> Any:
    """The section with the new name of a key at the place of the old one."""
    if not isinstance(section, Mapping) or old not in section:
        return section
    if new in section:
        raise ValueError(f"{place}{old} is the old name of {place}{new}: use only {place}{new}")
    warnings.append(f"{place}{old} is the old name of {place}{new}: rename it in the settings")
    return {new if key == old else key: value for key, value in section.items()}


def with_dotted_names(value: Any, *, prefix: str = "") -> Any:
    """A table with dotted names: TOML reads `spark.driver.memory = "2g"` as nested tables."""
    if not isinstance(value, dict):
        return value
    names: dict[str, Any] = {}
    for key, inner in value.items():
        names |= (
            with_dotted_names(inner, prefix=f"{prefix}{key}.") if isinstance(inner, dict) else {prefix + key: inner}
        )
    return names


def folder_of(info: ValidationInfo) -> Path:
    """The folder to which paths are relative."""
    return Path((info.context or {}).get(FOLDER, ""))


def reference(value: Any, info: ValidationInfo) -> Any:
    """A reference to a secret, with an absolute path in a reference to a file.

    Raises:
        ValueError: the reference is malformed, or the text is none.
    """
    if not isinstance(value, str):
        return value
    if value.startswith(_FILE) and value != _FILE:
        value = f"{_FILE}{absolute_path(value.removeprefix(_FILE), info)}"
    return str(SecretReference.parse(value))


def with_references(options: Any, info: ValidationInfo) -> Any:
    """Options of which some are references to secrets.

    Raises:
        ValueError: a reference is malformed.
    """
    if not isinstance(options, dict):
        return options
    return {
        name: reference(option, info) if isinstance(option, str) and is_reference(option) else option
        for name, option in options.items()
    }


def absolute_path(value: Any, info: ValidationInfo) -> Any:
    """A path of the settings file as an absolute path."""
    if not isinstance(value, str) or not value:
        return value
    return str((folder_of(info) / Path(value).expanduser()).absolute())
