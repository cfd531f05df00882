"""Galleries and browsing: what DeviantArt shows, with its age; a refresh that is asked for, a few times a minute; folders made, ordered and filled."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Generic, TypeVar, cast

from holdfast import Aged
from holdfast.errors import BreakerOpen, HoldfastError, RateLimited
from holdfast.errors import Refused as RefusedByGuard
from holdfast.guards import Limiter
from publisher.core import hf
from publisher.desk.checks import of_name
from publisher.desk.refusals import Fault, Invalid, TooLate, TooSoon
from publisher.domain.posts import tag
from publisher.outside.errors import AppLimited, DeviantArtError, Refused, UserLimited
from publisher.outside.records import Folder, Page, Topic
from publisher.work import looking
from publisher.work.access import Busy, NeedsLogin

NAME_MOST = 50  # characters of a folder's name, by DeviantArt
DEVIATIONS_MOST = 24  # that are moved at a time
OFFSET_MOST = 50_000
BEGIN_LEAST, BEGIN_MOST = 2, 50  # characters of a tag that is completed
REFRESHES, A_MINUTE = 3, 60.0  # that an artist may ask for at once; then one in each of these seconds
_AGAIN = 30.0  # seconds after which a page that could not be had may be asked for again
# Not DeviantArt's limit, but ours of what a person may cause.
refreshing = hf.guard(
    "gallery-refresh", limiter=Limiter(rate=1 / A_MINUTE, burst=REFRESHES, per="artist:{artist}", wait=1.0)
)
T = TypeVar("T")


@dataclass(frozen=True)
class Shown(Generic[T]):
    """`age` is in seconds. `limited_until`: DeviantArt answers nothing until then, so this is what we had."""

    value: T
    age: float
    is_fresh: bool
    limited_until: float | None = None


# --- looking ---


async def folders(artist_id: str, *, refresh: bool = False) -> Shown[list[Folder]]:
    return await _shown(artist_id, looking.folders, (artist_id,), refresh=refresh)


async def contents(
    artist_id: str, folder: str = "all", offset: int = 0, *, refresh: bool = False
) -> Shown[Page]:
    """One page of a folder, the newest first."""
    _check_id("folder", folder)
    _check_offset(offset)
    return await _shown(artist_id, looking.contents, (artist_id, folder, offset), refresh=refresh)


async def home(artist_id: str, offset: int = 0, *, refresh: bool = False) -> Shown[Page]:
    """What DeviantArt recommends to this artist."""
    _check_offset(offset)
    return await _shown(artist_id, looking.home, (artist_id, offset), refresh=refresh)


async def daily(artist_id: str, day: str, *, refresh: bool = False) -> Shown[Page]:
    """The daily deviations of a day such as 2026-11-19."""
    try:
        day = date.fromisoformat(day).isoformat()
    except ValueError:
        raise Invalid([Fault("day", "A day is written as 2026-11-19.")]) from None
    return await _browsed(artist_id, "dailydeviations", day, 0, refresh=refresh)


async def tagged(artist_id: str, text: str, offset: int = 0, *, refresh: bool = False) -> Shown[Page]:
    _check_offset(offset)
    if not (found := tag(text)) or len(found) > BEGIN_MOST:
        raise Invalid([Fault("tag", f"A tag has 1 to {BEGIN_MOST} letters, digits or underscores.")])
    return await _browsed(artist_id, "tags", found.lower(), offset, refresh=refresh)


async def on_topic(artist_id: str, topic: str, offset: int = 0, *, refresh: bool = False) -> Shown[Page]:
    """By its canonical name, such as digital-art."""
    _check_offset(offset)
    _check_id("topic", topic)
    return await _browsed(artist_id, "topic", topic, offset, refresh=refresh)


async def topics(artist_id: str) -> Shown[list[Topic]]:
    return await _shown(artist_id, looking.topics, (artist_id,))


async def completions(artist_id: str, begin: str) -> Shown[list[str]]:
    """Tags that begin so; from two characters on."""
    begin = tag(begin).lower()
    if not BEGIN_LEAST <= len(begin) <= BEGIN_MOST:
        return Shown([], 0.0, is_fresh=True)
    return await _shown(artist_id, looking.tag_names, (artist_id, begin))


async def _browsed(artist_id: str, kind: str, about: str, offset: int, *, refresh: bool) -> Shown[Page]:
    return await _shown(artist_id, looking.browse, (artist_id, kind, about, offset), refresh=refresh)


async def _shown(artist_id: str, kept: Any, values: Sequence[object], *, refresh: bool = False) -> Shown[Any]:
    """An old copy is better than none: a refresh that DeviantArt refuses leaves it where it is."""
    if refresh:
        await _may_refresh(artist_id)
        try:
            return Shown(await kept.refresh(*values), 0.0, is_fresh=True)
        except _TROUBLE:
            pass  # what there is, with its age
    found = cast("Aged[Any]", await _asked(artist_id, lambda: kept.aged(*values)))
    until = None if found.is_fresh else await _limited_until(artist_id)
    return Shown(found.value, found.age, found.is_fresh, until)


async def _may_refresh(artist_id: str) -> None:
    try:
        async with refreshing.keyed(artist_id):
            pass
    except RateLimited as refusal:
        seconds = refusal.retry_after or A_MINUTE
        raise TooSoon(f"You have just refreshed. Again in {seconds:.0f} s.", seconds) from None


# --- folders ---


async def create_folder(artist_id: str, name: str) -> Folder:
    """At DeviantArt, at once."""
    if faults := list(of_name("name", name, most=NAME_MOST)):
        raise Invalid(faults)
    name = name.strip()
    made = await _changed(artist_id, lambda site, token: site.create_folder(token, name))
    return cast("Folder", made)


async def order_folder(artist_id: str, folder: str, position: int) -> None:
    """To this place among the folders; 0 is the first."""
    _check_id("folder", folder)
    if not 0 <= position <= OFFSET_MOST:
        raise Invalid([Fault("position", "A place among the folders is 0 for the first, 1 for the second.")])
    await _changed(artist_id, lambda site, token: site.order_folder(token, folder, position))


async def move(artist_id: str, source: str, target: str, deviations: Sequence[str]) -> None:
    """Deviations from one folder to another."""
    _check_id("source", source)
    _check_id("target", target)
    for each in deviations:
        _check_id("deviations", each)
    if not 1 <= len(deviations) <= DEVIATIONS_MOST:
        raise Invalid([Fault("deviations", f"Choose 1 to {DEVIATIONS_MOST} deviations.")])
    if source == target:
        raise Invalid([Fault("target", "They are in this folder already. Choose another one.")])
    await _changed(
        artist_id, lambda site, token: site.move_deviations(token, source, target, list(deviations))
    )


async def _changed(artist_id: str, call: Callable[[Any, str], Awaitable[T]]) -> T:
    """What was shown of this artist's gallery is out of date then, also when nobody knows whether it was done."""
    try:
        return await _asked(artist_id, lambda: looking.ask(artist_id, call))
    finally:
        await hf.cache.invalidate_tags(f"gallery:{artist_id}")


