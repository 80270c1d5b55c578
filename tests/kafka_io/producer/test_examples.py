"""The examples in the docstrings of the producer."""

import doctest
import json
from dataclasses import replace
from types import ModuleType

import pytest

from kafka_io.producer import (
    audit_counts,
    callbacks,
    encoder,
    message,
    opening,
    partitioner,
    producer,
    settings,
    transactions,
)
from kafka_io.producer.opening import open_producer
from kafka_io.producer.settings import Queueing
from tests.kafka_io.producer.conftest import World

MODULES = (audit_counts, callbacks, encoder, message, opening, partitioner, producer, settings, transactions)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_the_examples_in_docstrings_are_true(module: ModuleType, modern: World) -> None:
    given = {
        "json": json,
        "bootstrap": modern.address["bootstrap"],
        "open_producer": open_producer,
        "Queueing": Queueing,
        "read": modern.values,
        "replace": replace,
    }
    runner = doctest.DocTestRunner()
    for example in doctest.DocTestFinder(exclude_empty=False).find(module, extraglobs=given):
        runner.run(example)
    assert (runner.failures, runner.tries > 0) == (0, True)
