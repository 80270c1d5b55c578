"""A read-only client for Confluent's REST API.

The registry is not trusted: answers are limited in size and depth, cycles of references are refused, and a request
that fails is repeated only by the tree's one retry loop.
"""

import ssl
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from threading import RLock
from typing import TypeVar
from urllib.parse import quote

from kafka_io import stopping
from kafka_io.brokers.connection import RetryPolicy
from kafka_io.brokers.retry import FirstContact, retrying
from kafka_io.brokers.throttle import Throttle
from kafka_io.errors import SchemaNotFound, Unsupported, Where, error_context, printable
from kafka_io.net.http_exchange import HttpAnswer, HttpServer, http_exchange
from kafka_io.net.security import Tls
from kafka_io.net.tls import tls_context
from kafka_io.schema_registry.answers import (
    IdAnswer,
    ReferenceAnswer,
    SchemaAnswer,
    VersionAnswer,
    parse,
    refusal,
)
from kafka_io.schema_registry.references import ReferenceWalk
from kafka_io.schema_registry.schemas import RegisteredSchema, SchemaType, SubjectSchema, SubjectVersion
from kafka_io.schema_registry.settings import SchemaRegistrySettings

AnswerT = TypeVar("AnswerT")
SchemaIdT = TypeVar("SchemaIdT", bound=int | str)

MAX_ANSWER_BYTES = 16 * 1024 * 1024
"""The largest answer: a list of 300,000 subjects. A schema is smaller: Confluent's registry keeps it in one message."""
_MAX_CACHED_BYTES = 64 * 1024 * 1024
_ASK_AGAIN_S = 1.0
_DEFAULT_CONTEXTS = {"", "."}
_MOST_AWAITED = 20
_NEWEST = -1  # the version of a reference to the newest version of a subject
_OK = 200


class _AnswerCache:
    """Keeps the newest answers that never change, by their path. Their bodies have at most `max_bytes` in sum."""

    def __init__(self, max_bytes: int) -> None:
        self._bytes_left = max_bytes
        self._answers: dict[str, HttpAnswer] = {}

    def find(self, path: str) -> HttpAnswer | None:
        """The answer for a path; None if it is not kept."""
        return self._answers.get(path)

    def keep(self, path: str, answer: HttpAnswer) -> None:
        """Keep an answer, and drop the oldest ones if there are too many bytes."""
        if path not in self._answers:
            self._answers[path] = answer
            self._bytes_left -= len(answer.body)
        while self._bytes_left < 0:
            oldest = self._answers.pop(next(iter(self._answers)))
            self._bytes_left += len(oldest.body)


