"""Protobuf schemas: message types with everything that they use, resolved and checked by google.protobuf.

A schema is the text of a `.proto` file, or a serialized descriptor in Base64 as Confluent's serializer for Python
registers it, with the files that it imports. Files of `google/protobuf` and `confluent` need not be given.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from kafka_io.errors import InvalidSchema, printable
from kafka_io.values.protobuf.proto_text import file_of_text

_GOOGLE = "google/protobuf/"
_GOOGLE_FILES = frozenset({
    "any", "api", "descriptor", "duration", "empty", "field_mask", "source_context", "struct", "timestamp", "type",
    "wrappers",
})  # fmt: skip
# Confluent's registry lets schemas import these without references. Nothing of the first one is in a message.
_CONFLUENT_FILES = {
    "confluent/meta.proto": 'syntax = "proto3"; package confluent;',
    "confluent/type/decimal.proto": (
        'syntax = "proto3"; package confluent.type; '
        "message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }"
    ),
}
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]+={0,2}")
_MAX_FILES = 1000
_POOL_PREFIX = "Couldn't build proto file into descriptor pool: "


class ProtobufSchema:
    """The message types of one file, see `parse_protobuf`.

    Args:
        files: descriptors of files, as FileDescriptorProto; the last one is the file of the schema.
        imports: descriptors of files of which those are taken that the other ones import.

    Raises:
        InvalidSchema: the files contradict each other, or lack something.
    """

    def __init__(self, files: Sequence[Any], imports: Sequence[Any] = ()) -> None:
        self._files = [*imports, *files]
        self._pool = descriptor_pool.DescriptorPool()
        by_name, added = {file.name: file for file in self._files}, set[str]()
        for file in files:
            self._add(_file(file.name, by_name), by_name, added)
        self._main = self._pool.FindFileByName(files[-1].name)

    def _add(self, file: Any, files: Mapping[str, Any], added: set[str]) -> None:
        """Add a file to the pool, after the files that it imports. The pool refuses a cycle of imports."""
        stack = [file]
        while stack:
            file = stack[-1]
            needed = [name for name in file.dependency if name not in added]
            if needed and len(stack) <= _MAX_FILES and file.name not in {other.name for other in stack[:-1]}:
                stack.append(_file(needed[0], files))
                continue
            stack.pop()
            if file.name not in added:
                added.add(file.name)
                self._add_to_pool(file)

    def _add_to_pool(self, file: Any) -> None:
        try:
            self._pool.AddSerializedFile(file.SerializeToString())
        except (TypeError, ValueError) as error:
            reason = str(error).removeprefix(_POOL_PREFIX)
            raise InvalidSchema(f"the Protobuf schema is not valid: {printable(reason)}") from error

    @cached_property
    def first_message(self) -> str:
        """Full name of the first message type of the file.

        Raises:
            InvalidSchema: the file has none.
        """
        return str(self.message_at((0,)).full_name)

    def message(self, name: str) -> Any:
        """The descriptor of a message type by its full name.

        Raises:
            InvalidSchema: the schema has no such type.
        """
        try:
            return self._pool.FindMessageTypeByName(name)
        except KeyError:
            raise InvalidSchema(f"the Protobuf schema has no message {printable(name)}") from None

    def message_at(self, path: Sequence[int]) -> Any:
        """The descriptor of the message type that a path in a frame names.

        Raises:
            InvalidSchema: the file has no such message.
        """
        declared = self._files[-1].message_type
        name = self._main.package
        for index in path:
            if index >= len(declared):
                raise InvalidSchema(f"the .proto file has no message with the index path {list(path)}")
            name = f"{name}.{declared[index].name}" if name else declared[index].name
            declared = declared[index].nested_type
        return self.message(name)

    def message_names(self) -> Iterator[tuple[tuple[int, ...], str]]:
        """The index path and the full name of each message type of the file, also of those inside others.

        >>> schema = parse_protobuf('syntax = "proto3"; package a; message B { message C {} } message D {}')
        >>> list(schema.message_names())
        [((0,), 'a.B'), ((0, 0), 'a.B.C'), ((1,), 'a.D')]
        """
        return _message_names(self._files[-1].message_type, (), self._main.package)

    def descriptor_set(self) -> bytes:
        """All files of the schema, with the comments of fields, as `parse_descriptor_set` reads them."""
        files = descriptor_pb2.FileDescriptorSet(file=self._files)
        return bytes(files.SerializeToString())

    @cached_property
    def comments(self) -> Mapping[str, str]:
        """The comments of fields by the full name of the field."""
        return dict(comment for file in self._files for comment in _comments(file))


def _message_names(
    declared: Sequence[Any], path: tuple[int, ...], prefix: str
) -> Iterator[tuple[tuple[int, ...], str]]:
    for index, message in enumerate(declared):
        name = f"{prefix}.{message.name}" if prefix else message.name
        yield (*path, index), name
        yield from _message_names(message.nested_type, (*path, index), name)


def parse_protobuf(text: str, imports: Mapping[str, str] | None = None) -> ProtobufSchema:
    """A schema: the text of a `.proto` file or its descriptor in Base64.

    >>> schema = parse_protobuf('syntax = "proto3"; package shop; message Order { int64 id = 1; }')
    >>> schema.first_message
    'shop.Order'

    Args:
        text: the text or the descriptor.
        imports: the texts or descriptors of the files that it imports, by the name that imports have.

    Raises:
        InvalidSchema: it is neither, or lacks a file that it imports.
    """
    files = [_parsed(name, imported) for name, imported in (imports or {}).items()]
    names = {file.name for file in files}
    name = "schema.proto"
    while name in names:
        name = f"_{name}"
    return ProtobufSchema([_parsed(name, text)], files)


def fields_of(message: Any) -> list[Any]:
    """The fields of a message type, and the extensions that the files of its schema declare, by their numbers.

    A message set writes its extensions in another form, so its own are left out.
    """
    is_set = message.GetOptions().message_set_wire_format
    extensions = [] if is_set else message.file.pool.FindAllExtensions(message)
    return [*message.fields, *sorted(extensions, key=lambda extension: int(extension.number))]


def message_class(message: Any) -> Any:
    """The class of a message type, which reads values one by one."""
    return message_factory.GetMessageClass(message)


def parse_descriptor_set(data: bytes) -> ProtobufSchema:
    """The schema of a file that `protoc --descriptor_set_out --include_imports` wrote.

    Raises:
        InvalidSchema: the bytes are not a descriptor set.
    """
    files = descriptor_pb2.FileDescriptorSet()
    try:
        files.ParseFromString(data)
    except DecodeError as error:
        raise InvalidSchema("the file is not a descriptor set, which `protoc --descriptor_set_out` writes") from error
    if not files.file:
        raise InvalidSchema("the descriptor set has no files")
    _check_texts(files)
    return ProtobufSchema(list(files.file))


def _parsed(name: str, text: str) -> Any:
    """The descriptor of a file, under the name that imports have."""
    if not _BASE64.fullmatch(text.rstrip()):
        return file_of_text(name, text)
    file = descriptor_pb2.FileDescriptorProto()
    try:
        file.ParseFromString(base64.b64decode(text))
    except (binascii.Error, DecodeError) as error:
        raise InvalidSchema("the Protobuf schema is neither a .proto text nor a descriptor in Base64") from error
    _check_texts(file)
    file.name = name
    return file


def _check_texts(message: Any) -> None:
    """Refuse a descriptor with a text that is not UTF-8, which google.protobuf gives as bytes."""
    for field, value in message.ListFields():
        for item in value if field.is_repeated else [value]:
            if field.message_type is not None:
                _check_texts(item)
            elif field.type == field.TYPE_STRING and not isinstance(item, str):
                raise InvalidSchema(f"the Protobuf schema has a text that is not valid UTF-8: {field.name}")


def is_built_in(name: str) -> bool:
    """Whether a schema can import this file without having it."""
    return name in _CONFLUENT_FILES or _is_of_google(name)


def _is_of_google(name: str) -> bool:
    return name == f"{_GOOGLE}{_stem(name)}.proto" and _stem(name) in _GOOGLE_FILES


def _stem(name: str) -> str:
    return name.removeprefix(_GOOGLE).removesuffix(".proto")


def _file(name: str, files: Mapping[str, Any]) -> Any:
    """The descriptor of an imported file. Google's own files are never taken from `files`."""
    if _is_of_google(name):
        file = descriptor_pb2.FileDescriptorProto()
        import_module(f"google.protobuf.{_stem(name)}_pb2").DESCRIPTOR.CopyToProto(file)
        return file
    if name in files:
        return files[name]
    if name in _CONFLUENT_FILES:
        return file_of_text(name, _CONFLUENT_FILES[name])
    raise InvalidSchema(f"the Protobuf schema imports {printable(name)}, which its references do not contain")


