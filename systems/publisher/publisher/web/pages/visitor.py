"""Who looks at a page: the artist, the state of the login at DeviantArt, and the counts in the bar."""

from __future__ import annotations

from dataclasses import dataclass
from zoneinfo import ZoneInfo

from sqlalchemy import func, select

from publisher.core import hf
from publisher.domain.states import State
from publisher.tables import Artist, Login, Post

DAY = 86_400.0


@dataclass(frozen=True)
class Visitor:
    id: str
    username: str
    mail: str
    zone: str
    jitter: int
    notices: str
    is_on: bool
    post_count: int
    login: str  # active, needs_login, disconnected
    login_until: float
    counts: dict[str, int]  # posts by state
    now: float

    @property
    def tz(self) -> ZoneInfo:
        return ZoneInfo(self.zone)

    @property
    def initials(self) -> str:
        return self.username[:2].upper()

    @property
    def is_connected(self) -> bool:
        return self.login == "active"

    @property
    def is_held(self) -> bool:
        """What is scheduled waits: publishing is off, or a login is wanted."""
        return not self.is_on or not self.is_connected

    @property
    def login_days(self) -> int:
        return max(0, int((self.login_until - self.now) // DAY))

    def count(self, *states: str) -> int:
        return sum(self.counts.get(state, 0) for state in states)

    @property
    def has_posts(self) -> bool:
        return bool(self.counts)


async def visitor_of(artist_id: str) -> Visitor | None:
    """None for an account that is gone, or is being deleted."""
    now = await hf.now()
    async with hf.session() as session:
        artist = await session.get(Artist, artist_id)
        if artist is None or artist.left_at is not None:
            return None
        login = await session.get(Login, artist_id)
        counted = await session.execute(
            select(Post.state, func.count()).where(Post.artist_id == artist_id).group_by(Post.state)
        )
        counts = {str(State(state)): int(number) for state, number in counted.all()}
        return Visitor(
            id=artist.id, username=artist.username, mail=artist.mail or "", zone=artist.zone, jitter=artist.jitter,
            notices=artist.notices, is_on=artist.is_on, post_count=artist.post_count,
            login=login.state if login else "disconnected", login_until=login.refresh_until if login else 0.0,
            counts=counts, now=now,
        )  # fmt: skip
