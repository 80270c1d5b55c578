"""Paths and values of 0.7: those that a genuine broker wrote, and invalid ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_io.errors import NodeMalformed
from kafka_io.model import MAX_PARTITIONS, Broker, BrokerPartition
from kafka_io.zookeeper.paths import (
    check_topic_name,
    format_broker_07,
    format_topic_share,
    parse_broker_07,
    parse_topic_share,
)

hosts = st.one_of(
    st.from_regex(r"[a-z]([a-z0-9-]{0,12}[a-z0-9])?(\.[a-z]{2,5})?", fullmatch=True),
    st.ip_addresses().map(str),
)
brokers = st.builds(Broker, st.integers(0, 2**31 - 1), hosts, st.integers(1, 65535))


def test_the_registration_of_a_genuine_broker_is_read() -> None:
    value = b"127.0.0.1-1795257118723:127.0.0.1:19072"  # golden zk/00-brokers-and-topics.json
    assert parse_broker_07("/brokers/ids/0", value) == Broker(0, "127.0.0.1", 19072)
    assert format_broker_07(Broker(0, "127.0.0.1", 19072), "127.0.0.1-1795257118723") == value


@given(brokers, hosts, st.integers(0, 2**41))
def test_a_broker_is_read_back_whatever_its_host(broker: Broker, creator_host: str, created_ms: int) -> None:
    value = format_broker_07(broker, f"{creator_host}-{created_ms}")
    assert parse_broker_07(f"/brokers/ids/{broker.id}", value) == broker


# fault Z04
@pytest.mark.parametrize(
    ("value", "host"),
    [
        ("fe80::1-1324306324402:fe80::1:9092", "fe80::1"),
        ("[fe80::1]-1324306324402:[fe80::1]:9092", "fe80::1"),
        ("fe80::1%eth0-1324306324402:fe80::1%eth0:9092", "fe80::1%eth0"),
        ("::ffff:10.0.0.1-1:::ffff:10.0.0.1:9092", "::ffff:10.0.0.1"),
        ("kafka-1-1324306324402:kafka-1:9092", "kafka-1"),
        ("rack-2.example-7-1324306324402:rack-2.example-7:9092", "rack-2.example-7"),
        ("anything:kafka_1.example:9092", "kafka_1.example"),
    ],
)
def test_host_and_port_are_separated_from_the_creator(value: str, host: str) -> None:
    assert parse_broker_07("/brokers/ids/1", value.encode()) == Broker(1, host, 9092)


# faults Z04, X05
@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"10.0.0.1:9092",
        b"2001:db8::1:9092",
        b"x:2001:db8::1:9092",
        b"a-1::9092",
        b"a-1:a:",
        b"a-1:a:0",
        b"a-1:a:65536",
        b"a-1:a:-1",
        b"a-1:a:9092 ",
        b"a-1:a:\xd9\xa3",  # an Arabic-Indic three
        b"a-1:a b:9092",
        b"a-1:a/b:9092",
        b"a-1:a\x1b[31m:9092",
        b"a-1:b-2:c:9092",
        b"a-1:\xff\xfe:9092",
        b"a-1:" + b"a" * 1_000_000 + b":9092",
    ],
)
def test_a_malformed_broker_is_refused_by_path(value: bytes) -> None:
    with pytest.raises(NodeMalformed, match="/brokers/ids/7") as caught:
        parse_broker_07("/brokers/ids/7", value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("name", ["", "x", "-1", "+1", "01", "1 ", "2147483648", "1" * 10_000, "\u0663"])
def test_a_broker_id_is_a_plain_number(name: str) -> None:
    with pytest.raises(NodeMalformed):
        parse_broker_07(f"/brokers/ids/{name}", b"a-1:a:9092")


def test_a_node_of_a_later_generation_is_malformed_here() -> None:
    with pytest.raises(NodeMalformed):
        parse_broker_07("/brokers/ids/0", b'{"host":"a","port":9092,"version":1}')
    with pytest.raises(NodeMalformed):
        parse_topic_share("/brokers/topics/clicks/partitions", b"")


@given(st.integers(0, 300), st.integers(0, 2**31 - 1))
def test_a_share_is_read_back_in_order(partitions: int, broker_id: int) -> None:
    share = parse_topic_share(f"/brokers/topics/a b:c/{broker_id}", format_topic_share(partitions))
    assert share == tuple(BrokerPartition(broker_id, partition) for partition in range(partitions))


# fault Z04
@pytest.mark.parametrize("value", [b"", b"-1", b"two", b"2\n", b"2.0", b"\xff", b"9" * 1_000_000, b"100001"])
def test_a_malformed_share_is_refused_by_path(value: bytes) -> None:
    with pytest.raises(NodeMalformed, match="/brokers/topics/clicks/2"):
        parse_topic_share("/brokers/topics/clicks/2", value)


def test_a_share_has_no_more_than_the_cap() -> None:
    assert len(parse_topic_share("/brokers/topics/clicks/0", b"%d" % MAX_PARTITIONS)) == MAX_PARTITIONS


@pytest.mark.parametrize("name", ["a b:c", "caf\xe9", "my-topic-1", "..a", "back\\slash", "*", "t" * 255])
def test_unusual_names_that_a_broker_accepts_are_accepted(name: str) -> None:
    check_topic_name(name)
    with pytest.raises(NodeMalformed):
        check_topic_name(f"{name}/")


# faults Z11, X03
@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "/x", "a\x00", "a\nb", "\x1b[1m", "\x85", "t" * 256])
def test_names_that_a_broker_refuses_are_refused(name: str) -> None:
    with pytest.raises(NodeMalformed) as caught:
        check_topic_name(name)
    assert str(caught.value).isprintable()
