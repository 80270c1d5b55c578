"""Did you mean: the known name that is closest to a name that does not exist."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a sentence that names the closest known name; empty if no known name is close."""
    closest = get_close_matches(name, list(known), n=1)
    return f"; did you mean {closest[0]!r}?" if closest else ""
