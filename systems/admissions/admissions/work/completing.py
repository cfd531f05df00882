"""Last stages: the confirmation by mail, whose sending is a fact of its own, and the end of the pipeline."""

from __future__ import annotations

from admissions.core import MAIL, STAGES, Mailed, PaymentCompleted, Told, hf, key_of, settings
from admissions.domain.states import State
from admissions.steps import happened, move
from admissions.work import letters
from admissions.work.failing import fail, fails_with
from holdfast import Event, Job, Tx
from holdfast.mail import Delivery, Refusal

ABOUT = "paid:"  # of the confirmation: it is what completes


@hf.on(
    "payment.completed",
    group="mail",
    name="confirm_by_mail",
    queue=MAIL,
    concurrency=settings.mail_at_once,
    retry=STAGES,
)
async def confirm_by_mail(event: Event[PaymentCompleted], tx: Tx) -> None:
    """The mail is stored with the fact that this was handled; a worker hands it over."""
    await letters.paid(tx, event.data.application_id)


@hf.mail.on_sent
async def was_sent(delivery: Delivery, tx: Tx) -> None:
    await letters.note_end(tx, delivery.about, "sent")
    if (application_id := _confirmed(delivery.about)) is not None:
        await _goes_on(tx, application_id, delivery.message_id)


@hf.mail.on_refused
async def was_refused(refusal: Refusal, tx: Tx) -> None:
    """An address that takes no mail fails no application: staff are told, and it goes on."""
    await letters.note_end(tx, refusal.about, "refused")
    if (application_id := _confirmed(refusal.about)) is not None:
        await happened(tx, application_id, "mail_refused", inner=True, code=refusal.code)
        await _goes_on(tx, application_id, refusal.message_id)


@hf.on_dead("holdfast.mail.send")
async def never_left(job: Job, tx: Tx) -> None:
    """After days of trying. Of a confirmation the application waits for a person, whose replay lets it go on."""
    if (application_id := _confirmed(job.arguments.get("about"))) is not None:
        await fail(tx, application_id, "mail", job.id)


def _confirmed(about: str | None) -> str | None:
    return about.removeprefix(ABOUT) if about is not None and about.startswith(ABOUT) else None


async def _goes_on(tx: Tx, application_id: str, message_id: str) -> None:
    if await move(tx, application_id, State.MAILED):
        await happened(tx, application_id, "mailed")
        await hf.emit("email.sent", Mailed(application_id, message_id), key=key_of(application_id), tx=tx)


@hf.on("email.sent", group="complete", name="complete", queue=MAIL, retry=STAGES)
async def complete(event: Event[Mailed], tx: Tx) -> None:
    application_id = event.data.application_id
    if await move(tx, application_id, State.COMPLETED):
        await happened(tx, application_id, "completed")
        await hf.emit("application.completed", Told(application_id), key=key_of(application_id), tx=tx)


fails_with(confirm_by_mail, "mail")
fails_with(complete, "complete")
