"""Each room has a floor of coverage, a room below its floor is reported, and no floor is ever lowered."""

import tomllib

from tests.coverage_floors import PROJECT, below, by_room, floors, raised, rooms


def test_every_room_has_a_floor_and_every_floor_a_room() -> None:
    assert floors().keys() == rooms()


def file(lines: tuple[int, int], branches: tuple[int, int]) -> dict[str, dict[str, int]]:
    """The entry of a file in coverage.py's report: executed and possible lines and branches."""
    return {
        "summary": {
            "covered_lines": lines[0],
            "num_statements": lines[1],
            "covered_branches": branches[0],
            "num_branches": branches[1],
        }
    }


def test_the_coverage_of_a_room_counts_the_lines_and_branches_of_all_its_files() -> None:
    files = {
        "kafka_io/wire/types.py": file((8, 10), (0, 10)),
        "kafka_io/wire/deep/er.py": file((80, 80), (0, 0)),
        "kafka_io/model.py": file((1, 4), (0, 0)),
        "kafka_io/__init__.py": file((0, 0), (0, 0)),
        "resources/stores/lake.py": file((0, 0), (0, 0)),
    }
    assert by_room({"files": files}) == {"kafka_io": 25.0, "kafka_io/wire": 88.0, "resources": 0.0}


def test_a_room_below_its_floor_is_reported_with_both_numbers() -> None:
    assert below({"kafka_io/wire": 97.4, "kafka_io/net": 90.0}, {"kafka_io/wire": 98, "kafka_io/net": 90}) == [
        "kafka_io/wire: 97.4 % of lines and branches ran, the floor is 98 %"
    ]
    assert below({}, {"kafka_io/wire": 98}) == ["kafka_io/wire: 0.0 % of lines and branches ran, the floor is 98 %"]


def test_floors_are_raised_and_never_lowered() -> None:
    text = '[tool.coverage_floors]\n"kafka_io" = 90\n"kafka_io/wire" = 90\n"resources" = 90\n'
    measured = {"kafka_io": 95.6, "kafka_io/wire": 95.4, "resources": 80.0}
    assert tomllib.loads(raised(text, measured))["tool"]["coverage_floors"] == {
        "kafka_io": 95,
        "kafka_io/wire": 94,
        "resources": 90,
    }


def test_raising_changes_nothing_else_in_the_project_file() -> None:
    text = PROJECT.read_text()
    assert raised(text, {}) == text
