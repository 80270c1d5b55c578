"""docs/monitoring.md lists every metric and every alert, and the dashboard and the rules use metrics that exist."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from resources.metrics_output import MetricName
from tests.docs.pages import ROOT
from tests.monitoring.dashboard_models import problems_of
from tests.monitoring.monitored import ALERTS, METRICS, dashboard, expressions, metrics_in

PAGE = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")


def row(name: MetricName) -> str:
    """The line of a metric in the tables of the page."""
    more = ", ".join(label for label in name.labels if label not in {"cluster", "topic"})
    return f"| `{name.name}`{f' (`{more}`)' if more else ''} | {name.meaning} |"


def test_the_page_lists_every_metric() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| `penstock_")]
    assert rows == [row(name) for name in METRICS.values()]


def test_every_metric_has_a_unit_and_a_meaning_and_few_labels() -> None:
    assert all(name.meaning.endswith(".") for name in METRICS.values())
    labels = {label for name in METRICS.values() for label in name.labels}
    assert labels == {"cluster", "topic", "partition", "state", "cause"}
    assert [name.name for name in METRICS.values() if name.name.endswith(("_total", "_count", "_sum", "_ms"))] == []


def test_the_dashboard_and_the_rules_use_metrics_that_exist() -> None:
    queries = list(expressions())
    assert len(queries) > 30
    used = metrics_in(" ".join(queries)) | metrics_in(str(dashboard()["templating"]))
    assert used - METRICS.keys() == set()
    assert [query for query in queries if not metrics_in(query)] == []


def test_every_metric_that_the_page_names_exists() -> None:
    named = {name for name in metrics_in(PAGE) if not name.endswith("_")}
    assert named - METRICS.keys() == {"penstock_load"}  # the name of the job


def test_the_page_lists_every_alert() -> None:
    assert re.findall(r"`(Penstock\w+)`", PAGE.partition("| alert | when |")[2].partition("\n\n")[0]) == ALERTS


def test_the_dashboard_fits_the_models_of_grafana() -> None:
    assert problems_of(dashboard()) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda panel: panel["options"].update(colourMode="value"), "].options has no field colourMode"),
        (lambda panel: panel["options"].update(colorMode="loud"), ".color_mode is 'loud', and not one of"),
        (lambda panel: panel["targets"][0].update(expression="up"), ".targets[0] has no field expression"),
        (lambda panel: panel["fieldConfig"]["defaults"].update(unit=3), ".unit is 3, and not of the type str"),
        (lambda panel: panel.update(type="statistic"), "there is no panel of the type statistic"),
    ],
)
def test_a_dashboard_that_grafana_would_not_understand_is_noticed(change: Callable[[Any], None], problem: str) -> None:
    wrong = dashboard()
    change(wrong["panels"][0])
    [message] = problems_of(wrong)
    assert problem in message


def test_the_panels_of_the_dashboard_do_not_overlap() -> None:
    cells = [
        (x, y)
        for panel in dashboard()["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells)) > 1000
    assert max(x for x, _ in cells) < 24
