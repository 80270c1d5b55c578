"""The 0.7 broker over real sockets: when clients see messages, and which threads and files remain after a stop."""

import gzip
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_io.errors import TooLarge
from kafka_io.testing.data_dir import DataDirInUse
from kafka_io.testing.segment_file import FileRegion
from kafka_io.testing.v07.server import BrokerServer07, frame
from kafka_io.v07.messages import LATEST_TIME, FetchRequest07, MultiProduceRequest07, ProduceRequest07
from tests.kafka_io.testing.v07.conftest import StartBroker
from tests.kafka_io.testing.v07.talk import TIMEOUT_S, Client, message, numbered

Connect = Callable[[BrokerServer07], Client]
NEVER_MS = 10**9


def test_requests_in_one_write_are_answered_in_their_order(start_broker: StartBroker, connect: Connect) -> None:
    client = connect(start_broker())
    messages = numbered(50)
    requests = [
        request
        for number, message in enumerate(messages)
        for request in (ProduceRequest07("clicks", 0, message), FetchRequest07("clicks", 0, 20 * number, 1000))
    ]
    client.send(b"".join(request.encode() for request in requests))
    assert [client.frame()[6:] for _ in messages] == messages


def test_a_request_can_arrive_byte_by_byte(start_broker: StartBroker, connect: Connect) -> None:
    client, (message,) = connect(start_broker()), numbered(1)
    for byte in ProduceRequest07("clicks", 0, message).encode() + FetchRequest07("clicks", 0, 0, 1000).encode():
        client.send(bytes((byte,)))
    assert client.frame()[6:] == message


def test_a_set_of_three_bytes_is_empty(start_broker: StartBroker, connect: Connect) -> None:  # fault F12
    """A genuine broker makes the topic known, stores nothing, and keeps the connection."""
    client, (message,) = connect(start_broker()), numbered(1)
    client.produce("clicks", b"\x00\x00\x00")
    assert (client.fetch("clicks"), client.offsets("clicks", LATEST_TIME)) == (b"", [0])
    client.produce("clicks", message, b"\x00")
    assert client.fetch("clicks") == message
    client.send(ProduceRequest07("clicks", 0, b"\x00\x00\x00\x07"))
    assert client.state() == "closed"


def test_unflushed_messages_are_not_visible_to_clients(start_broker: StartBroker, connect: Connect) -> None:
    client = connect(start_broker(flush_messages=3, flush_interval_ms=NEVER_MS))
    messages = numbered(3)
    client.produce("clicks", *messages[:2])
    assert (client.fetch("clicks"), client.offsets("clicks", LATEST_TIME)) == (b"", [0])
    assert client.ask(FetchRequest07("clicks", 0, 20, 1000)) == bytes.fromhex("000000020001")
    client.produce("clicks", messages[2])
    assert (client.fetch("clicks"), client.offsets("clicks", LATEST_TIME)) == (b"".join(messages), [60, 0])


def test_the_timed_flush_makes_messages_visible(start_broker: StartBroker, connect: Connect) -> None:
    client = connect(start_broker(flush_messages=NEVER_MS, flush_interval_ms=10))
    client.produce("clicks", *numbered(2))
    while client.offsets("clicks", LATEST_TIME) == [0]:
        pass
    assert client.fetch("clicks") == b"".join(numbered(2))


def test_a_compressed_set_counts_its_inner_messages_for_the_flush(start_broker: StartBroker, connect: Connect) -> None:
    client = connect(start_broker(flush_messages=3, flush_interval_ms=NEVER_MS))
    wrapper = message(gzip.compress(b"".join(numbered(3)), mtime=0), attributes=1)
    client.produce("clicks", wrapper)
    assert client.fetch("clicks") == wrapper


def test_stopping_a_broker_flushes_its_logs(start_broker: StartBroker, connect: Connect) -> None:
    first = start_broker(flush_messages=NEVER_MS, flush_interval_ms=NEVER_MS)
    connect(first).produce("clicks", *numbered(2))
    first.stop()
    assert connect(start_broker()).fetch("clicks") == b"".join(numbered(2))


def test_an_answer_is_never_cut_by_the_size_of_socket_buffers(start_broker: StartBroker, connect: Connect) -> None:
    client = connect(start_broker(segment_bytes=2**30))
    large = [message(bytes((number,)) * 900_000) for number in range(8)]
    for large_message in large:
        client.produce("clicks", large_message)
    assert client.fetch("clicks", max_size=10_000_000) == b"".join(large)


def test_a_segment_file_that_became_shorter_closes_the_connection_of_its_reader(
    start_broker: StartBroker, connect: Connect, tmp_path: Path
) -> None:
    """The client must not wait for bytes that do not exist any more."""
    client = connect(start_broker(data_dir=tmp_path))
    client.produce("clicks", *numbered(2))
    os.truncate(tmp_path / "clicks-0" / f"{0:020d}.kafka", 30)
    assert client.ask(FetchRequest07("clicks", 0, 0, 1000))[6:] == b"".join(numbered(2))[:30]
    assert client.state() == "closed"


def test_an_answer_that_is_too_large_for_a_frame_is_refused(start_broker: StartBroker) -> None:
    """A MULTIFETCH can ask for that much, part by part (fault W07)."""
    log = start_broker()._logs.find_or_create("clicks", 0)
    region = FileRegion(segment=log.segments[0], position=0, count=2**30)
    with pytest.raises(TooLarge):
        frame(region, region)


