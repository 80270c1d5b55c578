"""Tests that share servers run in one process, and units that take long start first."""

import re
from pathlib import Path

import pytest

from tests.spreading import SESSION, group_of, rank_of, unit_of

TESTS = Path(__file__).parent


@pytest.mark.parametrize(
    ("nodeid", "unit"),
    [
        ("tests/kafka_io/test_a.py::test_b[3.9.1]", "tests/kafka_io/test_a.py"),
        ("tests/ui/test_a.py::test_b", "tests/ui/test_a.py"),
        ("tests/ui/test_many.py::test_b", "tests/ui/test_ui.py"),
        ("tests/brokers/test_a.py::test_b", "tests/brokers/test_a.py"),
        ("tests/brokers/test_a.py::test_b[3.9.1]", "tests/brokers/ 3.9.1"),
        ("tests/brokers/test_a.py::test_b[range-0.10.2.2]", "tests/brokers/ 0.10.2.2"),
        ("tests/brokers/test_a.py::test_an_upgrade[1.1.1-2.8.2-1.1]", "tests/brokers/ 1.1.1"),
        ("tests/brokers/test_a.py::test_b[secure-3.9.1-SSL]", "tests/brokers/ secure-3.9.1"),
        ("tests/brokers/test_a.py::test_b[SSL-secure-3.9.1]", "tests/brokers/ secure-3.9.1"),
        ("tests/simulation/test_a.py::test_b[a fault]", "tests/simulation/test_a.py::test_b[a fault]"),
        ("tests/spark/test_a.py::test_b[Connect, local]", "tests/spark/ Connect, local"),
        ("tests/spark/test_a.py::test_b[dying1-classic, standalone]", "tests/spark/ classic, standalone"),
    ],
)
def test_tests_that_share_servers_are_one_unit(nodeid: str, unit: str) -> None:
    assert unit_of(nodeid) == unit


@pytest.mark.parametrize(
    ("nodeid", "group"),
    [
        ("tests/brokers/test_a.py::test_b[3.9.1]", "real brokers"),
        ("tests/brokers/test_a.py::test_b[0.8.2.2]", "real brokers"),
        ("tests/brokers/test_a.py::test_b[secure-3.9.1-SSL]", "tests/brokers/ secure-3.9.1"),
        ("tests/brokers/test_a.py::test_b", "tests/brokers/test_a.py"),
        ("tests/resources/machines/test_spark.py::test_b", "a Spark session"),
        ("tests/kafka_io/test_a.py::test_b", "tests/kafka_io/test_a.py"),
    ],
)
def test_units_that_need_a_spark_session_are_two_groups(nodeid: str, group: str) -> None:
    assert group_of(nodeid) == group


def test_all_tests_that_use_the_spark_session_are_in_its_group() -> None:
    users = {
        path.relative_to(TESTS.parent).as_posix()
        for path in TESTS.rglob("test_*.py")
        if re.search(r"\bspark: SparkSession", path.read_text())
    }
    others = {user for user in users if not user.startswith("tests/brokers/")} - {"tests/test_spreading.py"}
    assert len(others) > 5
    assert others <= {file.partition("::")[0] for file in SESSION}
    assert all((TESTS.parent / file.partition("::")[0]).is_file() for file in SESSION)


def test_units_that_take_long_start_before_the_others() -> None:
    slow, quick = "tests/brokers/test_a.py::test_b[4.1.0]", "tests/kafka_io/test_a.py::test_b"
    assert sorted([quick, slow], key=rank_of) == [slow, quick]
