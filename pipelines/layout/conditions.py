"""Conditions on rows, as users write them: `country = 'NL' and (age >= 18 or header('kind') in ('a', 'b'))`.

A condition is parsed once, bound to the columns of a table, and then evaluated for batches of rows. As in SQL it is
true, false or unknown: a comparison with null is unknown. Only rows for which it is true are meant. No error shows a
value of the condition, because a value may be personal: it shows the position of the value in the text.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from kafka_io.values.header_texts import last_headers
from resources.errors import ConditionInvalid

Literal = str | int | Decimal | bool
_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<quoted>\"(?:[^\"]|\"\")+\")|(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_$]*)|(?P<sign><>|!=|<=|>=|[=<>(),.]))"
)
_COMPARE: Mapping[str, Callable[[pa.Array, pa.Scalar], pa.Array]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_MAX_DEPTH = 50
_MAX_CHARACTERS = 100_000


@dataclass(frozen=True, slots=True)
class _Token:
    """A part of the text: its kind, its characters, and its position from 1."""

    kind: str
    text: str
    position: int


@dataclass(frozen=True, slots=True)
class Operand:
    """What is compared: a column and the fields inside it, or the header of a name.

    Args:
        path: the names of the column and of the fields.
        header: the name of the header; then there is no path.
        position: where it is in the text.
    """

    path: tuple[str, ...] = ()
    header: str | None = None
    position: int = 1

    def type_in(self, schema: pa.Schema) -> pa.DataType:
        """The type of the operand in a table with these columns.

        Raises:
            ConditionInvalid: there is no such column or field.
        """
        if self.header is not None:
            return pa.binary()
        kind: pa.DataType = pa.struct(list(schema))
        for name in self.path:
            if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
                raise _invalid(f"the table has no column {'.'.join(self.path)}", self.position)
            kind = kind.field(name).type
        return kind

    def values(self, rows: pa.RecordBatch, headers: str) -> pa.Array:
        """The value of the operand in each row; null where a row has none."""
        if self.header is not None:
            return next(last_headers(rows.column(headers), [self.header]))
        name, *inside = self.path
        column = rows.column(name)
        return pc.struct_field(column, inside) if inside else column


class ConditionPart(Protocol):
    """A part of a condition."""

    def operands(self) -> Iterator[Operand]:
        """The operands that the part compares."""

    def literals(self) -> Iterator[Literal]:
        """The values that the part compares by = and in."""

    def bound(self, schema: pa.Schema, headers: str) -> "Evaluate":
        """The function that evaluates the part for rows with these columns.

        Raises:
            ConditionInvalid: it does not fit the columns.
        """


Evaluate = Callable[[pa.RecordBatch], pa.Array]


@dataclass(frozen=True, slots=True)
class ValueComparison(ConditionPart):
    """A comparison of an operand with one value."""

    operand: Operand
    sign: str
    value: Literal = field(repr=False)
    position: int

    def operands(self) -> Iterator[Operand]:
        yield self.operand

    def literals(self) -> Iterator[Literal]:
        if self.sign == "=":
            yield self.value

    def bound(self, schema: pa.Schema, headers: str) -> Evaluate:
        scalar = _scalar(self.value, self.operand.type_in(schema), self.position)
        return lambda rows: _COMPARE[self.sign](self.operand.values(rows, headers), scalar)


@dataclass(frozen=True, slots=True)
class Membership(ConditionPart):
    """Whether an operand is one of some values."""

    operand: Operand
    values: Sequence[Literal] = field(repr=False)
    position: int = 1
    of_file: bool = False
    """Whether the values are texts from a file, in the place of numbers and times too."""

    def operands(self) -> Iterator[Operand]:
        yield self.operand

    def literals(self) -> Iterator[Literal]:
        yield from self.values

    def bound(self, schema: pa.Schema, headers: str) -> Evaluate:
        kind = self.operand.type_in(schema)
        known = _of_texts(self.values, kind) if self.of_file else None
        if known is None:
            known = pa.array([_scalar(value, kind, self.position).as_py() for value in self.values], kind)

        def evaluate(rows: pa.RecordBatch) -> pa.Array:
            values = self.operand.values(rows, headers)
            return pc.if_else(pc.is_null(values), pa.scalar(None, pa.bool_()), pc.is_in(values, known))

        return evaluate


@dataclass(frozen=True, slots=True)
class IsNull(ConditionPart):
    """Whether an operand is null."""

    operand: Operand

    def operands(self) -> Iterator[Operand]:
        yield self.operand

    def literals(self) -> Iterator[Literal]:
        yield from ()

    def bound(self, schema: pa.Schema, headers: str) -> Evaluate:
        self.operand.type_in(schema)
        return lambda rows: pc.is_null(self.operand.values(rows, headers))


@dataclass(frozen=True, slots=True)
class Negation(ConditionPart):
    """The opposite of a condition; unknown stays unknown."""

    inner: ConditionPart

    def operands(self) -> Iterator[Operand]:
        yield from self.inner.operands()

    def literals(self) -> Iterator[Literal]:
        yield from ()

    def bound(self, schema: pa.Schema, headers: str) -> Evaluate:
        evaluate = self.inner.bound(schema, headers)
        return lambda rows: pc.invert(evaluate(rows))


@dataclass(frozen=True, slots=True)
class Junction(ConditionPart):
    """Conditions joined by `and` or `or`."""

    joined_by: str
    parts: Sequence[ConditionPart]

    def operands(self) -> Iterator[Operand]:
        for part in self.parts:
            yield from part.operands()

    def literals(self) -> Iterator[Literal]:
        for part in self.parts:
            yield from part.literals()

    def bound(self, schema: pa.Schema, headers: str) -> Evaluate:
        join = pc.and_kleene if self.joined_by == "and" else pc.or_kleene
        first, *others = [part.bound(schema, headers) for part in self.parts]

        def evaluate(rows: pa.RecordBatch) -> pa.Array:
            result = first(rows)
            for other in others:
                result = join(result, other(rows))
            return result

        return evaluate


@dataclass(frozen=True, slots=True)
class BoundCondition:
    """A condition for the rows of one table.

    Args:
        columns: the names of the columns that it needs.
        evaluate: gives true, false or null for each row.
    """

    columns: tuple[str, ...]
    evaluate: Evaluate

    def mask(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        """The rows for which the condition is true."""
        return pc.fill_null(self.evaluate(rows), fill_value=False)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that was parsed."""

    root: ConditionPart

    def bound(self, schema: pa.Schema, headers: str) -> BoundCondition:
        """The condition for a table with these columns; `headers` is the name of its column of headers.

        Raises:
            ConditionInvalid: the condition does not fit the columns.
        """
        names = (headers if operand.header is not None else operand.path[0] for operand in self.root.operands())
        return BoundCondition(tuple(dict.fromkeys(names)), self.root.bound(schema, headers))

    def texts(self) -> Sequence[str]:
        """The texts and whole numbers of the condition that a row must have, to search for their bytes."""
        return [str(value) for value in self.root.literals() if isinstance(value, str | int) and value is not True]


