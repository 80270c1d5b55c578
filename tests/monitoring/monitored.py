"""The dashboard and the rules of docs/monitoring, as the tests read them."""

import json
import re
from collections.abc import Iterator
from typing import Any

from pipelines.reports.load_metrics import LOAD_METRICS
from pipelines.status.metrics import STATUS_METRICS
from tests.docs.pages import ROOT

FOLDER = ROOT / "docs" / "monitoring"
RULES = FOLDER / "alerts.yaml"
DASHBOARD = FOLDER / "grafana-dashboard.json"
METRICS = {name.name: name for name in (*STATUS_METRICS, *LOAD_METRICS)}
ALERTS = re.findall(r"^ +- alert: (\w+)$", RULES.read_text(encoding="utf-8"), re.MULTILINE)

_METRIC = re.compile(r"\bpenstock_\w+")
_EXPRESSION = re.compile(r"^ +expr: (.*)$", re.MULTILINE)


def dashboard() -> dict[str, Any]:
    """The dashboard."""
    content: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return content


def expressions() -> Iterator[str]:
    """All queries of the rules and of the dashboard."""
    yield from _EXPRESSION.findall(RULES.read_text(encoding="utf-8"))
    yield from dashboard_queries()


def dashboard_queries() -> Iterator[str]:
    """All queries of the dashboard, whose variables stand for everything."""
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"].replace("$cluster", ".*").replace("$topic", ".*")


def metrics_in(text: str) -> set[str]:
    """The names of metrics in a text."""
    return set(_METRIC.findall(text))