@dataclass(eq=False)
class SchemaRegistry:
    """Reads schemas of one registry. It opens a connection for each request. Several threads can use it.

    The schema of an id or of a version is kept, because it should never change. An id that was not found is requested
    again.

    Args:
        name: the name of the registry for errors.
        settings: the address and the login.
        retry_policy: the time limit of a request, and the number of attempts.
        sleep: waits for a number of seconds.
        wait_s: the seconds that `known_schemas` waits in all for ids that the registry does not know yet.

    >>> from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
    >>> with EmbeddedSchemaRegistry() as embedded:
    ...     schema_id = embedded.register("clicks-value", '"string"')
    ...     registry = SchemaRegistry("main", SchemaRegistrySettings(url=embedded.url))
    ...     registry.schema(schema_id).text, registry.newest("clicks-value").version
    ('"string"', 1)
    """

    name: str
    settings: SchemaRegistrySettings
    _: KW_ONLY
    retry_policy: RetryPolicy | None = None
    sleep: Callable[[float], None] = stopping.sleep
    wait_s: float = 0.0

    def __post_init__(self) -> None:
        self._wait_left_s = self.wait_s
        self._address = self.settings.address
        self._policy = self.retry_policy or RetryPolicy()
        self._contact = FirstContact(f"{self._address.host}:{self._address.port}")
        self._cache = _AnswerCache(_MAX_CACHED_BYTES)
        self._lock = RLock()
        self._throttle = Throttle("the registry", self.sleep)

    def schema(self, schema_id: int) -> RegisteredSchema:
        """The schema of an id, with everything that it refers to.

        Raises:
            SchemaNotFound: the registry does not know the id, at least not yet.
            SchemaRegistryUnavailable: the registry cannot answer now.
            NetworkError: the registry cannot be reached.
            SchemaRegistryError: it refuses the request, or its answer has the wrong form or is too large.
            Unsupported: the schema is in another language than those of SchemaType.
            AuthenticationFailed: it refuses the login.
        """
        with error_context(Where(registry=self.name, schema_id=schema_id)):
            if schema_id < 0:
                raise SchemaNotFound("an id is not negative")
            return self._registered(schema_id, self._unchanging(f"/schemas/ids/{schema_id}", SchemaAnswer))

    def schema_of_guid(self, guid: str) -> RegisteredSchema:
        """The schema of a GUID, under the id that it has in the default context. Raises the errors of `schema`."""
        with error_context(Where(registry=self.name)):
            answers = self._get(f"/schemas/guids/{quote(guid, safe='')}/ids", list[IdAnswer])
            ids = [answer.id for answer in answers if answer.context in _DEFAULT_CONTEXTS]
            if not ids:
                raise SchemaNotFound(f"no schema of the default context has the GUID {printable(guid)}")
            return replace(self.schema(ids[0]), guid=guid)

    def known_schemas(self, schema_ids: Iterable[SchemaIdT]) -> dict[SchemaIdT, RegisteredSchema]:
        """The schemas of those ids or GUIDs that the registry knows now, or after a wait (fault E11).

        Values without a frame look like values with many ids, so nothing waits for more than a few.

        Raises the other errors of `schema`.
        """
        ids = list(schema_ids)
        known = self._known(ids)
        while 0 < len(ids) - len(known) <= _MOST_AWAITED and self._wait_left_s > 0:
            pause = min(_ASK_AGAIN_S, self._wait_left_s)
            self._wait_left_s -= pause
            self.sleep(pause)
            known |= self._known([id_ for id_ in ids if id_ not in known])
        return known

    def _known(self, schema_ids: Iterable[SchemaIdT]) -> dict[SchemaIdT, RegisteredSchema]:
        known: dict[SchemaIdT, RegisteredSchema] = {}
        for schema_id in schema_ids:
            try:
                if isinstance(schema_id, str):
                    known[schema_id] = self.schema_of_guid(schema_id)
                else:
                    known[schema_id] = self.schema(schema_id)
            except SchemaNotFound:
                continue  # the registry may get it later; the caller decides what that means
        return known

    def versions(self, schema_id: int) -> Sequence[SubjectVersion]:
        """The versions of subjects that have the schema of this id. Raises the errors of `schema`."""
        with error_context(Where(registry=self.name, schema_id=schema_id)):
            return self._get(f"/schemas/ids/{schema_id}/versions", list[SubjectVersion])

    def newest(self, subject: str) -> SubjectSchema:
        """The newest version of a subject. It is asked for each time. Raises the errors of `schema`."""
        with error_context(Where(registry=self.name, subject=subject)):
            answer = self._get(_version_path(subject, _NEWEST), VersionAnswer)
            schema = self._registered(answer.id, answer)
        return SubjectSchema(subject=subject, version=answer.version, schema=schema)

    def subjects(self) -> Sequence[str]:
        """The names of all subjects that the login may read. Raises the errors of `schema`."""
        with error_context(Where(registry=self.name)):
            return self._get("/subjects", list[str])

    def _registered(self, schema_id: int, answer: SchemaAnswer) -> RegisteredSchema:
        kind = answer.schema_type or SchemaType.AVRO
        if kind not in set(SchemaType):
            raise Unsupported(f"the schema is in the language {printable(kind)}; known are {', '.join(SchemaType)}")
        return RegisteredSchema(
            id=schema_id,
            schema_type=SchemaType(kind),
            text=answer.schema,
            references=ReferenceWalk(self._referenced).resolve(answer),
            guid=answer.guid or "",
        )

    def _referenced(self, reference: ReferenceAnswer) -> VersionAnswer:
        """The version that a reference names, even if it was soft-deleted since."""
        with error_context(Where(subject=reference.subject)):
            path = f"{_version_path(reference.subject, reference.version)}?deleted=true"
            try:
                ask = self._get if reference.version == _NEWEST else self._unchanging
                return ask(path, VersionAnswer)
            except SchemaNotFound as error:
                # The id itself exists, so the schema is incomplete. A registry that replicates another one may get the
                # rest later.
                reason = f"the schema refers to version {reference.version} of a subject: {error.reason}"
                raise SchemaNotFound(reason) from error

    def _unchanging(self, path: str, answer_type: type[AnswerT]) -> AnswerT:
        """An answer that is always the same, so it is kept."""
        with self._lock:
            answer = self._cache.find(path) or self._ask(path)
            parsed = parse(answer, answer_type)
            self._cache.keep(path, answer)
        return parsed

    def _get(self, path: str, answer_type: type[AnswerT]) -> AnswerT:
        with self._lock:
            return parse(self._ask(path), answer_type)

    def _ask(self, path: str) -> HttpAnswer:
        return retrying(lambda: self._ask_once(path), self._policy.backoff, sleep=self.sleep, contact=self._contact)

    def _ask_once(self, path: str) -> HttpAnswer:
        self._throttle.obey()
        login = self.settings.login()
        server = HttpServer(address=self._address, tls=self._tls, login=login)
        path = self._address.path + path
        answer = http_exchange(server, path, timeout_s=self._policy.timeout_s, max_bytes=MAX_ANSWER_BYTES)
        self._contact.is_made = True
        self._throttle.note(answer.retry_after_s, progress=not answer.retry_after_s)
        if answer.status != _OK:
            raise refusal(answer, login)
        return answer

    @cached_property
    def _tls(self) -> ssl.SSLContext | None:
        return tls_context(self.settings.tls or Tls()) if self._address.uses_tls else None


def _version_path(subject: str, version: int) -> str:
    return f"/subjects/{quote(subject, safe='')}/versions/{'latest' if version == _NEWEST else version}"
