"""What is compressed in kept bytes is searched in all formats, and what cannot be decompressed is no secret.

The kept bytes are those of loads: a broker of the test gives damaged batches and messages.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from kafka_io.compression import CODECS
from kafka_io.records.build import Record, log_messages, message, message_set, record_batch
from pipelines.certificates.certificate import Certificate
from pipelines.certificates.certify import CertificateRequest, certify
from pipelines.certificates.kept_bytes import decompressed_contents
from pipelines.certificates.searched_texts import NotSearchable
from pipelines.fetch.unreadable import QUARANTINE_FOLDER
from pipelines.layout.conditions import parse_condition
from pipelines.maintenance.erase import EraseRequest, erase
from pipelines.maintenance.erased_files import finish_erasures
from tests.fakes.cluster import FakeCluster, Log
from tests.fakes.typed import TypedTopic, log_of

MARKER = b"zelda@private.example"
MODERN, OF_07 = f"3-{7:020d}-{9:020d}-0123abcd.bytes", f"0-3-{7:020d}-{9:020d}-0123abcd.bytes"
PARTS = b"zelda@priv ate.example"
"""Before the marker in compressed bytes, so that the marker itself is a reference to these parts."""
RECORDS = [Record(offset=7, timestamp=1, key=b"7", value=PARTS * 9), Record(offset=8, timestamp=1, value=MARKER * 3)]
CRC_AT, CRC_OF_BATCH_AT, ATTRIBUTES_AT, ATTRIBUTES_OF_BATCH_AT = 12, 17, 17, 22


def flipped(data: bytes, position: int, bits: int = 1) -> bytes:
    changed = bytearray(data)
    changed[position] ^= bits
    return bytes(changed)


def of_batch(codec: int) -> bytes:
    return record_batch(RECORDS, codec=codec)


def of_messages(magic: int, codec: int) -> bytes:
    return log_messages(RECORDS, magic=magic, codec=codec)


KEPT: Mapping[str, tuple[str, bytes]] = {
    **{f"batch-{codec}": (MODERN, of_batch(codec)) for codec in (1, 2, 3, 4)},
    **{f"messages-{magic}-{codec}": (MODERN, of_messages(magic, codec)) for magic in (0, 1) for codec in (1, 2, 3)},
    **{f"0.7-{codec}": (OF_07, message_set([PARTS * 9, MARKER * 3], codec=codec)) for codec in (1, 2)},
    "0.7-nested": (
        OF_07,
        message(CODECS[1].compress(message_set([PARTS * 9, MARKER * 3], codec=2)), attributes=1),
    ),
}


def found(name: str, data: bytes) -> bool:
    assert MARKER not in data
    return any(MARKER in content for content in decompressed_contents(name, data))


@pytest.mark.parametrize("kept", KEPT)
def test_the_content_of_a_damaged_batch_or_message_is_searched(kept: str) -> None:  # fault Y13
    name, data = KEPT[kept]
    position = len(data) - 1 if name == OF_07 else CRC_AT
    if name == MODERN:  # the checksum is wrong, and so is nothing else
        assert found(name, flipped(data, position if kept.startswith("messages") else CRC_OF_BATCH_AT))
    assert found(name, data + data)
    assert found(name, data + data[:3])


@pytest.mark.parametrize("kept", KEPT)
def test_what_cannot_be_decompressed_is_not_searchable(kept: str) -> None:  # fault Y13
    name, data = KEPT[kept]
    for damaged in (data[:-5], data[: len(data) // 2]):
        with pytest.raises(NotSearchable):
            found(name, damaged)


@pytest.mark.parametrize("kept", [name for name in KEPT if not name.startswith("0.7")])
def test_an_entry_that_hides_its_codec_is_decompressed_all_the_same(kept: str) -> None:  # fault Y13
    name, data = KEPT[kept]
    at = ATTRIBUTES_OF_BATCH_AT if kept.startswith("batch") else ATTRIBUTES_AT
    assert found(name, flipped(data, at, bits=data[at]))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        (MODERN, flipped(of_batch(1), 16, 4)),
        (MODERN, flipped(of_batch(4), ATTRIBUTES_OF_BATCH_AT, 2)),
        (MODERN, flipped(of_messages(1, 1), 26, 0x80)),
        (OF_07, flipped(message_set([PARTS, MARKER], codec=1), 4, 4)),
        (OF_07, flipped(message_set([PARTS, MARKER], codec=1), 5, 2)),
    ],
    ids=["magic", "codec", "length of a key", "magic of 0.7", "codec of 0.7"],
)
def test_a_damaged_header_is_not_searchable(name: str, data: bytes) -> None:  # fault Y13
    with pytest.raises(NotSearchable):
        found(name, data)


def test_an_entry_with_a_damaged_length_reaches_to_the_end() -> None:
    for data in (of_batch(1), of_messages(0, 1), of_messages(1, 1)):
        assert found(MODERN, flipped(data, 9, 0x10))
        assert found(MODERN, flipped(data, 8, 0x80))
    assert found(OF_07, flipped(message_set([PARTS, MARKER], codec=1), 0, 0x80))


def test_what_is_not_compressed_has_no_content_to_decompress() -> None:
    for data in (of_batch(0), of_messages(0, 0), of_messages(1, 0), of_messages(1, 0)[:-5], b"", b"x"):
        assert list(decompressed_contents(MODERN, data)) == []
    assert list(decompressed_contents(OF_07, message_set([b"a", b"b"], codec=0))) == []


def test_messages_are_compressed_a_few_times_only() -> None:
    data = b"x" * 99
    for _ in range(20):
        data = message(CODECS[1].compress(data), attributes=1)
    with pytest.raises(NotSearchable, match="too many times"):
        list(decompressed_contents(OF_07, data))


# Kept bytes of loads.

FORMAT = {"format": "json", "columns": {"email": "string"}, "max_bad_share": 1}
WHERE = f"email = '{MARKER.decode()}'"
VALUE = b'{"note": "%s", "email": "%s"}' % (PARTS, MARKER)
DAMAGED: Mapping[str, Callable[[Record], bytes]] = {
    "batch": lambda record: flipped(record_batch([record], codec=4), CRC_OF_BATCH_AT),
    "messages of format 0": lambda record: flipped(log_messages([record], magic=0, codec=1), CRC_AT),
    "messages of format 1": lambda record: flipped(log_messages([record], magic=1, codec=2), CRC_AT),
}


def add(log: Log, entry: Callable[[Record], bytes]) -> None:
    """Append a record of the person to the log."""
    log.entries.append((log.end, entry(Record(offset=log.end, timestamp=1, key=b"k", value=VALUE))))
    log.end += 1


def certified(topic: TypedTopic) -> Certificate:
    condition = parse_condition(WHERE)
    return certify(CertificateRequest(table=topic.table, request="T-1", condition=condition, erase_days=7))


def kept_files(topic: TypedTopic) -> list[str]:
    folder = Path(topic.table.uri)
    return sorted(str(path.relative_to(folder)) for path in (folder / QUARANTINE_FOLDER).glob("*"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", DAMAGED)
def test_bytes_that_a_load_kept_are_found_and_deleted(kind: str, fake: FakeCluster, tmp_path: Path) -> None:
    """A load before the erasure has kept them, or one after it (faults Y09, Y13)."""
    fake.logs = {0: log_of([VALUE])}
    with fake:
        topic = TypedTopic(fake=fake, folder=tmp_path, format_=FORMAT, choices={"on_corrupt": "skip"})
        add(fake.logs[0], DAMAGED[kind])
        load = topic.load()
        assert (load.error, load.rows) == (None, 1)
        [path] = kept_files(topic)
        assert MARKER not in Path(topic.table.uri, path).read_bytes()
        condition = parse_condition(WHERE)
        assert erase(EraseRequest(table=topic.table, condition=condition, run="run", name="T-1")).rows == 1
        made = certified(topic)
        assert made.tables[0].beside == (path,)
        assert (path, "its records") in {(hit.path, hit.place) for hit in made.tables[0].scan.hits}
        finish_erasures(topic.table, older_than=timedelta(), dry_run=False)
        assert (kept_files(topic), certified(topic).complete) == ([], True)
        add(fake.logs[0], DAMAGED[kind])
        assert topic.load().error is None
        [path] = kept_files(topic)
        [task] = certified(topic).tasks
        assert f"{QUARANTINE_FOLDER}/" in task.what
        assert "younger than the erasure: delete them" in task.what
        Path(topic.table.uri, path).unlink()
        assert certified(topic).complete
        assert topic.deep().problems == ()


@pytest.mark.slow
def test_a_certificate_names_kept_bytes_that_it_cannot_search(fake: FakeCluster, tmp_path: Path) -> None:
    """The stream itself is damaged (fault Y13)."""
    fake.logs = {0: log_of([VALUE])}
    with fake:
        topic = TypedTopic(fake=fake, folder=tmp_path, format_=FORMAT, choices={"on_corrupt": "skip"})
        topic.load()
        condition = parse_condition(WHERE)
        assert erase(EraseRequest(table=topic.table, condition=condition, run="run", name="T-1")).rows == 1
        finish_erasures(topic.table, older_than=timedelta(), dry_run=False)
        add(fake.logs[0], lambda record: flipped(log_messages([record], magic=1, codec=1), -12, 0xFF))
        assert topic.load().error is None
        [path] = kept_files(topic)
        made = certified(topic)
        assert made.tables[0].scan.unsearched == (path,)
        [task] = made.tasks
        assert f"{path} and 0 more objects" in task.what
        assert "cannot be searched" in task.what
