"""A text is found in each form that JSON, paths and bounds give it; what is too short is left out, and nothing else."""

import json
from urllib.parse import quote

import pytest

from pipelines.certificates.searched_texts import SearchedTexts

TEXT = 'Zo\u00eb "Z" O/Hara & sons, of the house with the very long name at the end of the street'
JSON = json.dumps(TEXT)
FORMS = {
    "UTF-8": TEXT.encode(),
    "JSON": JSON.encode(),
    "JSON in UTF-8": json.dumps(TEXT, ensure_ascii=False).encode(),
    "JSON in JSON": json.dumps({"stats": JSON}).encode(),
    "JSON in UTF-8 in JSON": json.dumps(json.dumps(TEXT, ensure_ascii=False), ensure_ascii=False).encode(),
    "a path": quote(TEXT, safe="").encode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_text_is_found_in_each_form(form: str) -> None:  # fault Y13
    search = SearchedTexts.of([TEXT])
    content = b"before" + FORMS[form] + b"after\xff\0"
    assert search.in_record(content)
    assert search.in_bounds(content)
    assert not search.in_record(content.replace(b"Hara", b"Mara"))


@pytest.mark.parametrize("characters", [32, 63, 64])
def test_a_bound_that_was_cut_is_found(characters: int) -> None:  # fault Y13
    search = SearchedTexts.of([TEXT])
    bound = json.dumps({"maxValues": TEXT[:characters]}).encode()
    assert search.in_bounds(bound)
    assert not search.in_record(bound)


def test_short_texts_and_numbers_are_left_out() -> None:
    search = SearchedTexts.of(["ab", "1234567", "-3.5", "12345678", "abcd", "abcd"])
    assert (search.count, search.left_out) == (2, 3)
    assert search.in_record(b'{"id": 12345678}')
    assert search.in_record(b"12345678")
    assert not search.in_record(b"ts 1234567890")
    assert not search.in_record(b"912345678")


def test_thousands_of_texts_are_found() -> None:
    search = SearchedTexts.of([f"person{number}@shop.example" for number in range(3_000)])
    assert search.count == 3_000
    for number in (0, 499, 500, 2_999):
        assert search.in_record(b"x" * 10_000 + b"person%d@shop.example" % number)
    assert not search.in_record(b"person3000@shop.example")


def test_without_texts_nothing_is_found() -> None:
    assert not SearchedTexts.of([]).in_record(b"anything")
    assert not SearchedTexts().in_bounds(b"")
    assert "abcd" not in repr(SearchedTexts.of(["abcd"]))
