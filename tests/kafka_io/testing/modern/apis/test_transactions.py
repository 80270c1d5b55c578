"""Transactions: readers of committed records never see records of open or aborted transactions (KIP-98)."""

# faults R21, R22, R23
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kafka_io.error_codes import ErrorCode
from kafka_io.errors import Corrupt
from kafka_io.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafka_io.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, TxnTopic
from kafka_io.messages.end_txn import EndTxnRequest
from kafka_io.messages.fetch import FetchPartition, FetchPartitionResponse, FetchRequest, FetchTopic
from kafka_io.messages.init_producer_id import InitProducerIdRequest
from kafka_io.messages.list_offsets import (
    LATEST_TIME,
    READ_COMMITTED,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafka_io.messages.offset_fetch import OffsetFetchGroup, OffsetFetchRequest, OffsetFetchTopic
from kafka_io.messages.txn_offset_commit import (
    TxnOffsetCommitPartition,
    TxnOffsetCommitRequest,
    TxnOffsetCommitTopic,
)
from kafka_io.records.build import record_batch
from kafka_io.records.decoder import decode
from kafka_io.records.layout import TRANSACTIONAL
from kafka_io.records.record_set import RequestedOffsets
from tests.kafka_io.testing.conftest import ManualClock
from tests.kafka_io.testing.modern.conftest import Connect, StartModern
from tests.kafka_io.testing.modern.talk import Client, batch, expected_values, numbered

Producer = tuple[int, int]


def begin(client: Client, name: str | None = "t", *, timeout_ms: int = 60_000) -> Producer:
    answer = client.ask(InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms))
    assert answer.error_code == 0
    return answer.producer_id, answer.producer_epoch


def add(client: Client, producer: Producer, name: str = "t", *, topic: str = "clicks") -> int:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=(TxnTopic(name=topic, partitions=(0,)),),
    )
    return client.ask(request, 3).results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code


def write(client: Client, producer: Producer, *, first: int = 0, sequence: int = 0) -> int:
    data = record_batch(numbered(3, first=first), attributes=TRANSACTIONAL, producer=(*producer, sequence))
    return client.produce("clicks", data).error_code


def end(client: Client, producer: Producer, name: str = "t", *, committed: bool = True) -> int:
    request = EndTxnRequest(
        transactional_id=name, producer_id=producer[0], producer_epoch=producer[1], committed=committed
    )
    return client.ask(request, 4).error_code


def committed(client: Client, start: int = 0) -> FetchPartitionResponse:
    partition = FetchPartition(partition=0, fetch_offset=start, partition_max_bytes=10**6)
    topics = (FetchTopic(topic="clicks", partitions=(partition,)),)
    request = FetchRequest(max_wait_ms=0, isolation_level=READ_COMMITTED, topics=topics)
    return client.ask(request, 12).responses[0].partitions[0]


def seen(answer: FetchPartitionResponse) -> list[bytes]:
    aborted = [(transaction.producer_id, transaction.first_offset) for transaction in answer.aborted_transactions or ()]
    return [
        value
        for decoded in decode(
            bytes(answer.records or b""), RequestedOffsets(start=0), columns=("value",), aborted=aborted
        )
        for value in decoded.batch.column("value").to_pylist()
    ]


def stable(client: Client) -> int:
    partition = ListOffsetsPartition(partition_index=0, timestamp=LATEST_TIME)
    topics = (ListOffsetsTopic(name="clicks", partitions=(partition,)),)
    answer = client.ask(ListOffsetsRequest(isolation_level=READ_COMMITTED, topics=topics), 7)
    return answer.topics[0].partitions[0].offset


def test_the_last_stable_offset_stays_before_an_open_transaction(client: Client) -> None:
    producer = begin(client)
    client.produce("clicks", batch(2))
    assert add(client, producer) == write(client, producer) == 0
    client.produce("clicks", batch(2))
    answer = committed(client)
    assert (answer.last_stable_offset, answer.high_watermark, stable(client)) == (2, 7, 2)
    assert seen(answer) == expected_values(2)
    assert committed(client, 3).records == b""
    assert end(client, producer) == 0
    assert stable(client) == 8
    assert seen(committed(client)) == expected_values(2) + expected_values(3) + expected_values(2)


