"""Protobuf schemas in files: a `.proto` file with the files that it imports, or a descriptor set of protoc."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kafka_io.errors import InvalidSchema, printable
from kafka_io.values.protobuf.descriptors import ProtobufSchema, is_built_in, parse_descriptor_set
from kafka_io.values.protobuf.proto_text import file_of_text

_TEXT_SUFFIX = ".proto"
_MAX_FILES = 1000


def read_protobuf(file: Path, folders: Sequence[Path] = ()) -> ProtobufSchema:
    """The schema of a file: the text of a `.proto` file, or what `protoc --descriptor_set_out` wrote.

    A file whose name ends with `.proto` is a text, every other file is a descriptor set with all its imports.

    Args:
        file: the file.
        folders: the folders in which a `.proto` file finds its imports; the first one that has an import counts. By
            default that is the folder of the file.

    Raises:
        OSError: a file cannot be read.
        InvalidSchema: a file is not valid, or an import is in none of the folders; the message names the file.
    """
    try:
        if file.suffix != _TEXT_SUFFIX:
            return parse_descriptor_set(file.read_bytes())
        main = _read_text(file, file.name)
        return ProtobufSchema([main], _imports(main, folders or [file.parent]))
    except InvalidSchema as error:
        raise error if error.reason.startswith(str(file)) else InvalidSchema(f"{file}: {error.reason}") from error


def _imports(main: Any, folders: Sequence[Path]) -> list[Any]:
    """The descriptors of all files that a file imports, directly or not."""
    files: dict[str, Any] = {}
    missing = list(main.dependency)
    while missing:
        name = missing.pop()
        if name in files or is_built_in(name):
            continue
        if len(files) >= _MAX_FILES:
            raise InvalidSchema(f"it imports more than {_MAX_FILES} files")
        file = next((folder / name for folder in folders if (folder / name).is_file()), None)
        if file is None:
            searched = ", ".join(map(str, folders))
            raise InvalidSchema(f"the import {printable(name)} is in none of the folders {searched}")
        files[name] = _read_text(file, name)
        missing += files[name].dependency
    return list(files.values())


def _read_text(file: Path, name: str) -> Any:
    """The descriptor of a `.proto` file under the name that imports have."""
    try:
        return file_of_text(name, file.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InvalidSchema(f"{file}: the text is not valid UTF-8") from error
    except InvalidSchema as error:
        raise InvalidSchema(f"{file}: {error.reason}") from error
