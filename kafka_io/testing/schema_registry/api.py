"""The requests that an embedded registry answers: a table of methods and paths."""

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

import msgspec

from kafka_io.schema_registry.schemas import SchemaType
from kafka_io.testing.schema_registry.replies import Refused, RegistryReply
from kafka_io.testing.schema_registry.store import SchemaStore, StoredSchema

_NO_COMPATIBILITY = "NONE"  # the registry checks none
_Call = Callable[[SchemaStore, Mapping[str, str], bytes], Any]


def reply_to(store: SchemaStore, method: str, path: str, body: bytes) -> RegistryReply:
    """The reply to a request. `path` has no query."""
    for (route_method, pattern), call in _ROUTES.items():
        match = re.fullmatch(pattern, path)
        if match is not None and route_method == method:
            names = {name: unquote(value) for name, value in match.groupdict().items()}
            try:
                value = call(store, names, body)
            except Refused as refused:
                return RegistryReply.of_error(*refused.args)
            return value if isinstance(value, RegistryReply) else RegistryReply.of(value)
    return RegistryReply.of_error(404, 404, "HTTP 404 Not Found")


def _posted(body: bytes) -> StoredSchema:
    try:
        return msgspec.json.decode(body, type=StoredSchema)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Refused(422, 42201, f"the request is not a schema: {error}") from error


def _shown(schema: StoredSchema) -> dict[str, Any]:
    """A schema as the REST API shows it: without the type if it is Avro, and without an empty list of references."""
    schema_fields = msgspec.to_builtins(schema)
    if schema.schema_type == SchemaType.AVRO:
        del schema_fields["schemaType"]
    if not schema.references:
        del schema_fields["references"]
    return {**schema_fields, "guid": schema.guid}


def _version(store: SchemaStore, names: Mapping[str, str], _: bytes) -> dict[str, Any]:
    number, schema_id = store.version(names["subject"], names["version"])
    return {"subject": names["subject"], "version": number, "id": schema_id, **_shown(store.schema(schema_id))}


def _version_text(store: SchemaStore, names: Mapping[str, str], _: bytes) -> RegistryReply:
    return _text(store, store.version(names["subject"], names["version"])[1])


def _text(store: SchemaStore, schema_id: int) -> RegistryReply:
    return RegistryReply(body=store.schema(schema_id).schema.encode())


def _register(store: SchemaStore, names: Mapping[str, str], body: bytes) -> dict[str, Any]:
    schema = _posted(body)
    schema_id = store.register(names["subject"], schema)
    return {"id": schema_id, "version": store.find(names["subject"], schema)[0], **_shown(schema)}


def _find(store: SchemaStore, names: Mapping[str, str], body: bytes) -> dict[str, Any]:
    number, schema_id = store.find(names["subject"], _posted(body))
    return {"subject": names["subject"], "version": number, "id": schema_id, **_shown(store.schema(schema_id))}


def _set_compatibility(_store: SchemaStore, _names: Mapping[str, str], body: bytes) -> dict[str, str]:
    try:
        level = msgspec.json.decode(body, type=dict[str, Any]).get("compatibility")
    except (msgspec.MsgspecError, UnicodeDecodeError):
        level = None
    if level != _NO_COMPATIBILITY:
        raise Refused(422, 42203, f"this registry checks no compatibility: {_NO_COMPATIBILITY} is its only level")
    return {"compatibility": _NO_COMPATIBILITY}


_ID = r"/schemas/ids/(?P<id>[0-9]{1,10})"
_GUID = r"/schemas/guids/(?P<guid>[0-9A-Fa-f-]{1,36})"
_SUBJECT = r"/subjects/(?P<subject>[^/]+)"
_VERSION = rf"{_SUBJECT}/versions/(?P<version>[^/]+)"
_CONFIG = r"/config(?:/[^/]+)?"
_ROUTES: Mapping[tuple[str, str], _Call] = {
    ("GET", _ID): lambda store, names, _: _shown(store.schema(int(names["id"]))),
    ("GET", f"{_ID}/schema"): lambda store, names, _: _text(store, int(names["id"])),
    ("GET", f"{_ID}/subjects"): lambda store, names, _: sorted({name for name, _ in store.versions(int(names["id"]))}),
    ("GET", f"{_ID}/versions"): lambda store, names, _: [
        {"subject": subject, "version": version} for subject, version in store.versions(int(names["id"]))
    ],
    ("GET", _GUID): lambda store, names, _: _shown(store.schema(store.id_of(names["guid"]))),
    ("GET", f"{_GUID}/ids"): lambda store, names, _: [{"context": ".", "id": store.id_of(names["guid"])}],
    ("GET", r"/schemas/types"): lambda *_: [str(kind) for kind in SchemaType],
    ("GET", r"/subjects"): lambda store, *_: store.subjects(),
    ("GET", f"{_SUBJECT}/versions"): lambda store, names, _: list(range(1, len(store.ids(names["subject"])) + 1)),
    ("GET", _VERSION): _version,
    ("GET", f"{_VERSION}/schema"): _version_text,
    ("POST", f"{_SUBJECT}/versions"): _register,
    ("POST", _SUBJECT): _find,
    ("GET", _CONFIG): lambda *_: {"compatibilityLevel": _NO_COMPATIBILITY},
    ("PUT", _CONFIG): _set_compatibility,
    ("GET", r"/mode(?:/[^/]+)?"): lambda *_: {"mode": "READWRITE"},
}
