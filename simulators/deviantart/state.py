"""What the simulated DeviantArt knows: artists, tokens, items in sta.sh, galleries and deviations."""

from __future__ import annotations

import hashlib
import random
import secrets
import uuid
from dataclasses import dataclass, field
from typing import Any

ARTISTS = ("ada-arc", "bo-linnet", "cleo-vane", "dara-moth", "eli-thorn", "fen-gale")
CLIENT_ID, CLIENT_SECRET = "4711", "simulator-secret"


@dataclass
class Folder:
    folderid: str
    name: str
    parent: str | None = None
    description: str = ""


@dataclass
class Artist:
    userid: str
    username: str
    folders: list[Folder] = field(default_factory=list)


@dataclass
class Grant:
    """What a user has allowed a client: one pair of tokens at a time."""

    artist: Artist
    scope: str
    access: str
    access_until: float
    refresh: str | None
    refresh_until: float
    is_dead: bool = False


@dataclass
class Code:
    artist: Artist
    redirect_uri: str
    scope: str
    challenge: str | None
    until: float


@dataclass
class Item:
    """One upload in sta.sh."""

    itemid: int
    artist: Artist
    stack: str
    stackid: int
    fields: dict[str, Any]
    sha256: str
    size: int
    filename: str
    stored_at: float
    deviationid: str | None = None


@dataclass
class Deviation:
    deviationid: str
    artist: Artist
    item: Item
    fields: dict[str, Any]
    published_at: float
    folders: list[str]
    shows: bool = True  # a half published one, or one that never appears, does not

    @property
    def title(self) -> str:
        return str(self.item.fields.get("title") or "Untitled")


class State:
    """Made anew with each simulator; the same seed makes the same artists and galleries."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.artists = {name: self.artist(name) for name in ARTISTS}
        self.codes: dict[str, Code] = {}
        self.grants: dict[str, Grant] = {}  # by access and by refresh token, also old ones
        self.items: dict[int, Item] = {}
        self.deviations: dict[str, Deviation] = {}

    def artist(self, name: str) -> Artist:
        made = Artist(self.new_uuid(), name)
        made.folders = [Folder(self.new_uuid(), folder) for folder in ("Featured", "Sketches", "Commissions")]
        return made

    def known(self, name: str) -> Artist:
        """An artist of this name, made when there is none: a load test has hundreds."""
        if name not in self.artists:
            self.artists[name] = self.artist(name)
        return self.artists[name]

    def new_uuid(self) -> str:
        return str(uuid.UUID(int=self.chance.getrandbits(128), version=4)).upper()

    def new_itemid(self) -> int:
        """Larger than a double can tell from its neighbour."""
        return (1 << 53) + self.chance.getrandbits(60)

    def stackid_of(self, artist: Artist, stack: str) -> int:
        return (1 << 53) + int.from_bytes(
            hashlib.sha256(f"{artist.userid}/{stack}".encode()).digest()[:7], "big"
        )


def new_token() -> str:
    return secrets.token_hex(20)
