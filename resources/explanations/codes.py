"""The table of codes: one row per error. It finds the row of an error, of a code, and of what a user types."""

import builtins
import re
from collections.abc import Iterable, Mapping

from resources.explanations.commands import COMMAND_ERRORS
from resources.explanations.explanation import ExitCode, Explanation
from resources.explanations.logs import LOG_ERRORS
from resources.explanations.machine import MACHINE_ERRORS, UNEXPECTED_ENDS
from resources.explanations.rows import OUTPUT_ERRORS, VALUE_ERRORS
from resources.explanations.servers import SERVER_ERRORS
from resources.explanations.tables import TABLE_ERRORS

_ROWS = (
    *COMMAND_ERRORS,
    *SERVER_ERRORS,
    *LOG_ERRORS,
    *TABLE_ERRORS,
    *VALUE_ERRORS,
    *OUTPUT_ERRORS,
    *MACHINE_ERRORS,
    *UNEXPECTED_ENDS,
)
EXPLANATIONS: Mapping[str, Explanation] = {row.code: row for row in _ROWS}
"""All rows by code, in the order of the codes."""
RETIRED: Mapping[str, str] = {}
"""Codes of errors that no longer exist, with the sentence that says what became of them. They are never used again."""

UNEXPECTED = "PS-901"
"""The code of errors for which the table has no row of their own."""

_BY_KIND = {kind: row for row in _ROWS for kind in row.kinds}
_TYPED_CODE = re.compile(r"(?:ps)?[-_ ]?(\d{3})", re.IGNORECASE)


def explanation_of(error: type[BaseException]) -> Explanation:
    """The row of a class of errors. A class without a row has the row of its nearest base."""
    return next(_BY_KIND[base.__name__] for base in error.__mro__ if base.__name__ in _BY_KIND)


def code_of(error: type[BaseException]) -> str:
    """The code of a class of errors.

    >>> code_of(FileNotFoundError), code_of(KeyError)
    ('PS-710', 'PS-901')
    """
    return explanation_of(error).code


def code_of_kind(kind: str) -> str:
    """The code of an error of which only the name of its class is known."""
    return _known_code(kind) or UNEXPECTED


def _known_code(kind: str) -> str | None:
    """The code of an error in the table, or of an error of Python; None for another name."""
    if kind in _BY_KIND:
        return _BY_KIND[kind].code
    builtin = getattr(builtins, kind, None)
    return code_of(builtin) if isinstance(builtin, type) and issubclass(builtin, BaseException) else None


def coded(sentence: str, code: str | None) -> str:
    """A sentence with the code of its error at the end, as all messages have it.

    >>> coded("offsets expired", "PS-301")
    'offsets expired (PS-301)'
    """
    return f"{sentence} ({code})" if code else sentence


def exit_code_of(codes: Iterable[str]) -> ExitCode:
    """The exit code of a command that ends with errors of these codes: of their kind, or 1 if there are several kinds.

    >>> exit_code_of(["PS-201", "PS-203"]), exit_code_of(["PS-201", "PS-301"]), exit_code_of([])
    (<ExitCode.TRY_AGAIN: 3>, <ExitCode.FAILED: 1>, <ExitCode.SUCCESS: 0>)
    """
    return combined({EXPLANATIONS[code].exit_code for code in codes})


def combined(exit_codes: Iterable[ExitCode]) -> ExitCode:
    """The exit code of a command whose parts would end with these."""
    failures = set(exit_codes) - {ExitCode.SUCCESS}
    if not failures:
        return ExitCode.SUCCESS
    return failures.pop() if len(failures) == 1 else ExitCode.FAILED


def typed_code(text: str) -> str:
    """The code that a user means: `ps-301`, `301`, or the name of a class. Another text is returned as it is.

    >>> typed_code("301"), typed_code("ps-301"), typed_code("cursorexpired"), typed_code("nonsense")
    ('PS-301', 'PS-301', 'PS-301', 'nonsense')
    """
    word = text.strip()
    number = _TYPED_CODE.fullmatch(word)
    if number:
        return f"PS-{number[1]}"
    by_lower_name = {kind.lower(): row.code for kind, row in _BY_KIND.items()}
    return by_lower_name.get(word.lower()) or _known_code(word) or text