def test_a_fetch_of_negative_size_is_answered_with_a_whole_header(start_broker: StartBroker, connect: Connect) -> None:
    """The two bytes of the error code follow although the size does not count them [kafka-0.7: Fetch]."""
    client = connect(start_broker())
    client.produce("clicks", *numbered(1))
    client.send(FetchRequest07("clicks", 0, 0, -7))
    assert client.read(6) == bytes.fromhex("fffffffb0000")


def test_a_set_with_a_message_that_is_too_large_is_dropped_without_an_answer(
    start_broker: StartBroker, connect: Connect
) -> None:
    client = connect(start_broker(max_message_bytes=10))
    client.produce("clicks", *numbered(1), message(b"x" * 11))
    client.send(
        MultiProduceRequest07(
            (ProduceRequest07("clicks", 0, message(b"x" * 11)), ProduceRequest07("clicks", 0, message(b"x" * 10)))
        )
    )
    assert client.fetch("clicks") == message(b"x" * 10)


def test_the_message_sets_of_parallel_producers_are_not_mixed(start_broker: StartBroker, connect: Connect) -> None:
    broker = start_broker(segment_bytes=500)
    batches = [numbered(5, first=5 * number) for number in range(16)]
    clients = [connect(broker) for _ in batches]
    threads = [
        threading.Thread(target=client.produce, args=("clicks", *batch))
        for client, batch in zip(clients, batches, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stored, end = b"", clients[0].offsets("clicks", LATEST_TIME)[0]
    while len(stored) < end:
        stored += clients[0].fetch("clicks", len(stored))
    messages_read = [stored[position : position + 100] for position in range(0, end, 100)]
    assert sorted(messages_read) == sorted(b"".join(batch) for batch in batches)


def test_two_brokers_do_not_share_a_directory(start_broker: StartBroker, tmp_path: Path) -> None:
    first = start_broker(data_dir=tmp_path)
    with pytest.raises(DataDirInUse, match="another running broker uses the data directory"):
        start_broker(data_dir=tmp_path)
    first.stop()
    start_broker(data_dir=tmp_path)


def test_a_broker_that_cannot_start_leaves_no_thread_and_no_lock(start_broker: StartBroker, tmp_path: Path) -> None:
    taken = start_broker().port
    threads = set(threading.enumerate())
    with pytest.raises(OSError, match="Address already in use"):
        start_broker(port=taken, data_dir=tmp_path / "other")
    assert set(threading.enumerate()) <= threads
    start_broker(data_dir=tmp_path / "other")


def test_a_topic_name_too_long_for_the_disk_closes_the_producer_and_not_the_reader(
    start_broker: StartBroker, connect: Connect
) -> None:
    broker = start_broker()
    assert connect(broker).fetch("x" * 255) == b""
    client = connect(broker)
    client.send(ProduceRequest07("x" * 255, 0, b"".join(numbered(1))))
    assert client.state() == "closed"


def test_a_thousand_fetches_leave_no_thread_and_no_open_file(start_broker: StartBroker) -> None:
    threads, descriptors = set(threading.enumerate()), open_descriptors()
    broker = start_broker()
    for number in range(100):
        with Client(broker.port) as client:
            client.produce("clicks", *numbered(1, first=number))
            for _ in range(10):
                assert client.fetch("clicks", 20 * number) == numbered(1, first=number)[0]
    broker.stop()
    assert set(threading.enumerate()) <= threads
    assert open_descriptors() <= descriptors


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_idle_connections_and_incomplete_requests_do_not_delay_the_stop(
    start_broker: StartBroker, connect: Connect
) -> None:
    broker = start_broker()
    idle, half = connect(broker), connect(broker)
    half.send(b"\x00\x00\x00")
    assert idle.state() == "open"
    broker.stop()
    assert (idle.state(), half.read(1)) == ("closed", b"")


def test_a_client_that_does_not_receive_its_answers_is_disconnected(
    start_broker: StartBroker, connect: Connect
) -> None:
    broker = start_broker(send_timeout_ms=100, segment_bytes=2**30)
    client = connect(broker)
    for number in range(8):
        client.produce("clicks", message(bytes((number,)) * 900_000))
    client.send(FetchRequest07("clicks", 0, 0, 10_000_000).encode() * 20)
    for thread in threading.enumerate():
        if thread.name.endswith("-client"):
            thread.join(TIMEOUT_S)
            assert not thread.is_alive()


def test_a_connection_beyond_the_maximum_is_closed_at_once(start_broker: StartBroker, connect: Connect) -> None:
    broker = start_broker(max_connections=2)
    clients = [connect(broker) for _ in range(2)]
    assert [client.state() for client in clients] == ["open", "open"]
    assert connect(broker).state() == "closed"
    clients[0].close()
    while (again := connect(broker)).state() != "open":
        again.close()
    assert clients[1].state() == "open"


def test_a_request_above_the_limit_is_refused_when_its_size_arrives(
    start_broker: StartBroker, connect: Connect
) -> None:
    client = connect(start_broker(max_request_bytes=1000))
    client.send((1001).to_bytes(4, "big"))
    assert client.read(1) == b""


def test_a_broker_that_is_not_started_has_no_port(start_broker: StartBroker) -> None:
    broker = start_broker()
    broker.stop()
    with pytest.raises(RuntimeError, match="not been started"):
        _ = broker.port
