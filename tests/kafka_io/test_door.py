"""The door of kafka_io: every name is there, and asking for none of them costs nothing."""

import doctest
import subprocess
import sys

import pytest

import kafka_io


@pytest.mark.parametrize("name", kafka_io.__all__)
def test_every_name_of_the_door_is_there(name: str) -> None:
    assert getattr(kafka_io, name).__name__ == name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = kafka_io.nonsense


def test_the_example_is_true() -> None:
    assert doctest.testmod(kafka_io).failed == 0


def test_the_wire_needs_nothing_but_the_standard_library() -> None:
    heavy = "{'numba', 'numpy', 'pyarrow', 'kazoo', 'pyspark', 'dagster'}"
    code = f"import sys, kafka_io.v07.conversation, kafka_io.errors; sys.exit(str({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "set()"
