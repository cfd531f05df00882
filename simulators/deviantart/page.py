"""The page of the simulator: what was published, by whom and when, and what goes wrong just now."""

from __future__ import annotations

import html
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from simulators.deviantart.calls import World

_STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid color-mix(in srgb, currentColor 18%, transparent); }
td:last-child { font-variant-numeric: tabular-nums; }
.quiet { opacity: .65; }
"""
_NEWEST = 100


def page(world: World) -> Any:
    async def show(_: Request) -> Response:
        return HTMLResponse(_drawn(world))

    return show


def _drawn(world: World) -> str:
    entries = [
        each for each in world.ledger.find() if each["kind"] in ("published", "half_published", "ghost")
    ]
    rows = "".join(_row(each) for each in reversed(entries[-_NEWEST:]))
    faults = "".join(
        f"<li>{_text(each['kind'])} at {_text(each['endpoint'])}, in {each['share']:.0%} of the calls</li>"
        for each in world.faults.shown()
    )
    blocked = world.limits.blocked_until(None)
    return (
        f'<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>Simulated DeviantArt</title>'
        f"<style>{_STYLE}</style><h1>Simulated DeviantArt</h1>"
        f'<p class="quiet">A server of the tests on this machine. No account of anybody is touched here.</p>'
        f"<p>{len(entries):,} published by {len({each['artist'] for each in entries}):,} artists; "
        f"{world.ledger.calls.total():,} calls{'; the application is blocked' if blocked else ''}.</p>"
        f"<h2>What goes wrong</h2><ul>{faults or '<li>Nothing.</li>'}</ul>"
        "<h2>Published, newest first</h2>"
        + (
            f"<table><tr><th>Title<th>Artist<th>How<th>When (UTC)</tr>{rows}</table>"
            if rows
            else "<p>Nothing yet. Publish something with an application that is pointed here.</p>"
        )
        + "</html>"
    )


def _row(entry: dict[str, Any]) -> str:
    at = datetime.fromtimestamp(entry["at"], UTC).strftime("%Y-%m-%d %H:%M:%S")
    how = {"published": "shown", "half_published": "half published", "ghost": "said so, and not shown"}[
        entry["kind"]
    ]
    return f"<tr><td>{_text(entry['title'])}<td>{_text(entry['artist'])}<td>{how}<td>{at}</tr>"


def _text(value: object) -> str:
    return html.escape(str(value), quote=True)
