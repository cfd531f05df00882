"""`hf.mail`: each recipient of a mail is a job of ours, whose one effect hands the mail to the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol, TypeAlias, TypeVar, Unpack

import msgspec

from holdfast.guards.backoff import Backoff
from holdfast.guards.breaker import Breaker
from holdfast.guards.bulkhead import Bulkhead
from holdfast.guards.faults import Fault, classify
from holdfast.guards.guard import Guard
from holdfast.guards.guard import Options as GuardOptions
from holdfast.guards.limiter import Limiter
from holdfast.jobs.control import Reject
from holdfast.jobs.handle import Handle
from holdfast.jobs.job import Job
from holdfast.jobs.signature import Secret
from holdfast.kernel.awaits import is_async, must_await
from holdfast.kernel.clock import now
from holdfast.kernel.errors import UsageError
from holdfast.kernel.ids import new_id
from holdfast.kernel.names import check_name
from holdfast.kernel.show import show
from holdfast.kernel.telemetry import note
from holdfast.mail.addresses import MOST, Address, mask, read, read_all
from holdfast.mail.carrier import Carrier
from holdfast.mail.errors import MailNotSent, MailRefused, MailUncertain
from holdfast.mail.folder import FolderCarrier
from holdfast.mail.letter import Letter, digest, message_id
from holdfast.mail.refusal import Delivery, Refusal
from holdfast.mail.settings import Folder, MailSettings, place
from holdfast.mail.smtp import SmtpCarrier
from holdfast.runtime.views import JobsView
from holdfast.store.ports import Store, Tx

TASK = "holdfast.mail.send"
GUARD = "smtp"
_FIRST, _CEILING = 10.0, 3_600.0  # seconds between attempts
_FAILURES = 5  # in a row
_LEAVING = 421  # the server hangs up, whatever it is asked
OnRefused: TypeAlias = Callable[[Refusal, Tx], Awaitable[Any]]
OnSent: TypeAlias = Callable[[Delivery, Tx], Awaitable[Any]]
H = TypeVar("H", bound=Callable[..., Any])


class Sending(msgspec.Struct, frozen=True):
    """What became of `send`: a handle for each recipient, and the Message-ID that all of them get."""

    message_id: str
    handles: tuple[Handle[str], ...]


class _Program(Protocol):
    """As much of Holdfast as this needs."""

    store: Store
    jobs: JobsView

    def task(self, /, **options: Any) -> Callable[[Any], Any]: ...
    def guard(self, name: str, /, **options: Unpack[GuardOptions]) -> Guard[Any]: ...


class ProgramMail:
    """`await hf.mail.send(job, to="ada@example.org", subject="…", text="…")`."""

    def __init__(self, program: _Program, settings: MailSettings | None) -> None:
        self._program, self.settings = program, settings
        self._on_refused: list[OnRefused] = []
        self._on_sent: list[OnSent] = []
        self._carrier: Carrier | None = None
        self._task: Any = None
        if settings is not None:
            self._declare(settings)

    # --- sending ---

    @must_await("hf.mail.send", name=lambda _: None)
    async def send(
        self,
        job: Job | None = None,
        /,
        *,
        to: str | Iterable[str],
        subject: str,
        text: str | None = None,
        html: str | None = None,
        cc: str | Iterable[str] = (),
        bcc: str | Iterable[str] = (),
        sender: str | None = None,
        reply_to: str | None = None,
        headers: Mapping[str, str] | None = None,
        about: str | None = None,
        name: str | None = None,
        delay: float | None = None,
        priority: int | None = None,
        tx: Any = None,
    ) -> Sending:
        """Store a mail, in the transaction `tx` when one is given. Workers send it, to each recipient by a job of its own.

        With the running `job`, later attempts of it do not send the mail again: it is a step called `name` ("mail"), so give two mails of
        one job two names. `about` is an id of yours, such as "order:17": it is shown with the job, and handlers get it. A mail of a
        higher `priority` goes first: a login link is not to wait behind ten thousand letters.
        """
        letter, recipients = self._written(
            to=to, cc=cc, bcc=bcc, subject=subject, text=text, html=html, sender=sender, reply_to=reply_to, headers=headers
        )  # fmt: skip
        about = None if about is None else check_name("about", about)
        options = {"delay": delay, "priority": priority}
        step = check_name("step", "mail" if name is None else name)
        if job is None:
            return await self._stored(_named(letter, new_id()), recipients, about, options, tx)
        if tx is not None:
            key = job.key_for(f"mail:{step}:{digest(letter)}")
            return await self._stored(_named(letter, key), recipients, about, options, tx)
        letter = _named(letter, job.key_for(f"mail:{step}"))

        async def store() -> dict[str, Any]:
            sent = await self._stored(letter, recipients, about, options, None)
            return {"message_id": sent.message_id, "jobs": [each.id for each in sent.handles]}

        kept = await job.step(step, store)
        handles: tuple[Handle[str], ...] = tuple(
            self._program.jobs.handle(each, str) for each in kept["jobs"]
        )
        return Sending(kept["message_id"], handles)

    def on_refused(self, handler: H) -> H:
        """Call this, `async (refusal, tx)`, for each mail that the server refuses for good, in the transaction that ends its job.

        Without such a handler, the job of a mail that was refused is dead, so that a person sees it.
        """
        if not is_async(handler):
            raise UsageError(f"An on_refused handler is `async def (refusal, tx)`; not {show(handler)}.")
        self._on_refused.append(handler)
        return handler

    def on_sent(self, handler: H) -> H:
        """Call this, `async (delivery, tx)`, for each mail that the server has taken, in the transaction that ends its job."""
        if not is_async(handler):
            raise UsageError(f"An on_sent handler is `async def (delivery, tx)`; not {show(handler)}.")
        self._on_sent.append(handler)
        return handler

    def _written(
        self,
        *,
        to: str | Iterable[str],
        cc: str | Iterable[str],
        bcc: str | Iterable[str],
        sender: str | None,
        reply_to: str | None,
        headers: Mapping[str, str] | None,
        **content: Any,
    ) -> tuple[Letter, list[str]]:
        """A letter that has no name yet, and whom it goes to: each once."""
        settings = self._its_settings()
        said = settings.sender if sender is None else sender
        if said is None:
            raise UsageError("Who is the mail from? Say sender=, or set HOLDFAST_MAIL_FROM for all of them.")
        shown_to, shown_cc, hidden = read_all("to", to), read_all("cc", cc), read_all("bcc", bcc)
        recipients = list(dict.fromkeys(each.spec for each in (*shown_to, *shown_cc, *hidden)))
        if not 1 <= len(recipients) <= MOST:
            raise UsageError(
                f"A mail goes to 1 to {MOST} recipients, not {len(recipients)}. Send several mails instead."
            )
        letter = Letter(
            message_id="", at=now(), sender=read("sender", said), to=shown_to, cc=shown_cc,
            reply_to=None if reply_to is None else read("reply_to", reply_to), headers=dict(headers or {}), **content,
        )  # fmt: skip
        letter.render()  # what cannot be sent is said now
        return letter, recipients

    async def _stored(
        self, letter: Letter, recipients: list[str], about: str | None, asked: Mapping[str, Any], tx: Any
    ) -> Sending:
        options = {name: value for name, value in {"tx": tx, **asked}.items() if value is not None}
        secret = msgspec.structs.replace(letter, message_id="")  # what is part of a secret is in no log
        calls = [
            {
                "letter": secret,
                "recipient": each,
                "to": mask(each),
                "message_id": letter.message_id,
                "about": about,
            }
            for each in recipients
        ]
        handles = await self._task.options(**options).enqueue_many(calls)
        return Sending(letter.message_id, tuple(handles))

    def _its_settings(self) -> MailSettings:
        if self.settings is None:
            raise UsageError(
                "This program sends no mail: it was not told where to. Set HOLDFAST_MAIL_URL, such as smtps://user:password@mail.example.org "
                "or file:outbox, and HOLDFAST_MAIL_FROM; or say Holdfast(mail=MailSettings(…))."
            )
        return self.settings

    # --- the task ---

    def _declare(self, settings: MailSettings) -> None:
        limiter = None if settings.rate is None else Limiter(rate=settings.rate)
        guard = self._program.guard(
            GUARD, timeout=settings.timeout, classify=fault_of_mail, limiter=limiter,
            breaker=Breaker(failures=_FAILURES, cooldown=settings.rest), bulkhead=Bulkhead(settings.at_once, waiting=1_000),
        )  # fmt: skip

        places = {} if settings.in_fleet is None else {"concurrency": (TASK, settings.in_fleet)}

        @self._program.task(
            name=TASK, queue=settings.queue, priority=settings.priority, guard=guard, **places,
            retry=Backoff(attempts=settings.attempts, first=_FIRST, ceiling=_CEILING),
        )  # fmt: skip
        async def send(  # noqa: PLR0917  its arguments are those of stored jobs
            job: Job,
            letter: Secret[Letter],
            recipient: Secret[str],
            to: str,  # noqa: ARG001  for people who look at jobs: the recipient, masked
            message_id: str,
            about: str | None = None,
        ) -> str:
            letter = msgspec.structs.replace(letter, message_id=message_id)
            return await self._send(job, guard, letter, recipient, about)

        self._task = send

    async def _send(
        self, job: Job, guard: Guard[Any], letter: Letter, recipient: str, about: str | None
    ) -> str:
        async def hand_over() -> None:
            await guard.call(self._its_carrier().carry, letter, recipient)

        try:
            await job.effect("send", hand_over, policy="at_least_once", not_done=(MailNotSent, MailRefused))
        except MailRefused as refused:
            return await self._refused(job, refused, letter, recipient, about)
        note("mail.sent", job=job.id, message=letter.message_id, to=mask(recipient))
        if self._on_sent:
            told = Delivery(recipient=recipient, message_id=letter.message_id, about=about)
            async with job.commit(result=letter.message_id) as tx:
                for handler in self._on_sent:
                    await handler(told, tx)
        return letter.message_id

    async def _refused(
        self, job: Job, refused: MailRefused, letter: Letter, recipient: str, about: str | None
    ) -> str:
        note("mail.refused", job=job.id, message=letter.message_id, to=mask(recipient), error=str(refused))
        if not self._on_refused:
            raise Reject(f"{refused}")
        told = Refusal(
            recipient=recipient, code=refused.code or 0, answer=str(refused), message_id=letter.message_id, about=about
        )  # fmt: skip
        async with job.commit(result=letter.message_id) as tx:
            for handler in self._on_refused:
                await handler(told, tx)
        return letter.message_id

    def _its_carrier(self) -> Carrier:
        if self._carrier is None:
            self._carrier = carrier_for(self._its_settings())
        return self._carrier

    def __repr__(self) -> str:
        return f"Mail({self.settings!r})"


def carry_by(mail: ProgramMail, carrier: Carrier) -> Callable[[], None]:
    """From now on, instead of by what the settings say; call the answer to end that. Tests do so."""
    before, settings = mail._carrier, mail.settings  # noqa: SLF001  hidden from programs
    if settings is None:
        mail.settings = MailSettings(url="file:outbox", sender="test@localhost")
        if mail._task is None:  # noqa: SLF001
            mail._declare(mail.settings)  # noqa: SLF001
    mail._carrier = carrier  # noqa: SLF001

    def end() -> None:
        mail._carrier, mail.settings = before, settings  # noqa: SLF001

    return end


def carrier_for(settings: MailSettings) -> Carrier:
    where = place(settings.url)
    if isinstance(where, Folder):
        return FolderCarrier(where.path)
    return SmtpCarrier(where, timeout=settings.timeout)


def fault_of_mail(error: Exception) -> Fault:
    """A server that refuses one mail for good is well."""
    match error:
        case MailRefused():
            return Fault.PERMANENT
        case MailNotSent(code=code):  # 4xx for one mail says nothing about the next one
            return Fault.TRANSIENT if code in (None, _LEAVING) else Fault.PERMANENT
        case MailUncertain():
            return Fault.UNKNOWN
        case _:
            return classify(error)


def _named(letter: Letter, key: str) -> Letter:
    sender: Address = letter.sender
    return msgspec.structs.replace(letter, message_id=message_id(key, sender))
