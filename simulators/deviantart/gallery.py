"""Galleries, deviations and whoami: what an artist has, and where it is found again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simulators.deviantart import drawing
from simulators.deviantart.answers import error, invalid
from simulators.deviantart.calls import Call
from simulators.deviantart.stash import url_of
from simulators.deviantart.state import Artist, Deviation, Folder


async def whoami(call: Call) -> dict[str, Any]:
    return author(call.artist)


async def placebo(_: Call) -> dict[str, Any]:
    return {"status": "success"}


async def folders(call: Call) -> dict[str, Any]:
    """`GET /gallery/folders`."""
    artist = _whose(call)
    sizes = {
        folder.folderid: sum(folder.folderid in each.folders for each in shown(call, artist))
        for folder in artist.folders
    }
    found = [
        {"folderid": each.folderid, "parent": each.parent, "name": each.name}
        | ({"size": sizes[each.folderid]} if call.is_set("calculate_size") else {})
        for each in artist.folders
    ]
    return page(call, found, most=50)


async def create_folder(call: Call) -> dict[str, Any]:
    name = call.text("folder")
    if not name or len(name) > 50:
        raise invalid("Validation failed.", folder="folder is a name of 1 to 50 characters")
    made = Folder(
        call.world.state.new_uuid(), name, call.text("parent_folderid"), call.text("description") or ""
    )
    call.artist.folders.append(made)
    return {"folderid": made.folderid, "name": made.name}


async def order_folder(call: Call) -> dict[str, Any]:
    folder, position = _folder(call, call.text("folderid")), call.text("position") or ""
    if not position.isdecimal():
        raise invalid("Validation failed.", position="position is a number")
    call.artist.folders.remove(folder)
    call.artist.folders.insert(int(position), folder)
    return {"success": True}


async def move_deviations(call: Call) -> dict[str, Any]:
    source = _folder(call, call.text("source_folderid"))
    target = _folder(call, call.text("target_folderid"))
    for each in call.texts("deviationids"):
        deviation = call.world.state.deviations.get(each)
        if deviation is None or deviation.artist is not call.artist:
            raise invalid("The deviation does not exist.")
        deviation.folders = [folder for folder in deviation.folders if folder != source.folderid]
        deviation.folders.append(target.folderid)
    return {"success": True}


async def gallery(call: Call) -> dict[str, Any]:
    """`GET /gallery/all` and `GET /gallery/{folderid}`."""
    folderid = call.request.path_params.get("folderid")
    artist = _whose(call)
    found = [each for each in shown(call, artist) if folderid is None or folderid in each.folders]
    return page(call, [described(call, each) for each in found], most=24)


async def deviation(call: Call) -> dict[str, Any]:
    found = call.world.state.deviations.get(call.request.path_params["deviationid"])
    if found is None:
        raise invalid("The deviation does not exist.")
    return described(call, found)


def shown(call: Call, artist: Artist) -> list[Deviation]:
    """The newest first."""
    own = [each for each in call.world.state.deviations.values() if each.artist is artist and each.shows]
    return sorted(own, key=lambda each: each.published_at, reverse=True)


def described(call: Call, each: Deviation) -> dict[str, Any]:
    address = url_of(each)
    picture = {"src": f"{address}/content.png", "width": 1200, "height": 800, "transparency": False}
    return {
        "deviationid": each.deviationid,
        "printid": None,
        "url": address,
        "title": each.title,
        "is_favourited": False,
        "is_deleted": False,
        "is_published": each.shows,
        "author": author(each.artist),
        "stats": {"comments": 0, "favourites": 0},
        "published_time": str(int(each.published_at)),
        "allows_comments": True,
        "content": {**picture, "filesize": each.item.size},
        "thumbs": [
            {"src": drawing.address(call.request, address), "width": drawing.WIDTH, "height": drawing.HEIGHT}
        ],
        "is_mature": each.fields.get("is_mature") in ("1", "true"),
        "is_downloadable": each.fields.get("allow_free_download") in ("1", "true"),
    }


def author(artist: Artist) -> dict[str, Any]:
    return {
        "userid": artist.userid,
        "username": artist.username,
        "usericon": "https://a.deviantart.net/avatars/default.gif",
        "type": "regular",
    }


def page(call: Call, found: Sequence[dict[str, Any]], *, most: int) -> dict[str, Any]:
    offset, limit = (_number(call, name, usual) for name, usual in (("offset", 0), ("limit", 10)))
    if not 1 <= limit <= most:
        raise invalid("Validation failed.", limit=f"limit is from 1 to {most}")
    has_more = offset + limit < len(found)
    return {
        "has_more": has_more,
        "next_offset": offset + limit if has_more else None,
        "results": list(found[offset : offset + limit]),
    }


def _number(call: Call, name: str, usual: int) -> int:
    given = call.text(name)
    if given is None:
        return usual
    if not given.isdecimal():
        raise error(400, "invalid_request", "Validation failed.", details={name: f"{name} is a number"})
    return int(given)


def _whose(call: Call) -> Artist:
    name = call.text("username")
    if name is None:
        return call.artist
    if name not in call.world.state.artists:
        raise invalid("The user does not exist.")
    return call.world.state.artists[name]


def _folder(call: Call, folderid: str | None) -> Folder:
    found = next((each for each in call.artist.folders if each.folderid == folderid), None)
    if found is None:
        raise invalid("The folder does not exist.")
    return found
