"""Errors as data: what a failure says if the error itself says nothing."""

from kafka_io.errors import Corrupt, NetworkError, Where
from pipelines.ledger.failure import SliceFailure


def test_only_errors_that_may_not_happen_again_are_retriable() -> None:
    assert not SliceFailure(kind="Corrupt", reason="wrong CRC").retriable
    errors = (NetworkError("no answer"), Corrupt("wrong CRC"), ValueError("odd"))
    assert [SliceFailure.of(error, Where()).retriable for error in errors] == [True, False, False]
