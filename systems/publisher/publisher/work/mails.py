"""All mails to artists: each is decided on in the transaction of its cause, once for it, and only when it is wanted."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import msgspec

from holdfast import Tx
from holdfast.errors import UsageError
from publisher.core import hf, settings
from publisher.work.writing import counted, moment, one_line

# Which mails there are, for the page on which they are chosen. What an artist has said nothing about is sent.
KINDS = {
    "login": "Your login at DeviantArt ends, or has ended.",
    "failed": "A post has failed.",
    "unknown": "Nobody knows whether a post was published.",
    "automation": "An automation has no drafts left.",
}
_IN_STATE = "SELECT count(*), min(due_at) FROM posts WHERE artist_id = $1 AND state = 'scheduled'"


@dataclass(frozen=True)
class _Reader:
    """To whom it is sent."""

    artist_id: str
    name: str
    mail: str
    zone: str


@dataclass(frozen=True)
class _Letter:
    """`link` is where something can be done, `todo` what."""

    subject: str
    lines: tuple[str, ...]
    todo: str
    path: str

    @property
    def link(self) -> str:
        return f"{settings.public_url.rstrip('/')}{self.path}"

    @property
    def text(self) -> str:
        return "\n\n".join((*self.lines, f"{self.todo}:\n{self.link}")) + "\n"

    @property
    def html(self) -> str:
        lines = "".join(f"<p>{escape(each)}</p>" for each in self.lines)
        return f'{lines}<p><a href="{escape(self.link)}">{escape(self.todo)}</a></p>'


# --- logins ---


async def login_wanted(artist_id: str, version: int, tx: Tx) -> bool:
    """The login is over: what is held, since when, and that it goes on after a new one."""
    reader = await _reader(artist_id, "login", tx)
    if reader is None:
        return False
    number, first = await _held(artist_id, tx)
    subject = "Log in at DeviantArt again: nothing is published until then"
    lines = [f"DeviantArt does not accept our login for {reader.name} any more."]
    if number:
        subject = f"Log in at DeviantArt again: {counted(number, 'post')} held until then"
        when = "" if first is None else f" The first is due on {moment(first, reader.zone)}."
        lines.append(f"{counted(number, 'scheduled post')} held.{when}")
    lines.append("Nothing is lost: after your login they go on by themselves, the oldest first.")
    return await _send(reader, f"login:{version}", _Letter(subject, tuple(lines), "Log in", "/login"), tx)


async def login_ends(artist_id: str, version: int, until: float, tx: Tx, *, is_urgent: bool) -> bool:
    """It could not be renewed, and ends soon: by when a login is needed."""
    reader = await _reader(artist_id, "login", tx)
    if reader is None:
        return False
    when = moment(until, reader.zone)
    number, _ = await _held(artist_id, tx)
    begin = "Last day: log in" if is_urgent else "Log in"
    stops = (
        f"From then on {counted(number, 'scheduled post')} held."
        if number
        else "From then on nothing is published."
    )
    lines = (
        f"Our login for {reader.name} at DeviantArt ends on {when}. We could not renew it by ourselves so far, and go on trying.",
        f"{stops} A new login by you renews it at once.",
    )
    letter = _Letter(f"{begin} at DeviantArt by {when}", lines, "Log in", "/login")
    return await _send(reader, f"{'urgent' if is_urgent else 'warned'}:{version}", letter, tx)


# --- posts ---


async def post_failed(artist_id: str, post_id: str, tx: Tx) -> bool:
    reader = await _reader(artist_id, "failed", tx)
    if reader is None:
        return False
    title, reason, advice, version = await _post(post_id, tx)
    lines = tuple(
        filter(
            None,
            (f"“{title}” was not published. {reason}".strip(), advice, "It is not tried again by itself."),
        )
    )
    letter = _Letter(f"Not published: {title}", lines, "See what can be done", f"/posts/{post_id}")
    return await _send(reader, f"failed:{post_id}:{version}", letter, tx)


async def post_unknown(artist_id: str, post_id: str, tx: Tx) -> bool:
    reader = await _reader(artist_id, "unknown", tx)
    if reader is None:
        return False
    title, _, _, version = await _post(post_id, tx)
    lines = (
        f"We sent “{title}” to DeviantArt and got no clear answer. It may be in your gallery; we have not sent it again.",
        "We look again by ourselves. If you know it already, say so: it is there, or it is not.",
    )
    letter = _Letter(f"Published or not? {title}", lines, "Look and decide", f"/posts/{post_id}")
    return await _send(reader, f"unknown:{post_id}:{version}", letter, tx)


# --- automations ---


async def pool_empty(artist_id: str, automation_id: str, nominal: float, words: str, tx: Tx) -> bool:
    """Told when drafts run out, not each time that there are none."""
    reader = await _reader(artist_id, "automation", tx)
    if reader is None:
        return False
    [(name,)] = await tx.fetch("SELECT name FROM automations WHERE id = $1", automation_id)
    name, when = one_line(str(name)), moment(nominal, reader.zone)
    lines = (
        f"“{name}” did not have the drafts that it needs for {when}. {words}",
        "It goes on by itself as soon as drafts are complete. You are told once.",
    )
    letter = _Letter(
        f"No drafts for “{name}” on {when}", lines, "See the automation", f"/automations/{automation_id}"
    )
    return await _send(reader, f"empty:{automation_id}:{nominal:.0f}", letter, tx)


# --- one mail ---


async def _reader(artist_id: str, kind: str, tx: Tx) -> _Reader | None:
    """None: there is no address, this kind of mail is not wanted, or the account is being deleted."""
    rows = await tx.fetch(
        "SELECT username, mail, zone, notices, left_at FROM artists WHERE id = $1", artist_id
    )
    if not rows or not rows[0][1] or rows[0][4] is not None:
        return None
    name, mail, zone, notices, _ = rows[0]
    wanted: dict[str, bool] = msgspec.json.decode(notices)
    return _Reader(artist_id, name, mail, zone) if wanted.get(kind, True) else None


async def _send(reader: _Reader, cause: str, letter: _Letter, tx: Tx) -> bool:
    """False: it was sent for this cause before, or the address is none."""
    is_new = await tx.execute(
        "INSERT INTO notices (artist_id, cause, at) VALUES ($1, $2, $3) ON CONFLICT (artist_id, cause) DO NOTHING",
        reader.artist_id,
        cause,
        await hf.now(),
    )
    if not is_new:
        return False
    try:
        await hf.mail.send(
            to=reader.mail, subject=letter.subject, text=letter.text, html=letter.html, about=cause, tx=tx
        )
    except UsageError:  # no address that mail can go to: what happened counts all the same
        return False
    return True


async def _held(artist_id: str, tx: Tx) -> tuple[int, float | None]:
    [(number, first)] = await tx.fetch(_IN_STATE, artist_id)
    return int(number), first


async def _post(post_id: str, tx: Tx) -> tuple[str, str, str, int]:
    [(title, reason, advice, version)] = await tx.fetch(
        "SELECT title, reason, advice, version FROM posts WHERE id = $1", post_id
    )
    return one_line(str(title)) or "a post without a title", str(reason), str(advice), int(version)
