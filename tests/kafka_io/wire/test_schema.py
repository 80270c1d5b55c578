"""The fields of each version, their nulls and tags, and that no value is lost without an error."""

from typing import Any

import pytest

from kafka_io.errors import Corrupt, Truncated, Unsupported, WireError
from kafka_io.wire.primitives import WireReader
from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import Int8, Int16, String, WireBytes

FLEXIBLE = 3


class Leaf(Struct):
    """A struct with a field of later versions."""

    number: Int8
    added: Int8 = wire(since=1, default=7, ignorable=True)


class Branch(Struct):
    """A struct of structs."""

    leaf: Leaf
    maybe: Leaf | None = wire(since=2, default=None)
    leaves: tuple[Leaf, ...] = ()


class Answer(Struct):
    """The answer to all these requests."""

    code: Int16


class Ask(Request[Answer], key=99, versions=(0, 4), flexible_from=FLEXIBLE):
    """A request with a field of every kind."""

    plain: Int8
    gone: Int8 = wire(until=0, default=1)
    soft: Int8 = wire(since=1, until=2, default=2, ignorable=True)
    text: String | None = wire(since=1, null_since=2, default="")
    names: tuple[String, ...] = wire(since=2, default=())
    second: String = wire(since=3, tag=1, default="")
    first: Leaf = wire(since=3, tag=0, default=Leaf(number=0))


class Tree(Request[Answer], key=98, versions=(0, 3)):
    """Structs in versions without tags."""

    branch: Branch


class Root(Request[Answer], key=97, versions=(0, 0), flexible_from=0):
    """Structs in a version with tags."""

    branches: tuple[Branch, ...] = ()
    blob: WireBytes | None = wire(tag=5, default=None)


def written(message: Request[Any], version: int) -> str:
    return b"".join(message.API.encode(message, version)).hex()


def read(kind: type[Any], data: str, version: int) -> Any:
    return kind.API.decode(kind, WireReader(bytes.fromhex(data)), version)


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (0, "05 01"),
        (1, "05 02 0000"),
        (2, "05 02 0000 00000000"),
        (3, "05 01 01 00"),
        (4, "05 01 01 00"),
    ],
)
def test_a_version_has_the_fields_that_since_and_until_include(version: int, data: str) -> None:
    message = Ask(plain=5)
    assert written(message, version) == data.replace(" ", "")
    assert read(Ask, data, version) == message


def test_a_field_that_the_version_lacks_is_read_as_its_default() -> None:
    assert read(Ask, "0509", 0) == Ask(plain=5, gone=9, soft=2, text="", names=(), second="", first=Leaf(number=0))


@pytest.mark.parametrize(
    ("message", "version"),
    [(Ask(plain=5, gone=3), 1), (Ask(plain=5, text="x"), 0), (Ask(plain=5, second="x"), 2)],
)
def test_a_value_that_would_be_lost_is_refused(message: Ask, version: int) -> None:
    with pytest.raises(Unsupported, match="would be lost"):
        written(message, version)


def test_an_ignorable_value_is_left_out() -> None:
    assert written(Ask(plain=5, soft=9), 0) == "0501"
    assert written(Ask(plain=5, soft=9), 2) == "0509" + "0000" + "00000000"


def test_null_is_refused_before_the_version_that_allows_it() -> None:
    with pytest.raises(Unsupported, match="null"):
        written(Ask(plain=5, text=None), 1)
    with pytest.raises(Corrupt):
        read(Ask, "0502ffff", 1)
    assert read(Ask, "0502ffff00000000", 2) == Ask(plain=5, text=None)


def test_a_compact_array_has_compact_strings() -> None:
    message = Ask(plain=5, names=("a", "bc"))
    assert written(message, 2) == "0502" + "0000" + "00000002" + "000161" + "00026263"
    assert written(message, 3) == "05" + "01" + "03" + "0261" + "036263" + "00"


def test_tagged_fields_are_sorted_by_tag_and_defaults_are_left_out() -> None:
    message = Ask(plain=5, first=Leaf(number=1), second="x")
    data = "050101" + "02" + "00" + "03" + "010700" + "01" + "02" + "0278"
    assert written(message, 3) == data
    assert read(Ask, data, 3) == message


