"""Reads the text of a `.proto` file into a descriptor, as protoc does: proto2, proto3 and editions.

Only what columns need is read. Services, reserved names and options that mean nothing for the bytes of a message are
skipped. Names of types stay as they are written: the descriptor pool of google.protobuf resolves and checks them. No
library does this: protoc's own wheel, grpcio-tools, needs another version of protobuf than Dagster, and is made for
files, not for texts that a registry sends.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

from kafka_io.errors import InvalidSchema, printable
from kafka_io.values.protobuf.tokens import Token, tokens, unquoted

_MAX_DEPTH = 32
_NUMBER_LIMIT = 2**64
_LAST_NUMBER = 2**29 - 1
_SCALARS = {name: getattr(Field, f"TYPE_{name.upper()}") for name in (
    "double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32",
    "sfixed64", "bool", "string", "bytes",
)}  # fmt: skip
_LABELS = {
    "optional": Field.LABEL_OPTIONAL,
    "required": Field.LABEL_REQUIRED,
    "repeated": Field.LABEL_REPEATED,
}
_SYNTAXES = "proto2", "proto3"
# Numbers of fields of descriptors, in the paths of comments.
_MESSAGE, _FIELD, _NESTED = 4, 2, 3
_EXTENSION_OF_FILE, _EXTENSION_OF_MESSAGE = 7, 6
_OPTIONS_OF = "google.protobuf."
_OPEN, _CLOSE = "{[(<", "}])>"


def file_of_text(name: str, text: str) -> Any:
    """The descriptor of a `.proto` file: a FileDescriptorProto with the comments of its fields.

    >>> file_of_text("a.proto", 'syntax = "proto3"; message Order { int64 id = 1; }').message_type[0].field[0].name
    'id'

    Raises:
        InvalidSchema: the text does not follow the language.
    """
    return _Parser(name, text).file()


class _Parser:
    """Reads one text. Each method reads one part, from its first token to its last."""

    def __init__(self, name: str, text: str) -> None:
        self._tokens = tokens(text)
        self._token = next(self._tokens)
        self._file = descriptor_pb2.FileDescriptorProto(name=name)
        self._depth = 0
        self._syntax = "proto2"

    def file(self) -> Any:
        statements: Mapping[str, Callable[[], None]] = {
            "syntax": self._read_syntax,
            "edition": self._read_syntax,
            "package": self._package,
            "import": self._import,
            "option": lambda: self._option(self._file.options),
            "message": lambda: self._message(self._file.message_type, (_MESSAGE,)),
            "enum": lambda: self._enum(self._file.enum_type),
            "extend": lambda: self._extend(
                self._file.extension, self._file.message_type, {_FIELD: (_EXTENSION_OF_FILE,), _NESTED: (_MESSAGE,)}
            ),
            "service": self._skip_statement,
        }
        while self._token.kind != "end":
            if self._accept(";"):
                continue
            statement = statements.get(self._token.text)
            if statement is None:
                self._refuse()
            statement()
        return self._file

    # Tokens

    def _next(self) -> Token:
        token = self._token
        if token.kind == "end":
            raise InvalidSchema(f"the .proto text ends too early, in line {token.line}")
        self._token = next(self._tokens)
        return token

    def _refuse(self) -> NoReturn:
        token = self._token
        if token.kind == "end":
            raise InvalidSchema(f"the .proto text ends too early, in line {token.line}")
        raise InvalidSchema(f"the .proto text has an unexpected {printable(token.text)} in line {token.line}")

    def _accept(self, text: str) -> bool:
        """Read the token if it is this one."""
        if self._token.kind in {"name", "mark"} and self._token.text == text:
            self._next()
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            self._refuse()

    def _of_kind(self, kind: str) -> str:
        if self._token.kind != kind:
            self._refuse()
        return self._next().text

    def _name(self) -> str:
        """A name without a point."""
        if "." in self._token.text:
            self._refuse()
        return self._of_kind("name")

    def _text(self) -> bytes:
        """A text, which may consist of several in a row."""
        text = unquoted(self._of_kind("text"))
        while self._token.kind == "text":
            text += unquoted(self._next().text)
        return text

    def _integer(self) -> int:
        is_negative = self._accept("-")
        token = self._token
        text = self._of_kind("number")
        try:
            # A leading zero means octal.
            is_octal = text.startswith("0") and text.isdigit()
            number = int(text, 8 if is_octal else 16 if text[:2] in {"0x", "0X"} else 10)
        except ValueError:
            number = _NUMBER_LIMIT
        # No number of a schema is wider than 64 bits, and Python refuses to print very long ones.
        if number >= _NUMBER_LIMIT:
            raise InvalidSchema(
                f"{printable(text)} in line {token.line} of the .proto text is not an integer of at most 64 bits"
            )
        return -number if is_negative else number

    @contextmanager
    def _block(self) -> Iterator[None]:
        """Read `{`, then let the `with` block read the content, then read `}`."""
        self._expect("{")
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise InvalidSchema(f"the messages of the .proto text are nested deeper than {_MAX_DEPTH} levels")
        yield
        self._expect("}")
        self._depth -= 1

    def _statements(self) -> Iterator[str]:
        """The first word of each statement of a block; the body of the loop reads the statement."""
        with self._block():
            while self._token.text != "}" or self._token.kind != "mark":
                if not self._accept(";"):
                    yield self._token.text

    def _skip_statement(self) -> None:
        """Skip to the `;`, or to the end of the block that belongs to the statement."""
        while self._token.text not in {"{", ";"} or self._token.kind != "mark":
            self._skip_value()
        self._skip_value()

    def _skip_value(self) -> None:
        """Skip a token; a bracket together with all until the one that closes it."""
        depth = 0
        while True:
            token = self._next()
            if token.kind == "mark":
                depth += (token.text in _OPEN) - (token.text in _CLOSE)
            if depth <= 0:
                return

    # Statements of a file

    def _read_syntax(self) -> None:
        keyword = self._name()
        self._expect("=")
        version = self._text().decode(errors="replace")
        self._expect(";")
        if keyword == "syntax" and version in _SYNTAXES:
            self._syntax = self._file.syntax = version
            return
        edition = descriptor_pb2.Edition.DESCRIPTOR.values_by_name.get(f"EDITION_{version}")
        if keyword != "edition" or edition is None:
            raise InvalidSchema(f"the {keyword} {printable(version)} of the .proto text is not known")
        self._syntax = self._file.syntax = "editions"
        self._file.edition = edition.number

    def _package(self) -> None:
        self._next()
        self._file.package = self._of_kind("name")
        self._expect(";")

    def _import(self) -> None:
        self._next()
        if self._accept("public"):
            self._file.public_dependency.append(len(self._file.dependency))
        else:
            self._accept("weak")
        self._file.dependency.append(self._text().decode(errors="replace"))
        self._expect(";")

    # Options

    def _option(self, options: Any) -> None:
        """The statement `option name = value;`."""
        self._next()
        self._assignment(options)
        self._expect(";")

    def _options(self, options: Any, field: Any = None) -> None:
        """The options in brackets after a field or a value of an enum."""
        if not self._accept("["):
            return
        self._assignment(options, field)
        while self._accept(","):
            self._assignment(options, field)
        self._expect("]")

    def _assignment(self, options: Any, field: Any = None) -> None:
        """`name = value`. Options that mean nothing for the bytes of a message are skipped."""
        name = ""
        while self._token.text != "=":
            if self._token.text == "(":
                self._skip_value()
                name += "()"
            else:
                name += self._of_kind("name")
        self._expect("=")
        group, _, feature = name.rpartition(".")
        if field is not None and name == "default":
            self._default(field)
        elif group == "features" and self._token.kind == "name":
            self._feature(options.features, feature)
        elif name in {"allow_alias", "message_set_wire_format"} and self._token.text in {"true", "false"}:
            setattr(options, name, self._next().text == "true")
        else:
            self._accept("-")
            self._skip_value()
            while self._token.kind == "text":
                self._next()

    def _feature(self, features: Any, name: str) -> None:
        field = features.DESCRIPTOR.fields_by_name.get(name)
        value = field and field.enum_type and field.enum_type.values_by_name.get(self._token.text)
        if not value:
            self._refuse()
        setattr(features, name, value.number)
        self._next()

    def _default(self, field: Any) -> None:
        """The value of the option `default`, in the form that descriptors have."""
        if self._token.kind == "text":
            data = self._text()
            if field.type == Field.TYPE_BYTES:
                field.default_value = "".join(
                    chr(byte) if 32 <= byte < 127 and byte not in b"\\\"'" else f"\\{byte:03o}" for byte in data
                )
            else:
                field.default_value = data.decode(errors="replace")
            return
        sign = "-" if self._accept("-") else ""
        if self._token.kind == "number" and field.type not in {Field.TYPE_DOUBLE, Field.TYPE_FLOAT}:
            field.default_value = f"{sign}{self._integer()}"
        elif self._token.kind in {"number", "name"}:
            field.default_value = sign + self._next().text
        else:
            self._refuse()

    # Messages

    def _message(self, into: Any, path: tuple[int, ...]) -> None:
        self._next()
        message = into.add(name=self._name())
        self._body(message, (*path, len(into) - 1))

    def _body(self, message: Any, path: tuple[int, ...]) -> None:
        """The statements of a message. A word that begins a statement can also be the name of a field's type.

        The messages that stand for maps are behind all others: the index path in a frame counts the messages of the
        text, and a map is none.
        """
        entries = descriptor_pb2.DescriptorProto().nested_type
        for word in self._statements():
            if word == "reserved":
                self._skip_statement()
            elif word == "extensions":
                self._extension_ranges(message.extension_range)
            elif word == "extend":
                places = {_FIELD: (*path, _EXTENSION_OF_MESSAGE), _NESTED: (*path, _NESTED)}
                self._extend(message.extension, message.nested_type, places)
            elif word == "option":
                self._option(message.options)
            elif word == "message":
                self._message(message.nested_type, (*path, _NESTED))
            elif word == "enum":
                self._enum(message.enum_type)
            elif word == "oneof":
                self._oneof(message, path)
            elif word == "map":
                self._map(message, entries, path)
            else:
                self._field(message, path)
        message.nested_type.extend(entries)
        self._add_synthetic_oneofs(message)

    def _extension_ranges(self, ranges: Any) -> None:
        """`extensions 4, 100 to 199, 1000 to max;`: the numbers that extensions may have."""
        self._next()
        while True:
            start = end = self._integer()
            if self._accept("to"):
                end = _LAST_NUMBER if self._accept("max") else self._integer()
            ranges.add(start=start, end=end + 1)
            if not self._accept(","):
                break
        self._skip_statement()  # options of the ranges may follow

    def _extend(self, extensions: Any, messages: Any, places: Mapping[int, tuple[int, ...]]) -> None:
        """Extensions, and the messages of their groups. Those of Google's options mean nothing for the bytes.

        `places` are the paths of extensions and messages, by the number of what they are in a message.
        """
        self._next()
        extended = self._of_kind("name")
        if extended.removeprefix(".").startswith(_OPTIONS_OF):
            self._skip_statement()
            return
        comments, inside = len(self._file.source_code_info.location), descriptor_pb2.DescriptorProto()
        for _ in self._statements():
            self._field(inside, ())
        first = {_FIELD: len(extensions), _NESTED: len(messages)}
        for location in self._file.source_code_info.location[comments:]:
            kind, number, *deeper = location.path
            location.path[:] = [*places[kind], first[kind] + number, *deeper]
        for field in inside.field:
            field.extendee = extended
        extensions.extend(inside.field)
        messages.extend(inside.nested_type)

    def _oneof(self, message: Any, path: tuple[int, ...]) -> None:
        self._next()
        oneof = message.oneof_decl.add(name=self._name())
        place = len(message.oneof_decl) - 1
        for word in self._statements():
            if word == "option":
                self._option(oneof.options)
            else:
                self._field(message, path, place)

    def _field(self, message: Any, path: tuple[int, ...], oneof: int | None = None) -> None:
        comment = self._token.comment
        label = _LABELS.get(self._token.text) if oneof is None else None
        if label is not None:
            self._next()
        kind = self._of_kind("name")
        if kind == "group":
            self._group(message, path, label, oneof)
            return
        if label is None and oneof is None and self._syntax == "proto2":
            self._refuse()
        field = self._numbered(message, self._name(), comment, path)
        field.label = label or Field.LABEL_OPTIONAL
        if kind in _SCALARS:
            field.type = _SCALARS[kind]
        else:
            field.type_name = kind
        if oneof is not None:
            field.oneof_index = oneof
        elif label == Field.LABEL_OPTIONAL and self._syntax == "proto3":
            field.proto3_optional = True
        self._options(field.options, field)
        self._expect(";")

    def _numbered(self, message: Any, name: str, comment: str, path: tuple[int, ...]) -> Any:
        """A new field with its number and its comment."""
        self._expect("=")
        line = self._token.line
        number = self._integer()
        if not 0 < number <= _LAST_NUMBER:
            raise InvalidSchema(f"{number} in line {line} of the .proto text is not a field number")
        field = message.field.add(name=name, number=number)
        if comment:
            place = [*path, _FIELD, len(message.field) - 1]
            self._file.source_code_info.location.add(path=place, leading_comments=comment)
        return field

    def _group(self, message: Any, path: tuple[int, ...], label: int | None, oneof: int | None) -> None:
        name = self._name()
        field = self._numbered(message, name.lower(), "", path)
        field.label, field.type, field.type_name = label or Field.LABEL_OPTIONAL, Field.TYPE_GROUP, name
        if oneof is not None:
            field.oneof_index = oneof
        self._options(field.options, field)
        nested = message.nested_type.add(name=name)
        self._body(nested, (*path, _NESTED, len(message.nested_type) - 1))

    def _map(self, message: Any, entries: Any, path: tuple[int, ...]) -> None:
        """A map, which is a list of messages with a key and a value."""
        comment = self._token.comment
        self._next()
        self._expect("<")
        key = self._of_kind("name")
        self._expect(",")
        value = self._of_kind("name")
        self._expect(">")
        field = self._numbered(message, name := self._name(), comment, path)
        entry_name = "".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Entry"
        field.label, field.type, field.type_name = Field.LABEL_REPEATED, Field.TYPE_MESSAGE, entry_name
        entry = entries.add(name=entry_name)
        entry.options.map_entry = True
        for number, (part, kind) in enumerate((("key", key), ("value", value)), start=1):
            inner = entry.field.add(name=part, number=number, label=Field.LABEL_OPTIONAL)
            if kind in _SCALARS:
                inner.type = _SCALARS[kind]
            else:
                inner.type_name = kind
        self._options(field.options, field)
        self._expect(";")

    def _add_synthetic_oneofs(self, message: Any) -> None:
        """A field of proto3 that is `optional` is the only one of a oneof of its own."""
        taken = {oneof.name for oneof in message.oneof_decl} | {field.name for field in message.field}
        for field in message.field:
            if field.proto3_optional:
                name = f"_{field.name}"
                while name in taken:
                    name = f"X{name}"
                taken.add(name)
                message.oneof_decl.add(name=name)
                field.oneof_index = len(message.oneof_decl) - 1

    # Enums

    def _enum(self, into: Any) -> None:
        self._next()
        enum = into.add(name=self._name())
        for word in self._statements():
            if word == "option":
                self._option(enum.options)
            elif word == "reserved":
                self._skip_statement()
            else:
                value = enum.value.add(name=self._name())
                self._expect("=")
                line = self._token.line
                number = self._integer()
                if not -(1 << 31) <= number < 1 << 31:
                    raise InvalidSchema(f"{number} in line {line} of the .proto text is not a number of an enum")
                value.number = number
                self._options(value.options)
