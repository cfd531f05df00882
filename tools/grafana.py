"""Make deploy/grafana/holdfast.json anew: the dashboard is told here in few lines, and Grafana's file has many."""

from __future__ import annotations

import json
from pathlib import Path

PAGE = Path(__file__).parents[1] / "deploy" / "grafana" / "holdfast.json"
_SOURCE = {"type": "prometheus", "uid": "${source}"}
_RUNS, _FLEET = "holdfast_job_runs_total", "max by"

# Title, unit, and the lines: a query and its legend.
PANELS = (
    ("Runs by outcome", "ops", [(f"sum by (outcome) (rate({_RUNS}[$__rate_interval]))", "{{outcome}}")]),
    ("Runs by task", "ops", [(f"topk(10, sum by (task) (rate({_RUNS}[$__rate_interval])))", "{{task}}")]),
    ("Ready jobs", "short", [(f"{_FLEET} (queue) (holdfast_queue_ready_jobs)", "{{queue}}")]),
    ("Oldest ready job", "s", [(f"{_FLEET} (queue) (holdfast_queue_oldest_ready_seconds)", "{{queue}}")]),
    ("Held jobs by reason", "short", [("sum by (reason) (max by (queue, reason) (holdfast_queue_held_jobs))", "{{reason}}")]),
    ("Running jobs", "short", [("sum by (instance) (holdfast_worker_running_jobs)", "{{instance}}"), ("sum(max by (queue) (holdfast_queue_running_jobs))", "in the database")]),
    ("Dead and unknown jobs", "short", [(f"{_FLEET} (queue) (holdfast_queue_dead_jobs)", "dead, {{queue}}"), (f"{_FLEET} (queue) (holdfast_queue_unknown_jobs)", "unknown, {{queue}}")]),
    ("Wait until a run begins", "s", [(f"histogram_quantile({q}, sum by (le) (rate(holdfast_job_wait_seconds_bucket[$__rate_interval])))", f"p{int(q * 100)}") for q in (0.5, 0.99)]),
    ("Time of runs, 99 %", "s", [("histogram_quantile(0.99, sum by (le, task) (rate(holdfast_job_run_seconds_bucket[$__rate_interval])))", "{{task}}")]),
    ("Leases lost, jobs rescued", "ops", [("sum(rate(holdfast_job_leases_lost_total[$__rate_interval]))", "leases lost"), ("sum by (state) (rate(holdfast_jobs_rescued_total[$__rate_interval]))", "rescued, now {{state}}")]),
    ("Workers", "short", [("max(holdfast_workers)", "alive"), ("sum by (instance) (holdfast_worker_processes)", "{{instance}}")]),
    ("Guards", "short", [(f"{_FLEET} (guard, state) (holdfast_guard_processes)", "{{guard}}, {{state}}")]),
    ("Waits for limiters, 99 %", "s", [("histogram_quantile(0.99, sum by (le, guard) (rate(holdfast_limiter_wait_seconds_bucket[$__rate_interval])))", "{{guard}}")]),
    ("Outbox", "s", [("max(holdfast_outbox_oldest_seconds)", "oldest event")]),
    ("Events", "ops", [("sum(rate(holdfast_events_published_total[$__rate_interval]))", "published"), ("sum by (group) (rate(holdfast_inbox_deliveries_total[$__rate_interval]))", "for {{group}}"), ("sum by (group) (rate(holdfast_inbox_duplicates_total[$__rate_interval]))", "again for {{group}}")]),
    ("Views behind", "s", [(f"{_FLEET} (view) (holdfast_view_lag_seconds)", "{{view}}")]),
    ("Sagas", "short", [("sum by (state) (max by (saga, state) (holdfast_sagas))", "{{state}}")]),
    ("Requests with a key that did not run", "ops", [("sum by (what) (rate(holdfast_idempotency_requests_total[$__rate_interval]))", "{{what}}")]),
    ("Connections to the database", "short", [("sum by (instance, what) (holdfast_pool_connections)", "{{what}}, {{instance}}"), ("sum by (instance) (holdfast_pool_waiting)", "waiting, {{instance}}")]),
)  # fmt: skip


def dashboard() -> str:
    found = {
        "title": "Holdfast",
        "uid": "holdfast",
        "tags": ["holdfast"],
        "schemaVersion": 39,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [{"name": "source", "label": "Source", "type": "datasource", "query": "prometheus"}]
        },
        "panels": [_panel(place, *panel) for place, panel in enumerate(PANELS)],
    }
    return json.dumps(found, indent=1) + "\n"


def _panel(place: int, title: str, unit: str, lines: list[tuple[str, str]]) -> dict[str, object]:
    return {
        "id": place + 1,
        "title": title,
        "type": "timeseries",
        "datasource": _SOURCE,
        "gridPos": {"x": 8 * (place % 3), "y": 8 * (place // 3), "w": 8, "h": 8},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(65 + number), "datasource": _SOURCE, "expr": query, "legendFormat": legend}
            for number, (query, legend) in enumerate(lines)
        ],
    }


if __name__ == "__main__":
    PAGE.write_text(dashboard())
