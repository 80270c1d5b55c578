"""The explanations of all codes, from the files beside this module: one for each family, in Markdown.

Only `penstock explain`, `penstock config check` and `make docs` read them. Workers do not have these files.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from resources.explanations.codes import ROWS
from resources.explanations.explanation import Explanation

_FOLDER = Path(__file__).parent
_FORM = re.compile(
    r"""
      (?P<code>PS-\d{3}):[ ](?P<title>.+)\n
    \n(?P<meaning>(?:.+\n)+)
    \nWhy:[ ](?P<causes>(?:.+\n)+)
    \n-[ ](?P<repairs>(?:.+\n)+)
    (?:\nIn[ ]`penstock[ ]config[ ]check`:[ ](?P<check_repair>(?:.+\n)+))?
    \nMore:[ ](?P<page>\S+)\n*
    """,
    re.VERBOSE,
)
"""A section of a file, after the characters that make its first line a heading."""
_FORM_IN_WORDS = "`## CODE: TITLE`, what the error means, `Why: ...`, a list of what to do, and `More: PAGE#SECTION`"


@cache
def explanations() -> Mapping[str, Explanation]:
    """The explanations of all codes, in the order of the codes.

    Raises:
        ValueError: a file has another form, or the files do not explain exactly the codes of the table.
    """
    by_code = {explanation.row.code: explanation for file in _FOLDER.glob("*.md") for explanation in explained_in(file)}
    if missing := sorted(ROWS.keys() - by_code.keys()):
        raise ValueError(f"no file in {_FOLDER} explains {', '.join(missing)}")
    return {code: by_code[code] for code in ROWS}


def explained_in(file: Path) -> Iterator[Explanation]:
    """The explanations in the file of a family. Its heading is the title of the family."""
    heading, *sections = re.split("^## ", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    family = heading.removeprefix("# ").strip()
    for section in sections:
        parts = _FORM.fullmatch(section)
        first_line = section.partition("\n")[0]
        if parts is None:
            raise ValueError(f"{file}: the section {first_line!r} has another form than {_FORM_IN_WORDS}")
        if parts["code"] not in ROWS:
            raise ValueError(f"{file}: the table in codes.py has no code {parts['code']}")
        yield Explanation(
            row=ROWS[parts["code"]],
            family=family,
            title=parts["title"],
            meaning=_on_one_line(parts["meaning"]),
            causes=_on_one_line(parts["causes"]),
            repairs=tuple(map(_on_one_line, parts["repairs"].split("\n- "))),
            check_repair=_on_one_line(parts["check_repair"] or ""),
            page=parts["page"],
        )


def _on_one_line(text: str) -> str:
    """A text whose lines were broken for the writer."""
    return " ".join(text.split())
