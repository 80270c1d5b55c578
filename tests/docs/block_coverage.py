"""Which test runs the blocks of which page, so that no example is read by people only.

Tests take the blocks of all pages in the languages of EVERY_PAGE. A page whose blocks make sense only in their order,
or after other preparations, has a test of its own in IN_ORDER. A page has an entry in OF_A_PAGE for other blocks. A new
block on such a page changes the number of its entry, so its author looks into the test. A block that cannot be run has
`<!-- not run: REASON -->` on the line before.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.docs.pages import LANGUAGES, PAGES, ROOT, Block, name_of, run_blocks

_FOLDER = Path(__file__).parent
_PAGES = _FOLDER / "pages.py"
SHOWN = {"text", "mermaid"}
"""Languages of blocks that are no examples to run: output, layouts of bytes, and diagrams."""

EVERY_PAGE: Mapping[str, str] = {
    "sh": "test_commands.py::test_every_command_on_a_page_works",
    "console": "test_commands.py::test_every_command_on_a_page_works",
    "toml": "test_pages.py::test_every_block_of_settings_can_be_loaded",
    "python": "test_library.py::test_python_on_a_page_prints_what_it_shows",
}
"""The test that takes the blocks of a language from all pages. Python that reads a table needs a test of its page."""


@dataclass(frozen=True, slots=True)
class Covered:
    """Blocks of one page and language that a test runs.

    Attributes:
        count: how many blocks they are.
        test: the test, with its file relative to `tests/docs`.
    """

    page: str
    language: str
    count: int
    test: str


@dataclass(frozen=True, slots=True)
class InOrder:
    """All blocks of a page in some languages, which one test runs from top to bottom."""

    page: str
    languages: frozenset[str]
    test: str


IN_ORDER: Sequence[InOrder] = (
    InOrder(
        "docs/increments.md",
        frozenset({"python"}),
        "test_increments_page.py::test_the_examples_have_each_effect_once",
    ),
    InOrder(
        "docs/tutorial.md",
        frozenset({"sh", "console", "python", "toml", "yaml"}),
        "test_tutorial.py::test_the_tutorial_works_from_top_to_bottom_with_the_packages_that_it_installs",
    ),
    InOrder(
        "docs/incidents.md",
        frozenset({"sh", "console"}),
        "../incidents/test_page.py::test_the_steps_of_the_page_end_the_incident_with_a_proven_table",
    ),
)
OF_A_PAGE: Sequence[Covered] = (
    Covered("README.md", "python", 1, "test_typed_tables_page.py::test_the_front_page_queries_what_its_settings_load"),
    Covered("docs/dagster.md", "yaml", 1, "test_examples.py::test_the_component_on_the_page_is_complete"),
    Covered("docs/dagster.md", "yaml", 1, "test_dagster_page.py::test_dagster_accepts_the_instance"),
    Covered("docs/dagster.md", "yaml", 1, "test_dagster_page.py::test_the_workspace_names_the_code_server"),
    Covered(
        "docs/dagster-production.md", "yaml", 1, "test_deployments.py::test_the_page_has_the_storage_of_the_instance"
    ),
    Covered("docs/event-time.md", "python", 1, "test_event_time_page.py::test_the_examples_print_what_they_say"),
    Covered("docs/install.md", "yaml", 1, "test_helm_values.py::test_the_chart_has_each_key"),
    Covered("docs/layout.md", "sql", 1, "test_layout_page.py::test_the_query_counts_a_day_in_each_layout"),
    Covered(
        "docs/monitoring.md",
        "yaml",
        1,
        "../monitoring/test_prometheus.py::test_promtool_accepts_the_scrape_configuration",
    ),
    Covered("docs/queries.md", "python", 7, "test_queries_page.py::test_a_query_of_the_page_prints_what_it_shows"),
    Covered(
        "docs/retention.md",
        "python",
        1,
        "test_retention_page.py::test_the_example_continues_after_rows_that_the_consumer_has_not_seen",
    ),
    Covered(
        "docs/state-tables.md", "python", 1, "test_state_page.py::test_the_examples_of_the_page_give_what_they_say"
    ),
    Covered(
        "docs/typed-tables.md",
        "python",
        1,
        "test_typed_tables_page.py::test_the_query_of_the_page_reads_what_the_settings_load",
    ),
    Covered(
        "docs/typed-tables.md",
        "sql",
        1,
        "test_typed_tables_page.py::test_the_query_for_debezium_gives_the_present_rows",
    ),
    Covered(
        "docs/typed-tables.md",
        "sql",
        1,
        "test_typed_examples.py::test_the_query_for_headers_counts_the_events_of_a_source",
    ),
    Covered(
        "docs/typed-tables.md",
        "sql",
        1,
        "test_typed_examples.py::test_the_query_for_schemas_counts_the_records_of_each",
    ),
    Covered(
        "docs/typed-tables.md",
        "sql",
        3,
        "test_typed_examples.py::test_the_queries_for_bad_records_give_reasons_and_bytes",
    ),
)


def is_run_in_order(block: Block) -> bool:
    """Whether the test of its page runs the block, so that the tests for every page leave it out."""
    return any(entry.page == block.page and block.language in entry.languages for entry in IN_ORDER)


def needs_entry(block: Block) -> bool:
    """Whether neither a test for every page nor one that runs its page in order takes the block."""
    return not is_run_in_order(block) and (block.language not in EVERY_PAGE or block.reads_a_table)


def problems(pages: Sequence[Path] = PAGES, entries: Sequence[Covered] = OF_A_PAGE) -> Iterator[str]:
    """For each page and language whose blocks are not as many as the entries say, what to do."""
    covered: Counter[tuple[str, str]] = Counter()
    for entry in entries:
        covered[entry.page, entry.language] += entry.count
    for page in pages:
        for language in sorted(LANGUAGES - SHOWN):
            count = sum(needs_entry(block) for block in run_blocks(page, language))
            expected = covered.pop((name_of(page), language), 0)
            if count != expected:
                yield (
                    f"{name_of(page)} has {count} blocks of {language} that need a test, and OF_A_PAGE in "
                    f"tests/docs/block_coverage.py has tests for {expected}: add the test that runs the new block, or "
                    "write `<!-- not run: REASON -->` on the line before it"
                )
    yield from (f"OF_A_PAGE names {page}, which does not exist" for page, _ in covered)


@cache
def used_by(test: str) -> frozenset[str]:
    """The names and texts in a test, and in all constants, functions and fixtures that it uses.

    Names that the file imports from other tests are followed, except into `tests/docs/pages.py`, which all use.

    Raises:
        KeyError: the file has no such function.
    """
    file, _, name = test.partition("::")
    path = (_FOLDER / file).resolve()
    _definitions(path)[name]  # a test that does not exist is an error
    used: set[str] = set()
    done: set[tuple[Path, str]] = set()
    pending = [(path, name)]
    while pending:
        place = pending.pop()
        if place not in done:
            done.add(place)
            texts, imported = _content(*place)
            used |= texts
            pending += [*((place[0], text) for text in texts), *imported]
    return frozenset(used)


def _content(path: Path, name: str) -> tuple[set[str], list[tuple[Path, str]]]:
    """The names and texts in the definition of a name, and the place of its definition if it is imported."""
    node = _definitions(path).get(name)
    if isinstance(node, ast.ImportFrom):
        module = ROOT / f"{str(node.module).replace('.', '/')}.py"
        return set(), [(module, name)] if module.is_relative_to(ROOT / "tests") and module != _PAGES else []
    return (set(_names_and_texts(node)) if node else set()), []


@cache
def _definitions(path: Path) -> Mapping[str, ast.AST]:
    """What defines each name of a module: a function or class, the value of a constant, or an import."""
    definitions: dict[str, ast.AST] = {}
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            definitions[statement.name] = statement
        elif isinstance(statement, ast.ImportFrom):
            definitions |= dict.fromkeys((alias.asname or alias.name for alias in statement.names), statement)
        elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names = [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
            definitions |= dict.fromkeys(names, statement.value)
    return definitions


def _names_and_texts(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.arg):
            yield part.arg
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value
