"""The dashboard and the alerts ask for what is exported, by its name and its labels, and Prometheus understands them."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from debian import tool
from docs_examples import ROOT

from holdfast.observe.metrics import catalog
from holdfast.observe.metrics.kinds import Histogram, Metric
from tools import grafana

RULES = ROOT / "deploy/prometheus/holdfast.rules.yml"
DASHBOARD = ROOT / "deploy/grafana/holdfast.json"


def exported():
    """Each name that can be asked for, with its labels."""
    found = {}
    for each in vars(catalog).values():
        if isinstance(each, Histogram):
            found[f"{each.name}_bucket"] = {*each.labels, "le"}
            found[f"{each.name}_sum"] = found[f"{each.name}_count"] = {*each.labels}
        elif isinstance(each, Metric):
            found[each.name] = {*each.labels}
    return found


def queries():
    panels = json.loads(DASHBOARD.read_text())["panels"]
    yield from (target["expr"] for panel in panels for target in panel["targets"])
    rules = RULES.read_text()
    yield from re.findall(r"^ +expr: ([^|\n].*)$", rules, re.MULTILINE)
    yield from re.findall(r"^ +expr: \|\n((?: {10,}.*\n)+)", rules, re.MULTILINE)


@pytest.mark.parametrize("query", list(queries()))
def test_each_query_asks_for_what_there_is(query):
    known, names = exported(), set(re.findall(r"holdfast_\w+", query))
    assert names
    assert names <= known.keys()
    labels = set().union(*(known[name] for name in names)) | {"instance"}
    asked = {label.strip() for group in re.findall(r"by \(([^)]*)\)", query) for label in group.split(",")}
    asked |= set(re.findall(r"[{,]\s*(\w+)\s*[=!]", query))
    assert asked <= labels


def test_every_alert_is_read():
    assert len(re.findall(r"- alert:", RULES.read_text())) + sum(
        len(panel[2]) for panel in grafana.PANELS
    ) == len(list(queries()))


def test_the_dashboard_is_what_the_tool_makes():
    assert DASHBOARD.read_text() == grafana.dashboard(), "run `python -m tools.grafana`"


def test_prometheus_understands_the_rules():
    command = [tool("promtool", "prometheus"), "check", "rules", RULES]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_understands_the_queries_of_the_dashboard(tmp_path):
    queries = [
        query.replace("$__rate_interval", "5m") for _, _, lines in grafana.PANELS for query, _ in lines
    ]
    rules = [{"record": f"holdfast:{number}", "expr": query} for number, query in enumerate(queries)]
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    command = [tool("promtool", "prometheus"), "check", "rules", tmp_path / "rules.yml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
