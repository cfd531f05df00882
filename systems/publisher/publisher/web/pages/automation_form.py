"""The form of an automation: rules as numbered lines, defaults that fill what is empty or count always."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from holdfast.web.pages import Form
from publisher.desk.automation_wishes import Wishes
from publisher.desk.automations import AutomationRow
from publisher.recipes import WEEK, DailyQuotaTold, FixedTimeTold, IntervalTold, RuleTold
from publisher.web.pages.details_form import tags_of
from publisher.web.pages.numbers import whole

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
KINDS = {"fixed_time": "At a time", "interval": "Every so often", "daily_quota": "So many a day"}
LABELS = {
    "name": "Name", "rules": "Rules", "jitter_low": "At least", "jitter_high": "At most", "preset_id": "Price", "selection": "Which draft",
    "default-tags": "Tags", "default-description": "Description", "default-mature": "Mature content",
}  # fmt: skip
_RULE = re.compile(r"rules\[(\d+)\]")
_MINUTE, _HOUR, _DAY = 1, 60, 1440
_UNITS = {"minutes": _MINUTE, "hours": _HOUR, "days": _DAY}
_MOST = 20  # rules


@dataclass(frozen=True)
class Line:
    """One rule as fields of the form."""

    number: int
    kind: str
    word: str
    clock: str
    every: str
    unit: str
    posts: str
    days: tuple[str, ...]
    is_on: bool


# --- out of what is stored ---


def filled(row: AutomationRow) -> Form:
    wishes = row.wishes
    values: dict[str, str | list[str]] = {
        "name": wishes.name, "description": wishes.description, "selection": wishes.selection, "agreement": wishes.agreement,
        "jitter_low": str(wishes.jitter_low // 60), "jitter_high": str(wishes.jitter_high // 60),
        "only_stash": "yes" if wishes.only_stash else "", "preset_id": wishes.preset_id or "", "version": str(row.version),
    }  # fmt: skip
    for number, rule in enumerate(wishes.rules):
        values |= {f"rule-{number}-{name}": value for name, value in _fields_of(rule).items()}
    return Form(values | dict(_defaults_of(wishes)))


def _fields_of(rule: RuleTold) -> dict[str, str | list[str]]:
    shared: dict[str, str | list[str]] = {
        "days": [str(day) for day in rule.weekdays],
        "on": "yes" if rule.is_on else "",
    }
    match rule:
        case FixedTimeTold():
            return {**shared, "kind": "fixed_time", "clock": rule.clock}
        case IntervalTold():
            unit = next(name for name in ("days", "hours", "minutes") if rule.minutes % _UNITS[name] == 0)
            since = {} if rule.since is None else {"since": str(rule.since)}
            return {**shared, **since, "kind": "interval", "every": str(rule.minutes // _UNITS[unit]), "unit": unit, "posts": str(rule.posts)}  # fmt: skip
        case DailyQuotaTold():
            return {**shared, "kind": "daily_quota", "posts": str(rule.posts)}


def _defaults_of(wishes: Wishes) -> Iterator[tuple[str, str]]:
    for name, default in wishes.defaults.items():
        yield f"when-{name}", default.when
        match name, default.value:
            case "tags", value:
                yield "default-tags", ", ".join(value)
            case "galleries", value:
                yield "default-galleries", value[0] if value else ""
            case _, bool(value):
                yield f"default-{name}", "yes" if value else "no"
            case _, value:
                yield f"default-{name}", str(value)


def lines_of(form: Form) -> list[Line]:
    """The rules that stand in the form, also while it has faults."""
    numbers = sorted({int(name.split("-")[1]) for name in form if re.fullmatch(r"rule-\d{1,2}-kind", name)})
    return [_line(form, number) for number in numbers if not form[f"rule-{number}-gone"]]


def _line(form: Form, number: int) -> Line:
    def of(name: str) -> str:
        return form[f"rule-{number}-{name}"]

    kind = of("kind") if of("kind") in KINDS else "fixed_time"
    return Line(
        number=number, kind=kind, word=KINDS[kind], clock=of("clock"), every=of("every"), unit=of("unit") or "days",
        posts=of("posts"), days=form.all(f"rule-{number}-days"), is_on=of("on") == "yes",
    )  # fmt: skip


def with_rule(form: Form, kind: str) -> Form:
    """One more, at the end; nothing is stored yet."""
    lines = lines_of(form)
    number = max((line.number for line in lines), default=-1) + 1
    values: dict[str, str | list[str]] = {name: list(form.all(name)) for name in form}
    first = {"clock": "18:00", "every": "2", "unit": "days", "posts": "1", "on": "yes"}
    values |= {f"rule-{number}-{name}": value for name, value in first.items()}
    values |= {f"rule-{number}-kind": kind if kind in KINDS else "fixed_time", f"rule-{number}-days": [str(day) for day in WEEK]}  # fmt: skip
    return Form(values)


# --- into wishes ---


def wishes_of(form: Form) -> dict[str, Any]:
    """What desk.automations takes; it says itself what cannot be."""
    return {
        "name": form["name"],
        "description": form["description"],
        "selection": form["selection"],
        "agreement": form["agreement"],
        "jitter_low": 60 * _number(form["jitter_low"]),
        "jitter_high": 60 * _number(form["jitter_high"]),
        "only_stash": form["only_stash"] == "yes",
        "preset_id": form["preset_id"] or None,
        "rules": [_rule(form, line) for line in lines_of(form)][:_MOST],
        "defaults": dict(_defaults(form)),
    }


def _rule(form: Form, line: Line) -> dict[str, Any]:
    shared = {"kind": line.kind, "weekdays": [_number(day) for day in line.days], "is_on": line.is_on}
    match line.kind:
        case "fixed_time":
            return {**shared, "clock": line.clock[:5]}
        case "interval":
            since = form[f"rule-{line.number}-since"]
            minutes = _number(line.every) * _UNITS.get(line.unit, _DAY)
            told = {"since": float(since)} if re.fullmatch(r"\d{1,10}(\.\d+)?", since) else {}
            return {**shared, **told, "minutes": minutes, "posts": _number(line.posts)}
        case _:
            return {**shared, "posts": _number(line.posts)}


def _defaults(form: Form) -> Iterator[tuple[str, dict[str, Any]]]:
    """Those that have a value. Mature content has its level in the same field."""
    said: dict[str, Any] = {
        "description": form["default-description"] or None,
        "tags": list(tags_of(form["default-tags"])) or None,
        "galleries": [form["default-galleries"]] if form["default-galleries"] else None,
        **{
            name: {"yes": True, "no": False}.get(form[f"default-{name}"])
            for name in ("mature", "ai_made", "comments", "free_download")
        },
    }
    for name, value in said.items():
        if value is not None:
            yield name, {"value": value, "when": "always" if form[f"when-{name}"] == "always" else "if_empty"}


def field_of(field: str) -> str:
    """Where a fault of a rule or a default stands in the form."""
    if found := _RULE.match(field):
        return f"rule-{found[1]}"
    return field.replace("defaults.", "default-")


def _number(text: str) -> int:
    found = whole(text, 0, 999_999)
    return -1 if found is None else found


# --- words ---


def in_words(wishes: Wishes) -> str:
    """Its rules in a sentence."""
    told = [_words(rule) for rule in wishes.rules if rule.is_on]
    if not told:
        return "No rule is on."
    return (" and " if wishes.agreement == "all" else ", also ").join(told)


def _words(rule: RuleTold) -> str:
    days = (
        ""
        if set(rule.weekdays) == set(WEEK)
        else " on " + ", ".join(DAYS[day] for day in sorted(rule.weekdays))
    )
    match rule:
        case FixedTimeTold():
            return f"at {rule.clock}{days or ' every day'}"
        case IntervalTold():
            unit = next(name for name in ("days", "hours", "minutes") if rule.minutes % _UNITS[name] == 0)
            number = rule.minutes // _UNITS[unit]
            every = unit[:-1] if number == 1 else f"{number} {unit}"
            return f"{_posts(rule.posts)} every {every}{days}"
        case DailyQuotaTold():
            return f"{_posts(rule.posts)} a day{days}"


def _posts(number: int) -> str:
    return "one post" if number == 1 else f"{number} posts"
