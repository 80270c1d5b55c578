"""Did you mean: the known name that is closest to a name that does not exist."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a sentence that names the closest known name; empty if no known name is close in any case."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    closest = get_close_matches(name.casefold(), by_folded, n=1)
    return f"; did you mean {by_folded[closest[0]]!r}?" if closest else ""


def known_names(kind: str, name: str, known: Iterable[str]) -> str:
    """The end of a sentence about a name that is missing in the settings: the closest known name, or all of them.

    `kind` is what the names stand for, such as "clusters".
    """
    names = sorted(known)
    return did_you_mean(name, names) or f"; the {kind} are: {', '.join(names) or 'none'}"
