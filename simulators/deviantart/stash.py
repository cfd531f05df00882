"""sta.sh: an upload becomes an item, and an item becomes a deviation, at most once."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from starlette.datastructures import UploadFile

from simulators.deviantart.answers import invalid, server_error
from simulators.deviantart.calls import Call
from simulators.deviantart.state import Deviation, Item

_TITLE = 50
_LICENSE = {
    "license_options[commercial]": ("yes", "no"),
    "license_options[modify]": ("yes", "no", "share"),
}
_LEVELS = ("strict", "moderate")
_CLASSES = frozenset({"nudity", "sexual", "gore", "language", "ideology"})
_TEXTS = ("title", "artist_comments", "original_url", "noai", "is_ai_generated", "is_dirty")
_PUBLISHED = (
    "is_mature", "mature_level", "feature", "allow_comments", "request_critique", "display_resolution", "sharing",
    "license_options[creative_commons]", "license_options[commercial]", "license_options[modify]", "allow_free_download",
    "add_watermark", "is_ai_generated", "noai",
)  # fmt: skip


async def submit(call: Call) -> dict[str, Any]:
    """`POST /stash/submit`: stores a file, or replaces the one of `itemid`."""
    upload = next((value for _, value in call.form.multi_items() if isinstance(value, UploadFile)), None)
    if upload is None:
        raise invalid("Please include content in your submission.")
    if not upload.filename:
        raise server_error()  # a part without a file name is more than it can take
    title = call.text("title") or ""
    if len(title) > _TITLE:
        raise invalid("Validation failed.", title="title must be at most 50 characters")
    content = await upload.read()
    if not content:
        raise invalid("Please include content in your submission.")
    item = _stored(call, content, upload.filename)
    return {"status": "success", "itemid": item.itemid, "stack": item.stack, "stackid": item.stackid}


def _stored(call: Call, content: bytes, filename: str) -> Item:
    state, stack = call.world.state, call.text("stack") or "Sta.sh Uploads"
    given = call.text("itemid")
    if given is not None and (int(given) if given.isdecimal() else -1) not in _own(call):
        raise invalid("Validation failed.", itemid="itemid is not one of yours")
    item = Item(
        itemid=state.new_itemid() if given is None else int(given),
        artist=call.artist,
        stack=stack,
        stackid=state.stackid_of(call.artist, stack),
        fields={name: call.text(name) for name in _TEXTS} | {"tags": call.texts("tags")},
        sha256=hashlib.sha256(content).hexdigest(),
        size=len(content),
        filename=filename,
        stored_at=call.world.clock.now(),
    )
    state.items[item.itemid] = item
    call.world.ledger.add(
        "submitted",
        artist=call.artist.username,
        itemid=item.itemid,
        title=item.fields["title"],
        sha256=item.sha256,
        at=item.stored_at,
    )
    return item


def _own(call: Call) -> dict[int, Item]:
    return {each.itemid: each for each in call.world.state.items.values() if each.artist is call.artist}


async def publish(call: Call) -> dict[str, Any]:
    """`POST /stash/publish`: the one call that must not be made twice."""
    item = _item(call)
    _check(call)
    if item.deviationid is not None:
        raise invalid("The item is published already.", code=9)
    deviation = Deviation(
        deviationid=call.world.state.new_uuid(),
        artist=call.artist,
        item=item,
        fields={name: call.text(name) for name in _PUBLISHED} | {"tags": call.texts("tags")},
        published_at=call.world.clock.now(),
        folders=_folders(call),
        shows=not (call.happens("half") or call.happens("ghost")),
    )
    if not call.happens("ghost"):
        call.world.state.deviations[deviation.deviationid] = deviation
        item.deviationid = deviation.deviationid
    call.world.ledger.add(
        "half_published" if call.happens("half") else "ghost" if call.happens("ghost") else "published",
        artist=call.artist.username,
        itemid=item.itemid,
        deviationid=deviation.deviationid,
        title=deviation.title,
        at=deviation.published_at,
        request=call.request.headers.get("x-request-id"),
    )
    return {"status": "success", "url": url_of(deviation), "deviationid": deviation.deviationid}


def _item(call: Call) -> Item:
    given = call.text("itemid") or ""
    found = call.world.state.items.get(int(given)) if given.isdecimal() else None
    if found is None or found.artist is not call.artist:
        raise invalid("The item does not exist.", code=7)
    return found


def _check(call: Call) -> None:
    if not call.is_set("agree_submission"):
        raise invalid("You must agree to the Submission Policy.", code=0)
    if not call.is_set("agree_tos"):
        raise invalid("You must agree to the Terms of Service.", code=1)
    for name, allowed in _LICENSE.items():
        if (given := call.text(name)) is not None and given not in allowed:
            raise invalid("The license is invalid.", code=4)
    resolution = call.text("display_resolution") or "0"
    if not resolution.isdecimal() or int(resolution) > 8:
        raise invalid("The display_resolution is invalid.", code=5)
    if call.is_set("is_mature") and call.text("mature_level") not in _LEVELS:
        raise invalid("Validation failed.", mature_level="mature_level is strict or moderate")
    if wrong := set(call.texts("mature_classification")) - _CLASSES:
        raise invalid("Validation failed.", mature_classification=f"unknown: {', '.join(sorted(wrong))}")


def _folders(call: Call) -> list[str]:
    known = {folder.folderid for folder in call.artist.folders}
    if wrong := [each for each in call.texts("galleryids") if each not in known]:
        raise invalid("Validation failed.", galleryids=f"not one of yours: {wrong[0]}")
    return call.texts("galleryids") or [call.artist.folders[0].folderid]


async def userdata(_: Call) -> dict[str, Any]:
    """`GET /stash/publish/userdata`."""
    return {"features": ["critique"], "agreements": ["submission_policy", "terms_of_service"]}


async def item(call: Call) -> dict[str, Any]:
    """`GET /stash/item/{itemid}`: nobody documents it any more, so it is there only by a setting."""
    if not call.world.settings.stash_lookup:
        raise invalid("Api endpoint not found.")
    given = call.request.path_params["itemid"]
    found = _own(call).get(int(given) if given.isdecimal() else -1)
    if found is None:
        raise invalid("The item does not exist.")
    return {
        "title": found.fields["title"] or "",
        "itemid": found.itemid,
        "stackid": found.stackid,
        "size": found.size,
        "creation_time": int(found.stored_at),
        "tags": found.fields["tags"],
    }


async def space(call: Call) -> dict[str, Any]:
    used = sum(each.size for each in _own(call).values())
    total = 2 * 1024**3
    return {"available_space": max(0, total - used), "total_space": total}


def url_of(deviation: Deviation) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", deviation.title.lower()).strip("-") or "untitled"
    number = int(deviation.deviationid.replace("-", "")[:8], 16)
    return f"https://www.deviantart.com/{deviation.artist.username}/art/{slug}-{number}"
