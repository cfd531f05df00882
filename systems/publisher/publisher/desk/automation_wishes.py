"""What an artist wishes of an automation, checked field by field before anything is stored."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from publisher.desk.checks import of_name, of_number, of_text
from publisher.desk.refusals import Fault, Invalid
from publisher.domain.choosing import JITTER_OF_RULES, Order
from publisher.domain.defaults import FIELDS
from publisher.domain.posts import DESCRIPTION_MOST, RESOLUTIONS, TAGS_MOST, tags
from publisher.domain.rules import Agreement
from publisher.recipes import TYPES, WEEK, DailyQuotaTold, DefaultTold, FixedTimeTold, IntervalTold, RuleTold

RULES_MOST = 20
GALLERIES_MOST = 10
_COLOUR = re.compile(r"#[0-9a-f]{6}")
_CLOCK = re.compile(r"([01]\d|2[0-3]):[0-5]\d")
_PLACE = re.compile(r" - at `\$(.*?)`")


class Wishes(msgspec.Struct, frozen=True):
    """As the API and the form say them."""

    name: str = "New automation"
    description: str = ""
    colour: str = ""
    selection: str = "fifo"
    agreement: str = "any"
    jitter_low: int = 0
    jitter_high: int = 300
    only_stash: bool = False
    preset_id: str | None = None
    rules: tuple[RuleTold, ...] = ()
    defaults: dict[str, DefaultTold] = {}


_TYPES: dict[str, Any] = {each.name: each.type for each in msgspec.structs.fields(Wishes)}


def wishes_of(told: Mapping[str, Any], before: Wishes | None = None) -> Wishes:
    """What is said, over what was. Invalid, with a fault for each field that cannot be so."""
    made, faults = before or Wishes(), []
    for name, value in told.items():
        if name not in _TYPES:
            faults.append(Fault(name, f"An automation has {', '.join(_TYPES)}; not {name}."))
            continue
        try:
            made = msgspec.structs.replace(made, **{name: msgspec.convert(value, _TYPES[name])})
        except msgspec.ValidationError as error:
            faults.append(_misread(name, str(error)))
    if not faults:
        faults += [*_of_words(made), *_of_rules(made), *_of_defaults(made)]
    if faults:
        raise Invalid(faults)
    return msgspec.structs.replace(made, name=made.name.strip(), defaults=_tidied(made.defaults))


def _misread(name: str, error: str) -> Fault:
    """`rules[0].minutes` is the field of a fault in the first rule."""
    place = _PLACE.search(error)
    words = _PLACE.sub("", error).replace("`", "")
    return Fault(f"{name}{place[1] if place else ''}", f"{words}.")


def _of_words(made: Wishes) -> Iterator[Fault]:
    yield from of_name("name", made.name)
    yield from of_text("description", made.description, most=2_000)
    if made.colour and not _COLOUR.fullmatch(made.colour):
        yield Fault("colour", "A colour is written as #a12c6c.")
    for field, value, kinds in (
        ("selection", made.selection, Order),
        ("agreement", made.agreement, Agreement),
    ):
        if value not in list(kinds):
            yield Fault(field, f"It is one of {', '.join(kinds)}.")
    for field, seconds in (("jitter_low", made.jitter_low), ("jitter_high", made.jitter_high)):
        yield from of_number(field, seconds, 0, JITTER_OF_RULES, "A delay in seconds")
    if made.jitter_low > made.jitter_high:
        yield Fault("jitter_high", f"The longest delay is no shorter than the shortest, {made.jitter_low} s.")


# --- rules ---


def _of_rules(made: Wishes) -> Iterator[Fault]:
    if len(made.rules) > RULES_MOST:
        yield Fault("rules", f"An automation has at most {RULES_MOST} rules; these are {len(made.rules)}.")
    for number, rule in enumerate(made.rules):
        yield from _of_rule(f"rules[{number}]", rule)


def _of_rule(field: str, rule: RuleTold) -> Iterator[Fault]:
    if not rule.weekdays:
        yield Fault(f"{field}.weekdays", "Choose at least one day.")
    if not set(rule.weekdays) <= set(WEEK):
        yield Fault(f"{field}.weekdays", "Days are 0 (Monday) to 6 (Sunday).")
    match rule:
        case FixedTimeTold():
            if not _CLOCK.fullmatch(rule.clock):
                yield Fault(f"{field}.clock", "A time is written as 09:00, from 00:00 to 23:59.")
        case IntervalTold():
            yield from of_number(f"{field}.minutes", rule.minutes, 5, 10_080, "An interval in minutes")
            yield from of_number(f"{field}.posts", rule.posts, 1, 100, "A number of posts")
            if rule.since is not None:
                yield from of_number(
                    f"{field}.since", int(rule.since), 0, 4_102_444_800, "A moment in seconds"
                )
        case DailyQuotaTold():
            yield from of_number(f"{field}.posts", rule.posts, 1, 100, "A number of posts")


# --- defaults ---


def _of_defaults(made: Wishes) -> Iterator[Fault]:
    for name, default in made.defaults.items():
        field = f"defaults.{name}"
        if name not in FIELDS:
            yield Fault(field, f"There are defaults for {', '.join(FIELDS)}; not for {name}.")
        elif default.value is None:
            yield Fault(field, "A default has a value. Without one, leave it out.")
        else:
            try:
                value = msgspec.convert(default.value, TYPES[name])
            except msgspec.ValidationError as error:
                yield _misread(field, str(error))
            else:
                yield from _of_value(name, field, value)


def _of_value(name: str, field: str, value: Any) -> Iterator[Fault]:
    match name:
        case "description":
            yield from of_text(field, value, most=DESCRIPTION_MOST)
        case "tags" if len(tags(list(value))) > TAGS_MOST:
            yield Fault(field, f"There are {len(value)} tags; DeviantArt takes {TAGS_MOST}.")
        case "galleries":
            if len(value) > GALLERIES_MOST:
                yield Fault(field, f"Choose at most {GALLERIES_MOST} folders; these are {len(value)}.")
            for each in value:
                yield from of_name(field, each)
        case "resolution" if value not in RESOLUTIONS:
            yield Fault(field, "A display size is 0 (the original) to 8 (1920 px).")
        case "license" if value.modify not in ("yes", "no", "share"):
            yield Fault(f"{field}.modify", "It is yes, no or share.")


def _tidied(told: Mapping[str, DefaultTold]) -> dict[str, DefaultTold]:
    """Tags as DeviantArt takes them."""
    return {
        name: DefaultTold(list(tags(list(each.value))), each.when) if name == "tags" else each
        for name, each in told.items()
    }