# --- refusals ---

_TROUBLE = (DeviantArtError, HoldfastError, NeedsLogin, Busy)


async def _asked(artist_id: str, ask: Callable[[], Awaitable[T]]) -> T:
    """What goes wrong, for a person."""
    try:
        return await ask()
    except NeedsLogin as error:
        raise TooLate(str(error), "needs_login") from None
    except Refused as error:
        raise Invalid([Fault("", f"{error.reason} {error.advice}".strip())]) from None
    except BreakerOpen as error:
        raise TooSoon("DeviantArt has trouble at the moment.", error.retry_after or _AGAIN) from None
    except (RefusedByGuard, UserLimited, AppLimited) as error:
        until = await _limited_until(artist_id)
        wait = (until - await hf.now()) if until is not None else getattr(error, "retry_after", None)
        raise TooSoon("DeviantArt limits us at the moment.", max(1.0, wait or _AGAIN)) from None
    except _TROUBLE:
        raise TooSoon("DeviantArt gives no clear answer at the moment.", _AGAIN) from None


async def _limited_until(artist_id: str) -> float | None:
    """As the guard of the whole fleet knows it. None: DeviantArt may be asked."""
    return (await hf.guards.look("deviantart", key=f"artist:{artist_id}")).paused_until


def _check_id(field: str, text: str) -> None:
    """What goes into an address: it cannot lead elsewhere."""
    if not (text.isascii() and text.replace("-", "").replace("_", "").isalnum() and len(text) <= 64):
        raise Invalid([Fault(field, "There is no such thing at DeviantArt.")])


def _check_offset(offset: int) -> None:
    if not 0 <= offset <= OFFSET_MOST:
        raise Invalid([Fault("offset", f"A page begins at 0 to {OFFSET_MOST:,}.")])