@pytest.mark.parametrize(
    "tags",
    [
        "02" + "01020278" + "090100",  # a known one and an unknown one
        "03" + "01020278" + "0900" + "ffffffff0f0100",  # an empty one, and the highest possible tag
    ],
)
def test_unknown_tags_are_skipped(tags: str) -> None:
    assert read(Ask, "050101" + tags, 3) == Ask(plain=5, second="x")


@pytest.mark.parametrize(
    ("tags", "error"),
    [
        ("02" + "01020278" + "01020279", Corrupt),  # twice
        ("02" + "090100" + "01020278", Corrupt),  # not in their order
        ("01" + "01030278" + "00", Corrupt),  # longer than the field in it
        ("01" + "01010278", Truncated),  # shorter
        ("01" + "017f0278", Truncated),  # longer than the message
        ("ffffffff0f" + "01020278", Corrupt),  # more tags than there are bytes
        ("01" + "ffffffff7f" + "00", Corrupt),  # no number of 32 bits
    ],
)
def test_invalid_tags_are_refused(tags: str, error: type[WireError]) -> None:  # faults W09, W10
    with pytest.raises(error):
        read(Ask, "050101" + tags, 3)


@pytest.mark.parametrize(
    ("branch", "version", "data"),
    [
        (Branch(leaf=Leaf(number=1)), 0, "01 00000000"),
        (Branch(leaf=Leaf(number=1), leaves=(Leaf(number=2), Leaf(number=3, added=4))), 1, "0107 00000002 0207 0304"),
        (Branch(leaf=Leaf(number=1)), 2, "0107 ff 00000000"),
        (Branch(leaf=Leaf(number=1), maybe=Leaf(number=2)), 2, "0107 01 0207 00000000"),
    ],
)
def test_nested_structs_have_the_version_of_the_message(branch: Branch, version: int, data: str) -> None:
    assert written(Tree(branch=branch), version) == data.replace(" ", "")
    assert read(Tree, data, version) == Tree(branch=branch)


def test_a_struct_that_the_version_lacks_would_be_lost() -> None:
    with pytest.raises(Unsupported, match=r"Branch\.maybe would be lost"):
        written(Tree(branch=Branch(leaf=Leaf(number=1), maybe=Leaf(number=2))), 1)


def test_every_struct_of_a_flexible_message_has_its_own_tags() -> None:
    message = Root(branches=(Branch(leaf=Leaf(number=1), leaves=(Leaf(number=2),)),), blob=b"z")
    assert written(message, 0) == "02" + "0100" + "02" + "0200" + "00" + "01" + "05" + "02" + "027a"
    assert read(Root, written(message, 0), 0) == message


@pytest.mark.parametrize("version", [-1, 5])
def test_unsupported_versions_are_refused(version: int) -> None:
    with pytest.raises(Unsupported, match=r"Ask v-?\d is not supported, only v0 to v4"):
        written(Ask(plain=5), version)
    with pytest.raises(Unsupported):
        read(Ask, "05", version)


def test_bytes_after_the_message_are_refused() -> None:  # fault W12
    with pytest.raises(Corrupt, match="1 bytes left over"):
        read(Ask, "050101", 0)


@pytest.mark.parametrize(
    "message",
    [Ask(plain=128), Ask(plain=5, text="x" * 2**15), Ask(plain=5, text="\ud800")],
    ids=["int8", "long", "half"],
)
def test_a_value_that_does_not_fit_its_field_is_refused(message: Ask) -> None:
    with pytest.raises(Unsupported):
        written(message, 1)


def test_a_field_that_some_versions_lack_must_have_a_default() -> None:
    with pytest.raises(TypeError, match="default"):
        wire(since=1)
    with pytest.raises(TypeError, match="default"):
        wire(until=1)
    with pytest.raises(TypeError, match="default"):
        wire(tag=0)


def test_a_type_that_the_protocol_does_not_have_is_refused_on_first_use() -> None:
    class Odd(Request[Answer], key=96, versions=(0, 0)):
        number: int

    with pytest.raises(TypeError, match="not a type of the protocol"):
        written(Odd(number=1), 0)
