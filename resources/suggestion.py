"""Did you mean: the known name that is closest to a name that does not exist."""

from collections.abc import Iterable
from difflib import get_close_matches

from resources.table_names import route_of, topic_of


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a sentence that names the closest known name; empty if no known name is close in any case."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    closest = get_close_matches(name.casefold(), by_folded, n=1)
    return f"; did you mean {by_folded[closest[0]]!r}?" if closest else ""


def no_topic(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about a topic that a cluster does not have: `name` may be that of a table of a topic."""
    topics = set(known)
    if route_of(name) and topic_of(name) in topics:
        return f": it is the name of a table of the topic {topic_of(name)!r}; give the topic, which has all its tables"
    return did_you_mean(name, topics)


def known_names(kind: str, name: str, known: Iterable[str]) -> str:
    """The end of a sentence about a name that is missing in the settings: the closest known name, or all of them.

    `kind` is what the names stand for, such as "clusters".
    """
    names = sorted(known)
    return did_you_mean(name, names) or f"; the {kind} are: {', '.join(names) or 'none'}"