def _comments(file: Any) -> Iterator[tuple[str, str]]:
    """The comments of a file's fields, by the full name of the field."""
    texts = {tuple(place.path): place.leading_comments.strip() for place in file.source_code_info.location}
    if any(texts.values()):
        yield from _comments_of(file.message_type, file.package, (4,), texts)
        yield from _comments_of_fields(file.extension, file.package, (7,), texts)


def _comments_of(
    messages: Iterable[Any], scope: str, path: tuple[int, ...], texts: Mapping[tuple[int, ...], str]
) -> Iterator[tuple[str, str]]:
    # 2, 3 and 6 are the numbers of `field`, `nested_type` and `extension` in DescriptorProto.
    for index, message in enumerate(messages):
        name, own_path = f"{scope}.{message.name}" if scope else message.name, (*path, index)
        yield from _comments_of_fields(message.field, name, (*own_path, 2), texts)
        yield from _comments_of_fields(message.extension, name, (*own_path, 6), texts)
        yield from _comments_of(message.nested_type, name, (*own_path, 3), texts)


def _comments_of_fields(
    fields: Iterable[Any], scope: str, path: tuple[int, ...], texts: Mapping[tuple[int, ...], str]
) -> Iterator[tuple[str, str]]:
    for number, field in enumerate(fields):
        if comment := texts.get((*path, number)):
            yield f"{scope}.{field.name}" if scope else field.name, " ".join(comment.split())
