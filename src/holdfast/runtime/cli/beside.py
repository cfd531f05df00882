"""What `holdfast doctor` says of mail, sealed columns and sessions: whether their servers let us in, and whether the keys are there."""

from __future__ import annotations

from collections.abc import AsyncIterator

from holdfast.kernel.errors import StoreError, UsageError
from holdfast.mail.errors import MailError
from holdfast.mail.settings import Folder, place
from holdfast.runtime.app import Holdfast
from holdfast.runtime.inside import inside
from holdfast.runtime.mailing import carrier_for
from holdfast.store.findings import Finding, bad, ok, warn


async def examine(hf: Holdfast) -> list[Finding]:
    """Nothing is said of what a program does not have."""
    return [each for examined in (_mail, _vault, _sessions) async for each in examined(hf)]


async def _mail(hf: Holdfast) -> AsyncIterator[Finding]:
    settings = hf.mail.settings
    if settings is None:
        return
    where = place(settings.url)
    if settings.sender is None:
        yield warn("mail", "Mails have no sender, unless each says its own.", "Set HOLDFAST_MAIL_FROM.")
    try:
        await carrier_for(settings).check()
    except ImportError:
        yield bad("mail", f"{where!r} needs a library that is not there.", "pip install 'holdfast[mail]'")
    except (MailError, OSError) as error:
        todo = "Mend it, or set HOLDFAST_MAIL_URL: until then mails wait."
        yield bad("mail", str(error), todo)
    else:
        is_folder = isinstance(where, Folder)
        yield ok("mail", f"{where!r} {'keeps the mails: nobody gets them' if is_folder else 'lets us in'}.")


async def _vault(hf: Holdfast) -> AsyncIterator[Finding]:
    try:
        hf.vault.check()
        if not hf.vault.columns:
            return
        current = hf.vault.keyring().current
        counts = await hf.vault.counts()
    except UsageError as error:
        yield bad("vault", str(error), "Give this program the keys of its secrets: HOLDFAST_KEYS.")
        return
    except StoreError as error:
        yield bad("vault", f"The sealed columns cannot be read: {error}", "Do the tables exist?")
        return
    for column, found in counts.items():
        old = sum(count for key, count in found.items() if key not in {"", current})
        if lost := found.get("", 0):
            todo = "Bring the old key back, or seal what was stored as it is: see holdfast vault."
            yield bad("vault", f"{column}: {lost:,} values were sealed by no key that is here.", todo)
        elif old:
            todo = "Seal them anew: holdfast vault rotate."
            yield warn("vault", f"{column}: {old:,} values are under another key than {current!r}.", todo)
        else:
            yield ok("vault", f"{column}: all values are under the key {current!r}.")


async def _sessions(hf: Holdfast) -> AsyncIterator[Finding]:
    """Of web pages, where they are not in the database."""
    elsewhere = inside(hf).visits_elsewhere
    if elsewhere is None:
        return
    try:
        await elsewhere.get("0" * 64)  # its scripts run, and what it holds can be read
    except StoreError as error:
        todo = (
            "Mend it, or set HOLDFAST_SESSIONS_URL: until then requests with a session are answered with 503."
        )
        yield bad("sessions", str(error), todo)
    else:
        yield ok("sessions", f"{elsewhere!r} answers.")
