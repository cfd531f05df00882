"""How numbers, times and titles are written in mails and logs."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

_TITLE_MOST = 60


def moment(at: float, zone: str) -> str:
    """18 Nov 2026, 14:05 (Europe/Zurich)."""
    return f"{datetime.fromtimestamp(at, ZoneInfo(zone)):%-d %b %Y, %H:%M} ({zone})"


def counted(number: int, what: str) -> str:
    """1 post is, 3 posts are: to be followed by what they are."""
    return f"{number:,} {what} is" if number == 1 else f"{number:,} {what}s are"


def one_line(text: str, most: int = _TITLE_MOST) -> str:
    """Fit for a subject: no line break, nothing that cannot be seen, and not too long."""
    clean = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return clean if len(clean) <= most else f"{clean[: most - 1].rstrip()}…"
