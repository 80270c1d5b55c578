"""Which test runs the blocks of which page, so that no example is read by people only.

Tests take the blocks of all pages in the languages of EVERY_PAGE. A page has an entry in OF_A_PAGE for other blocks.
A new block on such a page changes the number of its entry, so its author looks into the test. A block that cannot be
run has `<!-- not run: REASON -->` on the line before.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.docs.pages import LANGUAGES, PAGES, Block, name_of, run_blocks

_FOLDER = Path(__file__).parent
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


OF_A_PAGE: Sequence[Covered] = (
    Covered("README.md", "python", 1, "test_typed_tables_page.py::test_the_front_page_queries_what_its_settings_load"),
    Covered("docs/dagster.md", "yaml", 1, "test_examples.py::test_the_component_on_the_page_is_complete"),
    Covered("docs/dagster.md", "yaml", 1, "test_dagster_page.py::test_dagster_accepts_the_instance"),
    Covered("docs/dagster.md", "yaml", 1, "test_dagster_page.py::test_the_workspace_names_the_code_server"),
    Covered(
        "docs/dagster-production.md", "yaml", 1, "test_deployments.py::test_the_page_has_the_storage_of_the_instance"
    ),
    Covered("docs/event-time.md", "python", 1, "test_event_time_page.py::test_the_examples_print_what_they_say"),
    Covered("docs/increments.md", "python", 6, "test_increments_page.py::test_the_examples_have_each_effect_once"),
    Covered("docs/layout.md", "sql", 1, "test_layout_page.py::test_the_query_counts_a_day_in_each_layout"),
    Covered(
        "docs/monitoring.md",
        "yaml",
        1,
        "../monitoring/test_prometheus.py::test_promtool_accepts_the_scrape_configuration",
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
        3,
        "test_typed_examples.py::test_the_queries_for_bad_records_give_reasons_and_bytes",
    ),
)


def needs_entry(block: Block) -> bool:
    """Whether no test takes the block from all pages."""
    return block.language not in EVERY_PAGE or block.reads_a_table


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
    """The names and texts in a test, and in all constants, functions and fixtures of its file that it uses.

    Raises:
        KeyError: the file has no such function.
    """
    file, _, name = test.partition("::")
    definitions = dict(_definitions(ast.parse((_FOLDER / file).read_text(encoding="utf-8"))))
    used: set[str] = set()
    pending = [name]
    definitions[name]  # a test that does not exist is an error
    while pending:
        for node in definitions.get(pending.pop(), ()):
            for text in _names_and_texts(node):
                if text not in used:
                    used.add(text)
                    pending.append(text)
    return frozenset(used)


def _definitions(module: ast.Module) -> Iterator[tuple[str, Sequence[ast.AST]]]:
    for statement in module.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            yield statement.name, [statement]
        elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                yield from ((node.id, [statement.value]) for node in ast.walk(target) if isinstance(node, ast.Name))


def _names_and_texts(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.arg):
            yield part.arg
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value
