"""A SequenceFile is read whole or not at all."""

import struct
from pathlib import Path

import pytest

from pipelines.offsets.sequence_file import SequenceFile
from resources.errors import OffsetsUnreadable
from tests.pipelines.offsets.written import SYNC, mark, record, sequence_file, text

GOLDEN = Path(__file__).parents[2] / "golden" / "hadoop"
GENUINE = sorted(one for one in GOLDEN.rglob("*") if one.is_file() and one.suffix != ".md")


@pytest.mark.parametrize("file", GENUINE, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_genuine_files_are_read_and_no_cut_one_is(file: Path) -> None:
    data = file.read_bytes()
    found = SequenceFile.parse(data, file.name)
    assert (found.key_class, found.compressed) == ("kafka.etl.KafkaETLKey", False)
    assert {one.key for one in found.records} == {bytes(20)}
    sizes = [len(one.value) for one in found.records]
    whole = {len(data) - sum(28 + size for size in sizes[at:]) for at in range(len(sizes) + 1)}
    for end in set(range(len(data))) - whole:
        with pytest.raises(OffsetsUnreadable):
            SequenceFile.parse(data[:end], file.name)


def test_marks_and_metadata_are_passed_over() -> None:
    data = sequence_file(record(b"a", b"b"), mark(), record(b"c"), metadata=("written by", "hand"))
    found = SequenceFile.parse(data, "file")
    assert [(one.key, one.value) for one in found.records] == [(b"a", b"b"), (b"c", b"")]


def test_names_may_be_longer_than_a_byte_can_count() -> None:
    name = "k" * 200
    data = sequence_file(record(b"a")).replace(
        text("com.linkedin.camus.etl.kafka.common.EtlKey"), b"\x8f\xc8" + name.encode()
    )
    assert SequenceFile.parse(data, "file").key_class == name


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"SEQ\x05" + sequence_file()[4:], "is no SequenceFile of version 6"),
        (b"PAR1", "is no SequenceFile of version 6"),
        (sequence_file(struct.pack(">i", -1) + SYNC[::-1]), "a mark that is not the file's own"),
        (sequence_file(struct.pack(">ii", 3, 4) + b"abcd"), "a record of 3 bytes with a key of 4"),
        (sequence_file(struct.pack(">ii", 3, -1) + b"abc"), "a record of 3 bytes with a key of -1"),
        (sequence_file(struct.pack(">ii", 2**31 - 1, 1)), "is cut short"),
        (sequence_file(compressed=True, in_blocks=True), "in blocks"),
        (b"SEQ\x06\x88" + b"\x7f" * 8, "a name of"),
        (b"SEQ\x06\x02\xff\xff", "a name that is not UTF-8"),
    ],
    ids=["version", "another", "mark", "lengths", "negative", "huge", "blocks", "long name", "name"],
)
def test_what_cannot_be_right_is_refused_by_name(data: bytes, said: str) -> None:
    with pytest.raises(OffsetsUnreadable, match=f"file .*{said}"):
        SequenceFile.parse(data, "file")
