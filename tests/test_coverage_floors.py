"""The coverage of a room counts all its files, and a room below its floor is reported."""

from tests.coverage_floors import FLOOR, LOWER, below, by_room, rooms


def test_only_rooms_that_exist_have_a_lower_floor() -> None:
    assert rooms() >= LOWER.keys()
    assert max(LOWER.values()) < FLOOR


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
    assert by_room({"files": files}) == {"kafka_io": 25.0, "kafka_io/wire": 88.0, "resources/stores": 0.0}


def test_a_room_below_its_floor_is_reported_with_both_numbers() -> None:
    measured = {**dict.fromkeys(rooms(), 95.0), "pipelines/demo": 34.0}
    assert below(measured) == []
    assert below({**measured, "kafka_io/wire": 94.4}) == [
        "kafka_io/wire: 94.4 % of lines and branches ran, the floor is 95 %"
    ]


def test_a_room_without_a_measurement_is_reported() -> None:
    measured = dict.fromkeys(rooms() - {"kafka_io/net"}, 100.0)
    assert below(measured) == ["kafka_io/net: 0.0 % of lines and branches ran, the floor is 95 %"]