def test_a_read_committed_fetch_lists_the_aborted_transactions(client: Client) -> None:
    aborting, committing = begin(client, "one"), begin(client, "other")
    for name, producer in (("one", aborting), ("other", committing)):
        assert add(client, producer, name) == 0
    assert (
        write(client, aborting)
        == write(client, committing, first=10)
        == write(client, aborting, first=3, sequence=3)
        == 0
    )
    assert end(client, aborting, "one", committed=False) == 0
    assert stable(client) == 3
    assert end(client, committing, "other") == 0
    answer = committed(client)
    assert [
        (transaction.producer_id, transaction.first_offset) for transaction in answer.aborted_transactions or ()
    ] == [(aborting[0], 0)]
    assert seen(answer) == expected_values(3, first=10)
    assert len(seen(client.fetch("clicks"))) == 9


@pytest.mark.parametrize("ended", [True, False])
def test_transactions_survive_a_restart(start_modern: StartModern, connect: Connect, *, ended: bool) -> None:
    broker = start_modern()
    client = connect(broker)
    client.create("clicks")
    producer = begin(client)
    add(client, producer)
    write(client, producer)
    if ended:
        end(client, producer, committed=False)
    broker.stop()
    restarted_client = connect(start_modern())
    assert stable(restarted_client) == (4 if ended else 0)
    assert end(restarted_client, producer, committed=False) == (ErrorCode.INVALID_TXN_STATE if ended else 0)
    assert seen(committed(restarted_client)) == []
    assert begin(restarted_client) == (producer[0], producer[1] + 1)


def test_a_new_producer_fences_the_earlier_one_of_its_transactional_id(client: Client) -> None:
    zombie = begin(client)
    add(client, zombie)
    assert write(client, zombie) == 0
    producer = begin(client)
    assert producer == (zombie[0], zombie[1] + 1)
    assert (stable(client), seen(committed(client))) == (4, [])
    assert write(client, zombie, sequence=3) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert add(client, zombie) == end(client, zombie) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert add(client, producer) == write(client, producer) == end(client, producer) == 0
    assert seen(committed(client)) == expected_values(3)


def test_a_transaction_is_aborted_after_its_timeout(start_modern: StartModern, connect: Connect) -> None:
    clock = ManualClock()
    client = connect(start_modern(clock=clock, flush_interval_ms=10))
    client.create("clicks")
    producer = begin(client, timeout_ms=5000)
    add(client, producer)
    write(client, producer)
    clock.now_ms += 5001
    while stable(client) == 0:
        pass
    assert seen(committed(client)) == []
    assert end(client, producer) == ErrorCode.INVALID_PRODUCER_EPOCH


def commit_offset(client: Client, producer: Producer, offset: int) -> int:
    partition = TxnOffsetCommitPartition(partition_index=0, committed_offset=offset, committed_metadata=None)
    request = TxnOffsetCommitRequest(
        transactional_id="t",
        group_id="g",
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=(TxnOffsetCommitTopic(name="clicks", partitions=(partition,)),),
    )
    return client.ask(request, 4).topics[0].partitions[0].error_code


def offset(client: Client, *, require_stable: bool = False) -> tuple[int, int]:
    topics = (OffsetFetchTopic(name="clicks", partition_indexes=(0,)),)
    groups = (OffsetFetchGroup(group_id="g", topics=topics),)
    answer = client.ask(OffsetFetchRequest(groups=groups, require_stable=require_stable))
    partition = answer.groups[0].topics[0].partitions[0]
    return partition.error_code, partition.committed_offset


