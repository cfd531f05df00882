"""People: register with a confirmed address, log in, choose a new password, change the address. Passwords are argon2."""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
from dataclasses import dataclass

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from admissions.core import hf, settings
from admissions.desk.audit import looked
from admissions.desk.inside import inside
from admissions.desk.refusals import Invalid, NotHere, Refusal
from admissions.domain.forms import Wrong, is_name
from admissions.domain.roles import Role
from admissions.ids import new_id
from admissions.work import letters
from holdfast import Tx
from holdfast.errors import UniqueViolation

PASSWORD_LEAST, PASSWORD_MOST = 10, 200
# What a mail can be sent to; a domain in other letters is written as xn--….
_WORD, _LABEL = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+", r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_MAIL = re.compile(rf"(?=[^@]{{1,64}}@){_WORD}(?:\.{_WORD})*@{_LABEL}(?:\.{_LABEL})+")
_MAIL_MOST = 254
_LASTS = {"confirm": 86_400.0, "reset": 3_600.0, "change": 86_400.0}
_hasher = PasswordHasher()
_NOBODY = _hasher.hash("of nobody")  # so that an unknown address takes as long as a known one


@dataclass(frozen=True)
class Person:
    id: str
    mail: str
    name: str
    role: Role
    language: str
    is_confirmed: bool
    is_blocked: bool


class NotLoggedIn(Refusal):
    """Address and password do not fit. Nobody is told which."""

    status = 401

    def __init__(self, key: str = "login_wrong") -> None:
        super().__init__(key)


def is_mail(text: str) -> bool:
    return len(text) <= _MAIL_MOST and _MAIL.fullmatch(text.strip()) is not None


def folded(mail: str) -> str:
    return mail.strip().lower()


async def get(person_id: str, *, tx: Tx | None = None) -> Person:
    async with inside(tx) as own:
        return await _person(own, "id", person_id)


async def _person(tx: Tx, column: str, value: str) -> Person:
    rows = await tx.fetch(
        f"SELECT id, mail, name, role, language, confirmed_at, blocked_at FROM people WHERE {column} = $1",  # noqa: S608  our own names
        value,
    )
    if not rows:
        raise NotHere
    [(found, mail, name, role, language, confirmed_at, blocked_at)] = rows
    return Person(found, mail, name, Role(role), language, confirmed_at is not None, blocked_at is not None)


# --- in ---


async def register(
    mail: str, password: str, name: str, language: str = "en", *, tx: Tx | None = None
) -> None:
    """A link comes by mail. An address that has an account gets one too, and the page says the same: nobody learns who is here."""
    _check(mail, password, name)
    secured = await hashed(password)
    async with inside(tx) as own:
        rows = await own.fetch("SELECT id, confirmed_at FROM people WHERE mail = $1", folded(mail))
        if rows:
            kind = "confirm" if rows[0][1] is None else "reset"
            await _send_link(own, rows[0][0], kind)
            return
        person_id = new_id()
        made = await own.execute(
            "INSERT INTO people (id, mail, password, name, role, language, made_at) VALUES ($1, $2, $3, $4, $5, $6, $7) "
            "ON CONFLICT (mail) DO NOTHING",
            person_id, folded(mail), secured, name.strip(), str(Role.APPLICANT), language, await hf.now(),
        )  # fmt: skip
        if not made:  # sent twice at once: the other one sends the link
            return
        await _send_link(own, person_id, "confirm")
        await looked(own, person_id, "person.registered", person_id)


async def log_in(mail: str, password: str) -> Person:
    if not is_mail(mail):
        raise NotLoggedIn
    async with hf.transaction() as tx:
        rows = await tx.fetch("SELECT id, password FROM people WHERE mail = $1", folded(mail))
    is_right = await asyncio.to_thread(fits, rows[0][1] if rows else _NOBODY, password)
    if not rows or not is_right:
        raise NotLoggedIn
    found = await get(rows[0][0])
    if found.is_blocked:
        raise NotLoggedIn
    if not found.is_confirmed:
        async with hf.transaction() as tx:
            await _send_link(tx, found.id, "confirm")
        raise NotLoggedIn("login_unconfirmed")
    return found


async def hashed(password: str, field: str = "password") -> str:
    """In a thread: argon2 is slow on purpose."""
    _check_password(password, field)
    return await asyncio.to_thread(_hasher.hash, password)


def fits(kept: str, password: str) -> bool:
    try:
        return _hasher.verify(kept, password[:PASSWORD_MOST])
    except (VerificationError, InvalidHashError):
        return False


# --- links by mail ---


async def ask_for_reset(mail: str) -> None:
    """The page says the same whether there is such an address or not."""
    if not is_mail(mail):
        return
    async with hf.transaction() as tx:
        rows = await tx.fetch("SELECT id FROM people WHERE mail = $1 AND blocked_at IS NULL", folded(mail))
        if rows:
            await _send_link(tx, rows[0][0], "reset")


