"""The answers of Confluent's REST API. Unknown fields are ignored; a field of another type is an error."""

from collections.abc import Sequence
from typing import Annotated, TypeVar

import msgspec

from kafka_io.errors import (
    AuthenticationFailed,
    KafkaIOError,
    SchemaNotFound,
    SchemaRegistryError,
    SchemaRegistryUnavailable,
)
from kafka_io.net.http_exchange import HttpAnswer
from kafka_io.net.http_login import HttpLogin
from kafka_io.net.secret import one_line
from kafka_io.typed_json import decode_json, learn

AnswerT = TypeVar("AnswerT")

MAX_REFERENCES = 1000
"""The maximum number of schemas that one schema needs. Real ones need a few dozen."""
_UNAUTHORIZED = 401
_FORBIDDEN = 403
_NOT_FOUND = 404
_SERVER_ERROR = 500
_BUSY = frozenset({408, 425, 429})  # besides these, all of 500 and above


class ReferenceAnswer(msgspec.Struct, frozen=True):
    """A reference to a version of a subject; -1 is its newest version."""

    name: str
    subject: str
    version: int


class SchemaAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer to `/schemas/ids/{id}`. That to `/subjects/{subject}/versions/{version}` has these fields too."""

    schema: str
    schema_type: str | None = None  # left out for Avro
    references: Annotated[Sequence[ReferenceAnswer], msgspec.Meta(max_length=MAX_REFERENCES)] | None = None
    guid: str | None = None


class IdAnswer(msgspec.Struct, frozen=True):
    """An item of the answer to `/schemas/guids/{guid}/ids`: the id that a schema has in a context."""

    id: int
    context: str = ""


class VersionAnswer(SchemaAnswer, frozen=True, kw_only=True, rename="camel"):
    """The answer to `/subjects/{subject}/versions/{version}`."""

    subject: str
    id: int
    version: int


class ErrorAnswer(msgspec.Struct, frozen=True):
    """The body of an answer that is not 200. The code is the status, or the status and two digits."""

    error_code: int = 0
    message: str = ""


def parse(answer: HttpAnswer, answer_type: type[AnswerT]) -> AnswerT:
    """The body of an answer with status 200.

    Raises:
        SchemaRegistryError: the body is not JSON of this type.
    """
    learn(answer_type)
    try:
        return msgspec.json.decode(answer.body, type=answer_type)  # not decode_json: a traceback would show its data
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise SchemaRegistryError(f"the answer is not that of a schema registry: {error}; is `url` right?") from error


def refusal(answer: HttpAnswer, login: HttpLogin | None) -> KafkaIOError:
    """The error for an answer with another status than 200. Its sentence is short and does not contain the login."""
    error = _error_of(answer)
    message = login.masked(error.message) if login else one_line(error.message)
    reason = f"the registry answers {error.error_code or answer.status}" + (message and f": {message}")
    if answer.status == _UNAUTHORIZED:
        return AuthenticationFailed(f"the registry refuses the login, or requires one ({reason})")
    if answer.status == _FORBIDDEN:
        return SchemaRegistryError(f"the login is not allowed to read this ({reason})")
    if answer.status in _BUSY or answer.status >= _SERVER_ERROR:
        return SchemaRegistryUnavailable(reason)
    if answer.status == _NOT_FOUND and error.error_code // 100 == _NOT_FOUND:
        return SchemaNotFound(f"the registry does not know it ({reason})")
    # A wrong `url` also gives 404, for every id. Such an answer must not make ids look unknown.
    return SchemaRegistryError(f"{reason}; is `url` right?")


def _error_of(answer: HttpAnswer) -> ErrorAnswer:
    try:
        return decode_json(answer.body, ErrorAnswer)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):  # a page of a proxy
        return ErrorAnswer()
