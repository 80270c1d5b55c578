"""Topic names become names of folders and partitions: reversible, without collisions, and never outside the lake."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.errors import TopicUnknown
from resources.stores.lake import Lake
from resources.topic_names import decode, decode_folders, encode, folders

topics = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=255)


@given(topics)
def test_every_encoded_topic_can_be_decoded(topic: str) -> None:  # fault X03
    assert decode(encode(topic)) == topic
    assert decode_folders(folders(topic)) == topic


@given(topics)
def test_folders_have_short_names_of_plain_characters(topic: str) -> None:  # fault X03
    for folder in folders(topic):
        assert 0 < len(folder) <= 201
        assert folder.isascii()
        assert folder == folder.lower()
        assert folder[0] not in "_."
        assert not set(folder) & set('/\\:*?"<>|% ')


@given(topics, topics)
def test_two_topics_never_share_a_folder_even_where_case_is_ignored(topic: str, other: str) -> None:  # fault O06
    assert (topic == other) == ("/".join(folders(topic)).lower() == "/".join(folders(other)).lower())


@pytest.mark.parametrize(
    ("topic", "name"),
    [
        ("clicks", "clicks"),
        ("a.b", "a.b"),
        ("a-b_c", "a-b_c"),
        ("A", "~41"),
        ("a...b", "a.~2e~2eb"),
        (".", "~2e"),
        ("..", "~2e~2e"),
        ("_delta_log", "~5fdelta_log"),
        ("a b:c", "a~20b~3ac"),
        ("caf\u00e9", "caf~c3~a9"),
    ],
)
def test_names_stay_readable(topic: str, name: str) -> None:  # faults O06, X03
    assert encode(topic) == name


def test_the_longest_topic_name_fits_every_file_system() -> None:
    assert [len(folder) for folder in folders("A" * 249)] == [201, 201, 201, 147]


def test_an_empty_name_has_no_folder() -> None:  # fault H04: it would be the folder that contains all tables
    with pytest.raises(ValueError, match="no name"):
        folders("")
    with pytest.raises(TopicUnknown, match="empty name"):
        Lake(root="/lake").table_uri("main", "")


@pytest.mark.parametrize("name", ["~4", "A", "~zz", "a..b", "~ff"])
def test_a_name_that_is_not_an_encoded_topic_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(name)
