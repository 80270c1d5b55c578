"""The values of nodes of 0.8 to 3.x: those that real brokers wrote, and invalid ones."""

import json
from pathlib import Path

import pytest

from kafka_io.errors import NodeMalformed
from kafka_io.model import MAX_PARTITIONS, Broker
from kafka_io.zookeeper.modern import (
    Endpoint,
    TopicNode,
    parse_cluster_id,
    parse_endpoints,
    parse_settings,
    parse_topic,
)
from tests.zookeeper_nodes import PartitionState, parse_state

GOLDEN = Path(__file__).parents[2] / "golden" / "zookeeper"
BROKER = "/brokers/ids/7"
TOPIC = "/brokers/topics/clicks"


def registered(release: str, path: str) -> bytes:
    value = json.loads((GOLDEN / f"{release}.json").read_text(encoding="utf-8"))[path]
    assert isinstance(value, str)
    return value.encode()


def plaintext(port: int, listener: str = "PLAINTEXT") -> Endpoint:
    return Endpoint(listener, "PLAINTEXT", Broker(1, "127.0.0.1", port))


@pytest.mark.parametrize(
    ("release", "endpoints"),
    [
        ("0.8.2.2", (plaintext(46243),)),
        ("0.9.0.1", (plaintext(42415),)),
        ("0.10.2.2", (plaintext(34467), plaintext(40241, "INTERNAL"))),
        ("2.8.2", (plaintext(38047), plaintext(44299, "INTERNAL"))),
        ("3.9.1", (plaintext(34669), plaintext(39495, "INTERNAL"))),
    ],
)
def test_the_endpoints_of_real_brokers_are_read(release: str, endpoints: tuple[Endpoint, ...]) -> None:
    assert parse_endpoints("/brokers/ids/1", registered(release, "/brokers/ids/1")) == endpoints


def test_a_version_3_broker_names_its_listeners_after_their_protocols() -> None:
    value = (
        b'{"version":3,"host":null,"port":-1,"rack":null,"endpoints":["SASL_SSL://[fe80::1]:9093","SSL://::1:9094"]}'
    )
    assert parse_endpoints(BROKER, value) == (
        Endpoint("SASL_SSL", "SASL_SSL", Broker(7, "fe80::1", 9093)),
        Endpoint("SSL", "SSL", Broker(7, "::1", 9094)),
    )


def test_a_later_version_with_more_fields_is_read() -> None:
    value = b'{"version":99,"new":[{"x":1.5}],"endpoints":["B://b:1"],"listener_security_protocol_map":{"B":"SSL"}}'
    assert parse_endpoints(BROKER, value) == (Endpoint("B", "SSL", Broker(7, "b", 1)),)


# fault Z04
@pytest.mark.parametrize(
    "value",
    [
        '{"host":"a","port":9092}',
        '{"version":0,"host":"a","port":9092}',
        '{"version":"1","host":"a","port":9092}',
        '{"version":1,"host":"a"}',
        '{"version":1,"host":null,"port":9092}',
        '{"version":1,"host":"","port":9092}',
        '{"version":1,"host":"a b","port":9092}',
        '{"version":1,"host":"a","port":-1}',
        '{"version":1,"host":"a","port":65536}',
        '{"version":1,"host":"a","port":"9092"}',
        '{"version":2,"host":"a","port":9092}',
        '{"version":2,"endpoints":[]}',
        '{"version":2,"endpoints":"PLAINTEXT://a:9092"}',
        '{"version":2,"endpoints":["PLAINTEXT://:9092"]}',
        '{"version":2,"endpoints":["PLAINTEXT://a:9092","SSL://b"]}',
        '{"version":2,"endpoints":["PLAINTEXT://a:0"]}',
        '{"version":2,"endpoints":["PLAINTEXT://2001:db8::x:1"]}',
        '{"version":2,"endpoints":["a:9092"]}',
        '{"version":2,"endpoints":["://a:9092"]}',
        '{"version":2,"endpoints":["X\\u001b://a:9092"]}',
        '{"version":2,"endpoints":["PLAINTEXT://a/b:9092"]}',
        '{"version":4,"endpoints":["B://b:1"],"listener_security_protocol_map":{"A":"SSL"}}',
        '{"version":4,"endpoints":["B://b:1"],"listener_security_protocol_map":["B"]}',
    ],
)
def test_a_malformed_broker_is_refused_by_path(value: str) -> None:
    with pytest.raises(NodeMalformed, match=BROKER) as caught:
        parse_endpoints(BROKER, value.encode())
    assert str(caught.value).isprintable()


def test_a_broker_id_is_a_plain_number() -> None:
    with pytest.raises(NodeMalformed, match="/brokers/ids/seven"):
        parse_endpoints("/brokers/ids/seven", b'{"version":1,"host":"a","port":9092}')


@pytest.mark.parametrize(
    ("release", "topic_id"),
    [
        ("0.8.2.2", None),
        ("0.9.0.1", None),
        ("0.10.2.2", None),
        ("2.8.2", "hRsWhYTPQxqk3jZLyIqM9g"),
        ("3.9.1", "wM5oU1nWQpigkUCKGSvgbw"),
    ],
)
def test_the_topics_of_real_brokers_are_read(release: str, topic_id: str | None) -> None:
    assert parse_topic(TOPIC, registered(release, TOPIC)) == TopicNode(partitions=(0, 1, 2), topic_id=topic_id)