async def ask_for_change(person_id: str, mail: str, *, tx: Tx | None = None) -> None:
    """A new address counts when its own link was opened."""
    if not is_mail(mail):
        raise Invalid([Wrong("mail", "mail_wrong", (mail,))])
    async with inside(tx) as own:
        await own.execute("UPDATE people SET new_mail = $1 WHERE id = $2", folded(mail), person_id)
        await _send_link(own, person_id, "change", recipient=folded(mail))


async def confirm(secret: str) -> Person:
    """A link of kind confirm or change was opened."""
    async with hf.transaction() as tx:
        person_id, kind = await _use(tx, secret, ("confirm", "change"))
        now = await hf.now()
        if kind == "change":
            taken = await tx.fetch(
                "SELECT 1 FROM people WHERE mail = (SELECT new_mail FROM people WHERE id = $1) AND id <> $1",
                person_id,
            )
            if taken:
                raise Refusal("link_over")
            try:
                await tx.execute(
                    "UPDATE people SET mail = new_mail, new_mail = NULL WHERE id = $1 AND new_mail IS NOT NULL",
                    person_id,
                )
            except UniqueViolation:  # registered by another meanwhile
                raise Refusal("link_over") from None
        await tx.execute(
            "UPDATE people SET confirmed_at = coalesce(confirmed_at, $1) WHERE id = $2", now, person_id
        )
        await looked(tx, person_id, f"person.{kind}", person_id)
        return await _person(tx, "id", person_id)


async def reset(secret: str, password: str) -> Person:
    """Whoever had this account open is logged out everywhere."""
    secured = await hashed(password)
    async with hf.transaction() as tx:
        person_id, _ = await _use(tx, secret, ("reset",))
        await tx.execute(
            "UPDATE people SET password = $1, confirmed_at = coalesce(confirmed_at, $2) WHERE id = $3",
            secured,
            await hf.now(),
            person_id,
        )
        await hf.logins.end(person_id, tx=tx)
        await looked(tx, person_id, "person.password", person_id)
        return await _person(tx, "id", person_id)


async def _send_link(tx: Tx, person_id: str, kind: str, *, recipient: str | None = None) -> None:
    secret = secrets.token_urlsafe(32)
    await tx.execute(
        "INSERT INTO tickets (sha256, person_id, kind, until) VALUES ($1, $2, $3, $4)",
        _digest(secret),
        person_id,
        kind,
        await hf.now() + _LASTS[kind],
    )
    page = "reset" if kind == "reset" else "confirm"
    url = f"{settings.public_url.rstrip('/')}/{page}?key={secret}"
    await letters.link(tx, person_id, kind, url, recipient=recipient)


async def _use(tx: Tx, secret: str, kinds: tuple[str, ...]) -> tuple[str, str]:
    """Once, and in its time."""
    now = await hf.now()
    changed = await tx.execute(
        "UPDATE tickets SET used_at = $1 WHERE sha256 = $2 AND used_at IS NULL AND until > $1",
        now,
        _digest(secret),
    )
    rows = await tx.fetch("SELECT person_id, kind FROM tickets WHERE sha256 = $1", _digest(secret))
    if not changed or not rows or rows[0][1] not in kinds:
        raise Refusal("link_over")
    return str(rows[0][0]), str(rows[0][1])


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


# --- what is theirs ---


async def set_language(person_id: str, language: str, *, tx: Tx | None = None) -> None:
    if language not in ("en", "vi"):
        raise Invalid([Wrong("language", "language_wrong", (language,))])
    async with inside(tx) as own:
        await own.execute("UPDATE people SET language = $1 WHERE id = $2", language, person_id)


async def set_role(by: str, person_id: str, role: Role, *, tx: Tx | None = None) -> None:
    """The last administrator stays one."""
    async with inside(tx) as own:
        # Two who take it from each other at once come one after the other.
        await own.execute("UPDATE people SET role = role WHERE role = 'administrator'")
        if role is not Role.ADMINISTRATOR:
            others = await own.fetch(
                "SELECT 1 FROM people WHERE role = 'administrator' AND blocked_at IS NULL AND id <> $1 LIMIT 1",
                person_id,
            )
            was = await _person(own, "id", person_id)
            if was.role is Role.ADMINISTRATOR and not others:
                raise Refusal("last_administrator")
        changed = await own.execute("UPDATE people SET role = $1 WHERE id = $2", str(role), person_id)
        if not changed:
            raise NotHere
        await hf.logins.end(person_id, tx=own)
        await looked(own, by, "person.role", person_id, str(role))


def _check(mail: str, password: str, name: str) -> None:
    wrong = []
    if not is_mail(mail):
        wrong.append(Wrong("mail", "mail_wrong", (mail,)))
    if not is_name(name):
        wrong.append(Wrong("name", "name_missing"))
    if len(password) < PASSWORD_LEAST or len(password) > PASSWORD_MOST:
        wrong.append(Wrong("password", "password_short", (PASSWORD_LEAST,)))
    if wrong:
        raise Invalid(wrong)


def _check_password(password: str, field: str) -> None:
    if not PASSWORD_LEAST <= len(password) <= PASSWORD_MOST:
        raise Invalid([Wrong(field, "password_short", (PASSWORD_LEAST,))])
