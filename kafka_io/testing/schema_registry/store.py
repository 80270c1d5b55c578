"""The schemas of an embedded registry: ids, subjects and versions, in memory and in one file if there is a folder.

Schemas are kept as text. The registry checks that Avro and JSON schemas are JSON and that references exist, and checks
no compatibility. A schema has the same id in all subjects, however it is indented.
"""

import hashlib
import json
import threading
import uuid
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kafka_io.schema_registry.answers import ReferenceAnswer
from kafka_io.schema_registry.schemas import SchemaType
from kafka_io.testing.modern.json_file import JsonFile
from kafka_io.testing.schema_registry.replies import Refused

_FILE = "schemas.json"
LATEST = "latest"


class StoredSchema(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A schema as a client registers it."""

    schema: str
    schema_type: str = SchemaType.AVRO
    references: tuple[ReferenceAnswer, ...] = ()

    def identity(self) -> tuple[object, ...]:
        """A form that equal schemas share: it does not depend on the order of keys or on white space.

        Raises:
            Refused: the schema is not valid.
        """
        if self.schema_type not in set(SchemaType):
            raise Refused(422, 42201, f"the schema type {self.schema_type} is not known")
        text = self.schema.strip()
        if self.schema_type != SchemaType.PROTOBUF:
            try:
                text = json.dumps(json.loads(self.schema), sort_keys=True)
            except (ValueError, RecursionError) as error:
                raise Refused(422, 42201, f"the schema is not JSON: {error}") from error
        return self.schema_type, text, self.references

    @property
    def guid(self) -> str:
        """The GUID, which equal schemas share."""
        return str(uuid.UUID(bytes=hashlib.md5(repr(self.identity()).encode(), usedforsecurity=False).digest()))


class StoredSchemas(msgspec.Struct):
    """All schemas, the first with the id 1, and the ids of the versions of each subject, the first with version 1."""

    schemas: list[StoredSchema] = msgspec.field(default_factory=list)
    subjects: dict[str, list[int]] = msgspec.field(default_factory=dict)


class SchemaStore:
    """The schemas of a registry. Any number of threads may use it.

    Args:
        data_dir: the folder of the file; None keeps the schemas in memory only.

    Raises:
        Corrupt: the file has the wrong content.
    """

    def __init__(self, data_dir: Path | None = None) -> None:
        self._lock = threading.Lock()
        self._file = JsonFile(data_dir / _FILE, StoredSchemas) if data_dir else None
        self._stored = self._file.read(StoredSchemas()) if self._file else StoredSchemas()
        self._ids = {schema.identity(): number for number, schema in enumerate(self._stored.schemas, start=1)}

    def register(self, subject: str, schema: StoredSchema) -> int:
        """Register a schema as the newest version of a subject, and return its id.

        A schema that the subject has already gets no other version.

        Raises:
            Refused: the schema is not valid, or refers to a version that does not exist.
        """
        identity = schema.identity()
        with self._lock:
            for reference in schema.references:
                if not 0 < reference.version <= len(self._stored.subjects.get(reference.subject, ())):
                    raise Refused(422, 42201, f"there is no version {reference.version} of {reference.subject}")
            schema_id = self._ids.get(identity, len(self._stored.schemas) + 1)
            versions = self._stored.subjects.setdefault(subject, [])
            if schema_id not in versions:
                if identity not in self._ids:
                    self._ids[identity] = schema_id
                    self._stored.schemas.append(schema)
                versions.append(schema_id)
                if self._file is not None:
                    self._file.write(self._stored)
            return schema_id

    def schema(self, schema_id: int) -> StoredSchema:
        """The schema of an id.

        Raises:
            Refused: there is none.
        """
        with self._lock:
            if not 0 < schema_id <= len(self._stored.schemas):
                raise Refused(404, 40403, f"Schema {schema_id} not found")
            return self._stored.schemas[schema_id - 1]

    def id_of(self, guid: str) -> int:
        """The id of the schema with a GUID.

        Raises:
            Refused: there is none.
        """
        with self._lock:
            ids = [number for number, schema in enumerate(self._stored.schemas, start=1) if schema.guid == guid.lower()]
        if not ids:
            raise Refused(404, 40403, f"Schema {guid} not found")
        return ids[0]

    def subjects(self) -> Sequence[str]:
        """The names of all subjects."""
        with self._lock:
            return sorted(self._stored.subjects)

    def ids(self, subject: str) -> Sequence[int]:
        """The ids of all versions of a subject, the oldest first.

        Raises:
            Refused: there is no such subject.
        """
        with self._lock:
            if subject not in self._stored.subjects:
                raise Refused(404, 40401, f"Subject '{subject}' not found.")
            return tuple(self._stored.subjects[subject])

    def version(self, subject: str, version: str) -> tuple[int, int]:
        """The number and the id of a version: its number as text, `latest`, or -1 for the latest.

        Raises:
            Refused: there is no such subject or version.
        """
        ids = self.ids(subject)
        number = len(ids) if version in {LATEST, "-1"} else int(version) if version.isdigit() else 0
        if not 0 < number <= len(ids):
            raise Refused(404, 40402, f"Version {version} not found.")
        return number, ids[number - 1]

    def find(self, subject: str, schema: StoredSchema) -> tuple[int, int]:
        """The version and the id of a schema in a subject.

        Raises:
            Refused: the subject does not have it.
        """
        ids, schema_id = self.ids(subject), self._ids.get(schema.identity())
        if schema_id is None or schema_id not in ids:
            raise Refused(404, 40403, "Schema not found")
        return ids.index(schema_id) + 1, schema_id

    def versions(self, schema_id: int) -> Sequence[tuple[str, int]]:
        """The subjects and versions that have the schema of an id."""
        self.schema(schema_id)
        with self._lock:
            return [
                (subject, number)
                for subject, ids in sorted(self._stored.subjects.items())
                for number, version_id in enumerate(ids, start=1)
                if version_id == schema_id
            ]