def test_partitions_are_in_numeric_order_and_may_lack_replicas() -> None:
    value = b'{"version":2,"partitions":{"10":[1,2],"9":[],"0":null},"adding_replicas":{},"removing_replicas":{}}'
    assert parse_topic(TOPIC, value).partitions == (0, 9, 10)


def test_a_topic_id_of_zeros_is_no_id() -> None:
    value = f'{{"version":3,"partitions":{{"0":[1]}},"topic_id":"{"A" * 22}"}}'
    assert parse_topic(TOPIC, value.encode()).topic_id is None


# fault Z04
@pytest.mark.parametrize(
    "value",
    [
        "{}",
        '{"version":1}',
        '{"partitions":[]}',
        '{"partitions":{"0":[1],"0":[2]}}',
        '{"partitions":{"00":[1]}}',
        '{"partitions":{"-1":[1]}}',
        '{"partitions":{"x":[1]}}',
        f'{{"partitions":{{"{MAX_PARTITIONS}":[1]}}}}',
        '{"partitions":{"0":[1]},"topic_id":5}',
        '{"partitions":{"0":[1]},"topic_id":""}',
        '{"partitions":{"0":[1]},"topic_id":"hRsWhYTPQxqk3jZLyIqM9"}',
        '{"partitions":{"0":[1]},"topic_id":"hRsWhYTPQxqk3jZLyIqM9h"}',  # bits beyond the 16 bytes
        '{"partitions":{"0":[1]},"topic_id":"hRsWhYTPQxqk3jZLyIqM/g"}',
        '{"partitions":{"0":[1]},"x":"' + "x" * 2**22 + '"}',
    ],
)
def test_a_malformed_topic_is_refused_by_path(value: str) -> None:
    with pytest.raises(NodeMalformed, match=TOPIC) as caught:
        parse_topic(TOPIC, value.encode())
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


# fault Z11
@pytest.mark.parametrize("name", ["a b:c", "caf\xe9", "a\n", "*", "t" * 256, ""])
def test_a_name_that_only_0_7_accepts_is_refused(name: str) -> None:
    value = b'{"version":1,"partitions":{"0":[1]}}'
    with pytest.raises(NodeMalformed, match="no such topic name"):
        parse_topic(f"/brokers/topics/{name}", value)
    assert parse_topic(f"/brokers/topics/{'t' * 255}", value).partitions == (0,)
    assert parse_topic("/brokers/topics/_A.z-9", value).partitions == (0,)


@pytest.mark.parametrize("release", ["0.8.2.2", "0.9.0.1", "0.10.2.2", "2.8.2", "3.9.1"])
def test_the_states_of_real_controllers_are_read(release: str) -> None:
    path = f"{TOPIC}/partitions/2/state"
    assert parse_state(path, registered(release, path)) == PartitionState(
        leader=1, leader_epoch=0, isr=(1,), controller_epoch=1
    )


def test_a_partition_may_have_no_leader() -> None:
    value = b'{"controller_epoch":9,"leader":-1,"version":1,"leader_epoch":5,"isr":[],"leader_recovery_state":0}'
    assert parse_state(TOPIC, value) == PartitionState(leader=-1, leader_epoch=5, isr=(), controller_epoch=9)


# fault Z04
@pytest.mark.parametrize("fault", [{"leader": -2}, {"leader": None}, {"leader_epoch": -1}, {"isr": 1}, {"isr": ["1"]}])
def test_a_malformed_state_is_refused_by_path(fault: dict[str, object]) -> None:
    value = {"controller_epoch": 1, "leader": 1, "leader_epoch": 0, "isr": [1]} | fault
    with pytest.raises(NodeMalformed, match=TOPIC):
        parse_state(TOPIC, json.dumps(value).encode())


@pytest.mark.parametrize(
    ("release", "cluster_id"),
    [
        ("0.10.2.2", "KfMaVi2eTPi-I92asIeakA"),
        ("2.8.2", "EMPKDx33RYOw0FsBOtEryg"),
        ("3.9.1", "Wvj4h--FQ428o9I52c_f5g"),
    ],
)
def test_the_cluster_ids_of_real_brokers_are_read(release: str, cluster_id: str) -> None:
    assert parse_cluster_id("/cluster/id", registered(release, "/cluster/id")) == cluster_id


# fault Z04
@pytest.mark.parametrize("value", ["", "abc", "{}", '{"version":"1","id":5}', '{"id":"a/b"}', f'{{"id":"{"x" * 23}"}}'])
def test_a_malformed_cluster_id_is_refused_by_path(value: str) -> None:
    with pytest.raises(NodeMalformed, match="/cluster/id"):
        parse_cluster_id("/cluster/id", value.encode())


def test_the_settings_of_a_topic_are_texts() -> None:
    path = "/config/topics/clicks"
    assert parse_settings(path, b'{"version":1,"config":{"retention.ms":"3600000"}}') == {"retention.ms": "3600000"}
    assert parse_settings(path, b'{"version":1,"config":{}}') == {}


@pytest.mark.parametrize("value", [b"", b"{}", b'{"config":[]}', b'{"config":{"retention.ms":3600000}}'])
def test_invalid_settings_are_refused(value: bytes) -> None:
    with pytest.raises(NodeMalformed, match="/config/topics/clicks"):
        parse_settings("/config/topics/clicks", value)