def one_of(column: str, values: Sequence[str]) -> Condition:
    """The condition that a column, or a field `a.b` inside one, has one of these values, in the order of a file.

    Raises:
        ConditionInvalid: the name is not one of a column.
    """
    operand = _Parser(column).whole_operand()
    return Condition(Membership(operand, tuple(dict.fromkeys(values)), of_file=True))


def parse_condition(text: str) -> Condition:
    """Parse a condition.

    Raises:
        ConditionInvalid: the text is no condition; the error has the position.
    """
    return Condition(_Parser(text).whole())


def _invalid(reason: str, position: int) -> ConditionInvalid:
    return ConditionInvalid(f"the condition is wrong at character {position}: {reason}")


class _Parser:
    """Parses one text, from its first token to its last one."""

    def __init__(self, text: str) -> None:
        if len(text) > _MAX_CHARACTERS:
            raise ConditionInvalid(f"the condition has more than {_MAX_CHARACTERS:,} characters; use a file of values")
        self._tokens = list(_tokens(text))
        self._next = 0
        self._depth = 0

    def whole(self) -> ConditionPart:
        node = self._junction("or")
        self._end()
        return node

    def whole_operand(self) -> Operand:
        operand = self._operand()
        self._end()
        return operand

    def _end(self) -> None:
        if self._token.kind != "end":
            raise _invalid("nothing is expected here but `and`, `or`, or the end", self._token.position)

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _is_word(self, *words: str) -> bool:
        return self._token.kind == "word" and self._token.text.lower() in words

    def _take(self) -> _Token:
        token = self._token
        self._next += token.kind != "end"
        return token

    def _skip(self, text: str) -> bool:
        """Take the next token if it is this word or sign."""
        matches = self._token.kind in {"word", "sign"} and self._token.text.lower() == text
        self._next += matches
        return matches

    def _expect(self, text: str) -> None:
        if not self._skip(text):
            raise _invalid(f"`{text}` is expected", self._token.position)

    def _junction(self, word: str) -> ConditionPart:
        below: Callable[[], ConditionPart] = partial(self._junction, "and") if word == "or" else self._negation
        parts = [below()]
        while self._skip(word):
            parts.append(below())
        return parts[0] if len(parts) == 1 else Junction(word, parts)

    def _negation(self) -> ConditionPart:
        if not self._is_word("not") and not self._is_sign("("):
            return self._comparison()
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _invalid(f"more than {_MAX_DEPTH} parts are inside of each other", self._token.position)
        if self._skip("not"):
            node: ConditionPart = Negation(self._negation())
        else:
            self._expect("(")
            node = self._junction("or")
            self._expect(")")
        self._depth -= 1
        return node

    def _is_sign(self, sign: str) -> bool:
        return self._token.kind == "sign" and self._token.text == sign

    def _comparison(self) -> ConditionPart:
        operand = self._operand()
        if self._skip("is"):
            is_not = self._skip("not")
            self._expect("null")
            return Negation(IsNull(operand)) if is_not else IsNull(operand)
        is_not = self._skip("not")
        if is_not or self._is_word("in"):
            self._expect("in")
            position = self._token.position
            node = Membership(operand, self._list(), position)
            return Negation(node) if is_not else node
        sign = self._take()
        if sign.text not in _COMPARE or sign.kind != "sign":
            raise _invalid("a comparison is expected, such as `=`, `<`, `in` or `is null`", sign.position)
        position = self._token.position
        return ValueComparison(operand, sign.text, self._literal(), position)

    def _list(self) -> Sequence[Literal]:
        self._expect("(")
        values = [self._literal()]
        while self._skip(","):
            values.append(self._literal())
        self._expect(")")
        return values

    def _operand(self) -> Operand:
        first = self._token
        path = [self._name()]
        if first.kind == "word" and first.text.lower() == "header" and self._skip("("):
            name = self._literal()
            if not isinstance(name, str):
                raise _invalid("the name of a header is a text in single quotes", first.position)
            self._expect(")")
            return Operand(header=name, position=first.position)
        while self._skip("."):
            path.append(self._name())
        return Operand(path=tuple(path), position=first.position)

    def _name(self) -> str:
        token = self._take()
        if token.kind == "quoted":
            return token.text[1:-1].replace('""', '"')
        if token.kind != "word":
            raise _invalid("the name of a column is expected", token.position)
        return token.text

    def _literal(self) -> Literal:
        token = self._take()
        if token.kind == "text":
            return token.text[1:-1].replace("''", "'")
        if token.kind == "number":
            return int(token.text) if re.fullmatch(r"-?\d+", token.text) else Decimal(token.text)
        if token.kind == "word" and token.text.lower() in {"true", "false"}:
            return token.text.lower() == "true"
        hint = "; compare with null by `is null`" if token.text.lower() == "null" else ""
        raise _invalid(f"a value is expected: a text in single quotes, a number, true or false{hint}", token.position)


