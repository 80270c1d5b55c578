"""Field types for settings that name a secret or a file. Relative paths are relative to the settings file."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, PlainSerializer, PlainValidator, ValidationInfo, WithJsonSchema

from kafka_io.net.secret import HOW_TO_NAME_ONE, SecretReference

FOLDER = "folder"  # the key of the settings file's folder in the context of a validation


def _absolute(path: str, info: ValidationInfo) -> str:
    # Symbolic links stay unresolved: mounted secrets are links that are redirected when the secret is renewed.
    return str((Path((info.context or {}).get(FOLDER, "")) / Path(path).expanduser()).absolute())


def _reference(value: Any, info: ValidationInfo) -> SecretReference:
    if not isinstance(value, str):
        raise ValueError(HOW_TO_NAME_ONE)  # noqa: TRY004 (what pydantic reports with its key is a ValueError)
    kind, _, name = value.partition(":")
    return SecretReference.parse(f"file:{_absolute(name, info)}" if kind == "file" and name else value)


SecretReferenceField = Annotated[
    SecretReference,
    PlainValidator(_reference),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "format": "secret"}),
]
FilePath = Annotated[str, Field(min_length=1, json_schema_extra={"format": "path"}), AfterValidator(_absolute)]
