"""The visible tags of a run say which topics it loads, and are short enough for Dagster's list of runs."""

import pytest

from pipelines.defs.runs.run_tags import topic_tags

LONG = "shop.payments.authorizations.v2"


# fault F17
@pytest.mark.parametrize(
    ("topics", "shown"),
    [
        (["clicks"], "clicks"),
        (["Page.Views", "clicks"], "Page.Views, clicks"),
        (["topic-000", "topic-001", "topic-002", "topic-003"], "topic-000 and 3 more"),
        (["a", "b", "c", "d"], "a, b, c and 1 more"),
        ([LONG, "clicks"], f"{LONG} and 1 more"),
        ([], ""),
    ],
)
def test_the_tags_name_as_many_topics_as_the_list_of_runs_shows(topics: list[str], shown: str) -> None:
    assert topic_tags("main", topics) == {"cluster": "main", "topics": shown}
    # Dagster shows about 33 characters of a tag; a name that is longer than that is cut off.
    assert len(f"topics: {shown}") <= 33 or LONG in shown
