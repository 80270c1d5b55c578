"""Settings that name a secret or a file. The path of a file is relative to the settings file, as the lake's is."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, PlainSerializer, PlainValidator, ValidationInfo, WithJsonSchema

from kafka_io.net.secret import HOW_TO_NAME_ONE, Reference

FOLDER = "folder"  # the key of the settings file's folder in the context of a validation


def _beside(path: str, info: ValidationInfo) -> str:
    # Not resolved: mounted secrets are links that are pointed elsewhere when they are renewed.
    return str((Path((info.context or {}).get(FOLDER, "")) / Path(path).expanduser()).absolute())


def _reference(value: Any, info: ValidationInfo) -> Reference:
    if not isinstance(value, str):
        raise ValueError(HOW_TO_NAME_ONE)  # noqa: TRY004 (what pydantic reports with its key is a ValueError)
    kind, _, name = value.partition(":")
    return Reference.parse(f"file:{_beside(name, info)}" if kind == "file" and name else value)


SecretReference = Annotated[
    Reference,
    PlainValidator(_reference),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "format": "secret"}),
]
FilePath = Annotated[str, Field(min_length=1, json_schema_extra={"format": "path"}), AfterValidator(_beside)]
