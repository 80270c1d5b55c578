"""Resolves the references of a schema, depth first. Depth, number and size are limited: the registry is not trusted."""

from collections.abc import Callable, Sequence

from kafka_io.errors import SchemaRegistryError, printable
from kafka_io.schema_registry.answers import MAX_REFERENCES, ReferenceAnswer, SchemaAnswer, VersionAnswer
from kafka_io.schema_registry.schemas import ReferencedSchema

MAX_DEPTH = 64
"""The longest chain of references."""
MAX_SCHEMA_LENGTH = 16 * 1024 * 1024
"""Maximum number of characters of a schema and of everything that it needs."""

_Place = tuple[str, int]  # a subject and its version


class ReferenceWalk:
    """Collects what one schema refers to, directly or not. It is used once.

    Args:
        fetch: returns the version of a subject that a reference names.
    """

    def __init__(self, fetch: Callable[[ReferenceAnswer], VersionAnswer]) -> None:
        self._fetch = fetch
        self._characters_left = MAX_SCHEMA_LENGTH
        self._names: set[str] = set()
        self._resolved: list[ReferencedSchema] = []

    def resolve(self, answer: SchemaAnswer) -> tuple[ReferencedSchema, ...]:
        """The schemas that `answer` refers to, each after those that it needs, and each name once.

        Raises:
            SchemaRegistryError: the references form a cycle, or are more or larger than a schema can need.
        """
        self._count(answer, ())
        self._visit(answer.references or (), ())
        return tuple(self._resolved)

    def _visit(self, references: Sequence[ReferenceAnswer], path: tuple[_Place, ...]) -> None:
        for reference in references:
            place = (reference.subject, reference.version)
            if place in path:
                raise SchemaRegistryError(
                    f"the references of the schema form a cycle through version {place[1]} of {printable(place[0])}"
                )
            if reference.name in self._names:
                continue
            self._names.add(reference.name)
            version = self._fetch(reference)
            self._count(version, path)
            self._visit(version.references or (), (*path, place))
            self._resolved.append(
                ReferencedSchema(
                    name=reference.name, subject=reference.subject, version=version.version, text=version.schema
                )
            )

    def _count(self, answer: SchemaAnswer, path: tuple[_Place, ...]) -> None:
        self._characters_left -= len(answer.schema)
        if len(path) >= MAX_DEPTH or len(self._names) > MAX_REFERENCES or self._characters_left < 0:
            raise SchemaRegistryError(
                f"the schema needs more than {MAX_REFERENCES:,} schemas or {MAX_SCHEMA_LENGTH:,} characters, "
                f"or its references are nested more than {MAX_DEPTH} times"
            )
