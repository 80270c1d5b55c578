"""Errors as data: what a failure says if the error itself says nothing."""

from kafka_io.errors import Corrupt, NetworkError, Where
from pipelines.ledger.failure import SliceFailure


def test_only_errors_that_may_not_happen_again_are_retriable() -> None:
    assert not SliceFailure(kind="Corrupt", reason="wrong CRC").retriable
    errors = (NetworkError("no answer"), Corrupt("wrong CRC"), ValueError("odd"))
    assert [SliceFailure.of(error, Where()).retriable for error in errors] == [True, False, False]


def test_a_failure_of_an_earlier_version_gets_the_code_of_its_kind() -> None:
    assert SliceFailure(kind="Corrupt", reason="wrong CRC").code == "PS-307"
    assert SliceFailure(kind="Corrupt", reason="wrong CRC", code="PS-1").code == "PS-1"


def test_a_printed_failure_has_its_partition_as_text_or_none() -> None:
    places: list[dict[str, str | int]] = [{}, {"partition": 3}, {"partition": "0-1"}]
    printed = [SliceFailure(kind="Corrupt", reason="wrong CRC", where=where).printed() for where in places]
    assert [error.partition for error in printed] == [None, "3", "0-1"]