def _tokens(text: str) -> Iterator[_Token]:
    end = 0
    while text[end:].strip():
        match = _TOKEN.match(text, end)
        if match is None:
            start = end + len(text[end:]) - len(text[end:].lstrip())
            raise _invalid("this character has no meaning here, or a quote is not closed", start + 1)
        kind = str(match.lastgroup)
        yield _Token(kind, match[kind], match.start(kind) + 1)
        end = match.end()
    yield _Token("end", "", len(text) + 1)


def _scalar(value: Literal, kind: pa.DataType, position: int) -> pa.Scalar:
    """The value as one of the type of a column.

    Raises:
        ConditionInvalid: no value of the type can be equal to it.
    """
    is_text, is_number = isinstance(value, str), isinstance(value, int | Decimal) and not isinstance(value, bool)
    texts = pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_temporal(kind)
    fits = (
        (is_text and texts)
        or (isinstance(value, bool) and pa.types.is_boolean(kind))
        or (is_number and (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)))
    )
    if fits and is_text and pa.types.is_binary(kind):
        return pa.scalar(str(value).encode(), kind)
    if fits and isinstance(value, Decimal) and not pa.types.is_decimal(kind):
        return pa.scalar(float(value))
    try:
        if fits:
            return pa.scalar(value).cast(kind)
    except (pa.ArrowException, OverflowError):
        pass
    raise _invalid(f"the column has the type {kind}, and this value is none of it", position)


def _of_texts(values: Sequence[Literal], kind: pa.DataType) -> pa.Array:
    """The values of a file as those of a column.

    Raises:
        ConditionInvalid: a value is none of the type of the column.
    """
    texts = pa.array([str(value) for value in values], pa.string())
    try:
        return texts.cast(kind)
    except (pa.ArrowException, OverflowError) as error:
        raise ConditionInvalid(f"the column has the type {kind}, and a value of the file is none of it") from error
