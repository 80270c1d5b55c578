"""The embedded registry answers as Confluent's does, keeps its schemas, and ends its clients when it stops."""

import json
import socket
import uuid
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from kafka_io.errors import Corrupt
from kafka_io.testing.data_dir import DataDirInUse
from kafka_io.testing.schema_registry.replies import Refused
from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from tests.fakes.registry_faults import stalls

AVRO = {"schema": '{"type": "string"}'}


def ask(registry: EmbeddedSchemaRegistry, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """The status and the JSON of the reply."""
    connection = HTTPConnection(registry.url.removeprefix("http://"), timeout=20)
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def test_a_schema_is_registered_found_and_listed() -> None:
    protobuf = {"schema": 'syntax = "proto3"; import "a.proto";', "schemaType": "PROTOBUF"}
    protobuf |= {"references": [{"name": "a.proto", "subject": "a/b", "version": 1}]}  # type: ignore[dict-item]
    with EmbeddedSchemaRegistry() as registry:
        avro = {**AVRO, "guid": ANY}
        assert ask(registry, "POST", "/subjects/a%2Fb/versions", AVRO) == (200, {"id": 1, "version": 1, **avro})
        registered = ask(registry, "POST", "/subjects/p/versions", protobuf)
        guid = registered[1]["guid"]
        protobuf["guid"] = guid
        assert registered == (200, {"id": 2, "version": 1, **protobuf})
        assert ask(registry, "GET", f"/schemas/guids/{guid}") == (200, protobuf)
        assert ask(registry, "GET", f"/schemas/guids/{guid}/ids") == (200, [{"context": ".", "id": 2}])
        assert ask(registry, "GET", f"/schemas/guids/{uuid.UUID(int=7)}/ids")[1]["error_code"] == 40403
        assert ask(registry, "GET", "/schemas/ids/1") == (200, avro)
        assert ask(registry, "GET", "/schemas/ids/2?subject=p") == (200, protobuf)
        assert ask(registry, "GET", "/schemas/ids/1/schema") == (200, {"type": "string"})
        assert ask(registry, "GET", "/schemas/ids/2/subjects") == (200, ["p"])
        assert ask(registry, "GET", "/schemas/ids/1/versions") == (200, [{"subject": "a/b", "version": 1}])
        assert ask(registry, "GET", "/subjects") == (200, ["a/b", "p"])
        assert ask(registry, "GET", "/subjects/p/versions") == (200, [1])
        shown = {"subject": "p", "version": 1, "id": 2, **protobuf}
        for version in ("latest", "-1", "1"):
            assert ask(registry, "GET", f"/subjects/p/versions/{version}") == (200, shown)
        assert ask(registry, "GET", "/subjects/a%2Fb/versions/1/schema") == (200, {"type": "string"})
        assert ask(registry, "POST", "/subjects/p", protobuf) == (200, shown)


def test_the_same_schema_has_the_same_id_in_all_subjects() -> None:
    spaced = {"schema": '{ "type" : "string" }', "schemaType": "AVRO"}
    with EmbeddedSchemaRegistry() as registry:
        for subject, schema in (("a", AVRO), ("a", spaced), ("b", spaced)):
            assert ask(registry, "POST", f"/subjects/{subject}/versions", schema)[1]["id"] == 1
        assert ask(registry, "GET", "/subjects/a/versions") == (200, [1])
        as_json = {**AVRO, "schemaType": "JSON"}
        assert ask(registry, "POST", "/subjects/a/versions", as_json)[1] == {
            "id": 2,
            "version": 2,
            **as_json,
            "guid": ANY,
        }


def test_no_compatibility_is_checked_and_no_other_level_accepted() -> None:
    with EmbeddedSchemaRegistry() as registry:
        assert ask(registry, "GET", "/config") == (200, {"compatibilityLevel": "NONE"})
        assert ask(registry, "GET", "/config/a") == (200, {"compatibilityLevel": "NONE"})
        assert ask(registry, "PUT", "/config", {"compatibility": "NONE"}) == (200, {"compatibility": "NONE"})
        status, error = ask(registry, "PUT", "/config/a", {"compatibility": "BACKWARD"})
        assert (status, error["error_code"]) == (422, 42203)
        assert ask(registry, "GET", "/mode") == (200, {"mode": "READWRITE"})
        assert ask(registry, "GET", "/schemas/types") == (200, ["AVRO", "JSON", "PROTOBUF"])


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("GET", "/schemas/ids/2", None, 40403),
        ("GET", "/schemas/ids/0/versions", None, 40403),
        ("GET", "/subjects/none/versions", None, 40401),
        ("GET", "/subjects/none/versions/latest", None, 40401),
        ("GET", "/subjects/s/versions/2", None, 40402),
        ("GET", "/subjects/s/versions/x", None, 40402),
        ("POST", "/subjects/s", {"schema": '"int"'}, 40403),
        ("POST", "/subjects/s/versions", {"schema": "not JSON"}, 42201),
        ("POST", "/subjects/s/versions", {"schema": "{}", "schemaType": "XML"}, 42201),
        ("POST", "/subjects/s/versions", {"schemaType": "AVRO"}, 42201),
        (
            "POST",
            "/subjects/s/versions",
            {"schema": "{}", "references": [{"name": "x", "subject": "s", "version": 2}]},
            42201,
        ),
        ("PUT", "/config", ["BACKWARD"], 42203),
        ("GET", "/nothing", None, 404),
        ("POST", "/schemas/ids/1", {}, 404),
    ],
)
def test_an_error_has_confluents_code(method: str, path: str, body: Any, code: int) -> None:
    with EmbeddedSchemaRegistry() as registry:
        registry.register("s", '"string"')
        status, error = ask(registry, method, path, body)
    assert (status, error["error_code"]) == (int(str(code)[:3]), code)


def test_a_schema_that_is_not_valid_is_refused_in_process_too() -> None:
    with EmbeddedSchemaRegistry() as registry, pytest.raises(Refused, match="not JSON"):
        registry.register("s", "record Order")


def test_schemas_survive_a_restart(tmp_path: Path) -> None:
    for expected in (1, 2):
        with EmbeddedSchemaRegistry(data_dir=tmp_path) as registry:
            assert registry.register("a", '"int"') == 1
            assert registry.register("a", '"long"') == 2
            assert ask(registry, "GET", "/subjects/a/versions")[1] == [1, 2]
            assert registry.register("b", f'"x{expected}"') == expected + 2


def test_a_folder_serves_one_registry_and_keeps_its_form(tmp_path: Path) -> None:
    with EmbeddedSchemaRegistry(data_dir=tmp_path), pytest.raises(DataDirInUse):
        EmbeddedSchemaRegistry(data_dir=tmp_path).start()
    (tmp_path / "schemas.json").write_text("{")
    with pytest.raises(Corrupt, match=r"schemas\.json has the wrong content"):
        EmbeddedSchemaRegistry(data_dir=tmp_path).start()


def test_a_registry_stops_although_clients_are_silent() -> None:
    with EmbeddedSchemaRegistry() as registry:
        registry.inject(stalls)
        port = int(registry.url.rpartition(":")[2])
        silent = socket.create_connection(("127.0.0.1", port))
        waiting = socket.create_connection(("127.0.0.1", port))
        waiting.sendall(b"GET /subjects HTTP/1.1\r\n\r\n")
    with silent, waiting, pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_the_registry_listens_only_on_loopback() -> None:  # fault X11
    with EmbeddedSchemaRegistry() as registry, socket.socket() as elsewhere:
        elsewhere.bind(("127.0.0.2", int(registry.url.rpartition(":")[2])))  # this fails if it listens everywhere
