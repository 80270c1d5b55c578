"""The table in docs/kafka-versions.md shows every version and codec that the tests run, and nothing else."""

import textwrap
from pathlib import Path

import pytest

from tests.brokers.matrix import COLUMNS, PAGE, Collector, render, table_of, with_table
from tests.brokers.releases import RELEASES


def expected() -> dict[tuple[str, str], bool]:
    """The cells of all features that the brokers of each version have, all of them passed."""
    missing = {
        (version, column)
        for version, release in RELEASES.items()
        for column, is_supported in (
            ("transactions", release.transactions),
            ("TLS", "SSL" in release.security_protocols),
            ("SASL", "SASL_SSL" in release.security_protocols),
        )
        if not is_supported
    }
    return {(version, column): True for version in RELEASES for column in COLUMNS if (version, column) not in missing}


def test_the_page_shows_every_version_with_its_codecs_and_no_failed_test() -> None:
    assert table_of(PAGE.read_text()) == render(expected())


def test_a_failed_test_is_shown_as_failed() -> None:
    assert "NO" not in render(expected())
    assert render({**expected(), ("3.9.1", "TLS"): False}).count("NO") == 1


def test_only_the_table_is_replaced() -> None:
    text = PAGE.read_text()
    assert table_of(with_table(text, "| new |\n")) == "| new |\n"
    assert with_table(with_table(text, "| new |\n"), table_of(text)) == text


def test_a_cell_combines_the_results_of_all_its_tests(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(
        textwrap.dedent("""\
            import pytest

            @pytest.mark.parametrize("version", ["1", "2"])
            @pytest.mark.matrix("load", "continue")
            def test_both(version):
                assert version == "1"

            @pytest.mark.matrix("load")
            @pytest.mark.parametrize("version", ["1"])
            def test_fixture_fails(version, request):
                request.getfixturevalue("no such")
        """)
    )
    collector = Collector()
    config = Path(__file__).parents[2] / "pyproject.toml"
    pytest.main(["-q", "-c", str(config), "--rootdir", str(tmp_path), str(tmp_path)], plugins=[collector])
    assert collector.results == {
        ("1", "load"): False,
        ("1", "continue"): True,
        ("2", "load"): False,
        ("2", "continue"): False,
    }