@pytest.mark.parametrize(("commits", "after"), [(True, 5), (False, -1)])
def test_offsets_of_a_transaction_are_stored_when_it_commits(client: Client, *, commits: bool, after: int) -> None:
    producer = begin(client)
    assert commit_offset(client, producer, 5) == ErrorCode.INVALID_TXN_STATE
    request = AddOffsetsToTxnRequest(
        transactional_id="t", producer_id=producer[0], producer_epoch=producer[1], group_id="g"
    )
    assert client.ask(request).error_code == 0
    assert commit_offset(client, producer, 5) == 0
    assert offset(client) == (0, -1)
    assert offset(client, require_stable=True) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    assert end(client, producer, committed=commits) == 0
    assert offset(client, require_stable=True) == (0, after)


REFUSALS: dict[str, tuple[Callable[[Client, Producer], int], ErrorCode]] = {
    "a transactional id that no producer has": (
        lambda client, producer: add(client, producer, "other"),
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ),
    "the producer id of another producer": (
        lambda client, producer: end(client, (producer[0] + 9, 0)),
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ),
    "an end without a transaction": (end, ErrorCode.INVALID_TXN_STATE),
    "an unknown topic": (
        lambda client, producer: add(client, producer, topic="nobody"),
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ),
    "a write before the partition was added": (write, ErrorCode.INVALID_TXN_STATE),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_an_invalid_request_of_a_producer_is_refused(client: Client, name: str) -> None:
    action, code = REFUSALS[name]
    assert action(client, begin(client)) == code
    assert client.fetch("clicks").high_watermark == 0


@pytest.mark.parametrize("timeout_ms", [0, 10**9])
def test_a_transaction_timeout_outside_the_limits_is_refused(client: Client, timeout_ms: int) -> None:
    request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=timeout_ms)
    assert client.ask(request).error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_each_producer_id_is_assigned_only_once(start_modern: StartModern, connect: Connect) -> None:
    broker = start_modern()
    client = connect(broker)
    ids = [begin(client, name)[0] for name in (None, "t", None, "t")]
    broker.stop()
    ids.append(begin(connect(start_modern()), None)[0])
    assert ids == [0, 1, 2, 1, 3]


def test_a_damaged_transactions_file_is_an_error_and_not_an_empty_file(
    start_modern: StartModern, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "transactions.json").write_text('{"t": {}}')
    with pytest.raises(Corrupt):
        start_modern()


def test_state_files_keep_their_format(start_modern: StartModern, connect: Connect, tmp_path: Path) -> None:
    """A data directory of an earlier release must stay readable."""
    clock = ManualClock()
    client = connect(start_modern(clock=clock))
    client.create("clicks")
    producer = begin(client)
    add(client, producer)
    request = AddOffsetsToTxnRequest(transactional_id="t", producer_id=0, producer_epoch=0, group_id="g")
    client.ask(request)
    commit_offset(client, producer, 4)
    commit_offset(client, producer, 5)
    open_transaction = {
        "producer_id": 0,
        "epoch": 0,
        "timeout_ms": 60_000,
        "began_ms": clock.now_ms,
        "partitions": [["clicks", 0]],
        "offsets": {"g": [["clicks", 0, 5, -1, ""]]},
    }
    assert json_file(tmp_path, "transactions.json") == {"t": open_transaction}
    end(client, producer)
    ended = {**open_transaction, "began_ms": None, "partitions": [], "offsets": {}}
    assert json_file(tmp_path, "transactions.json") == {"t": ended}
    assert json_file(tmp_path, "producer-ids.json") == {"next": 1}
    assert json_file(tmp_path, "offsets.json") == {"g": [["clicks", 0, 5, -1, ""]]}
    topics = json_file(tmp_path, "topics.json")
    assert (len(topics["cluster_id"]), topics["topics"]["clicks"]["partitions"]) == (22, 1)
    assert str(UUID(topics["topics"]["clicks"]["id"])) == topics["topics"]["clicks"]["id"]


def json_file(tmp_path: Path, name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((tmp_path / "data" / name).read_text())
    return content
