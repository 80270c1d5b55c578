"""The reader of SequenceFiles: it reads whole files and refuses all others."""

import struct
from pathlib import Path

import pytest

from pipelines.cursors.sequence_file import SequenceFile
from resources.errors import OffsetsUnreadable
from tests.pipelines.cursors.written import SYNC, mark, record, sequence_file, text

GOLDEN = Path(__file__).parents[2] / "golden" / "hadoop"
GENUINE = sorted(file for file in GOLDEN.rglob("*") if file.is_file() and file.suffix != ".md")


@pytest.mark.parametrize("file", GENUINE, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_genuine_files_are_read_and_truncated_ones_are_refused(file: Path) -> None:
    data = file.read_bytes()
    parsed = SequenceFile.parse(data, file.name)
    assert (parsed.key_class, parsed.compressed) == ("kafka.etl.KafkaETLKey", False)
    assert {key for key, _ in parsed.records} == {bytes(20)}
    sizes = [len(value) for _, value in parsed.records]
    whole = {len(data) - sum(28 + size for size in sizes[count:]) for count in range(len(sizes) + 1)}
    for end in set(range(len(data))) - whole:
        with pytest.raises(OffsetsUnreadable):
            SequenceFile.parse(data[:end], file.name)


def test_sync_marks_and_metadata_are_skipped() -> None:
    data = sequence_file(record(b"a", b"b"), mark(), record(b"c"), metadata=("written by", "hand"))
    parsed = SequenceFile.parse(data, "file")
    assert parsed.records == ((b"a", b"b"), (b"c", b""))


def test_a_name_may_need_a_length_of_several_bytes() -> None:
    name = "k" * 200
    data = sequence_file(record(b"a")).replace(
        text("com.linkedin.camus.etl.kafka.common.EtlKey"), b"\x8f\xc8" + name.encode()
    )
    assert SequenceFile.parse(data, "file").key_class == name


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"SEQ\x05" + sequence_file()[4:], "is not a SequenceFile of version 6"),
        (b"PAR1", "is not a SequenceFile of version 6"),
        (sequence_file(struct.pack(">i", -1) + SYNC[::-1]), "a sync mark that differs"),
        (sequence_file(struct.pack(">ii", 3, 4) + b"abcd"), "a record of 3 bytes with a key of 4"),
        (sequence_file(struct.pack(">ii", 3, -1) + b"abc"), "a record of 3 bytes with a key of -1"),
        (sequence_file(struct.pack(">ii", 2**31 - 1, 1)), "is damaged: .* bytes needed"),
        (sequence_file(compressed=True, in_blocks=True), "in blocks"),
        (b"SEQ\x06\x88" + b"\x7f" * 8, "is damaged: .* bytes needed"),
        (b"SEQ\x06\x02\xff\xff", "a string that is not UTF-8"),
    ],
    ids=["version", "another", "mark", "lengths", "negative", "huge", "blocks", "long name", "name"],
)
def test_a_damaged_file_is_refused_with_its_name(data: bytes, message: str) -> None:
    with pytest.raises(OffsetsUnreadable, match=f"file .*{message}"):
        SequenceFile.parse(data, "file")
