"""First stage: every document is scanned, and marked. Rows, event and success are one commit."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import aclosing
from functools import partial

import msgspec

from admissions.core import STAGES, VERIFY, FilesRefused, Uploaded, Verified, hf, key_of, scanner, settings
from admissions.domain.states import State
from admissions.outside.errors import Refused
from admissions.outside.scanning import Scan, Scanner
from admissions.steps import happened, move, state_of
from admissions.work import letters
from admissions.work.failing import fails_with
from holdfast import Event, Job, Tx, within

GROUP = "verify"


class Result(msgspec.Struct, frozen=True):
    """Of one document, as its step keeps it."""

    document_id: str
    name: str
    scanner: str
    found: str = ""


@hf.on(
    "document.uploaded",
    group=GROUP,
    name="verify",
    queue=VERIFY,
    concurrency=settings.verify_at_once,
    retry=STAGES,
    timeout=600,
)
async def verify(event: Event[Uploaded], job: Job, look: Scanner) -> None:
    application_id = event.data.application_id
    async with hf.transaction() as tx:
        if await move(tx, application_id, State.VERIFYING):
            await happened(tx, application_id, "verifying")
        elif await state_of(tx, application_id) is not State.VERIFYING:  # that of an earlier attempt is ours
            return  # withdrawn meanwhile, or past this stage
    results = [
        await job.step(f"scan:{each}", partial(scan, look), each, guard=scanner)
        for each in await _unscanned(application_id)
    ]
    async with job.commit() as tx:
        await _store(tx, application_id, [msgspec.convert(each, Result) for each in results])


async def _unscanned(application_id: str) -> list[str]:
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT id FROM documents WHERE application_id = $1 AND state = 'new' ORDER BY made_at, id",
            application_id,
        )
    return [found for (found,) in rows]


async def scan(look: Scanner, document_id: str) -> Result:
    """Safe to repeat. Its result belongs to the bytes that were uploaded, and to no others."""
    async with hf.transaction() as tx:
        [(application_id, name, key, sha256)] = await tx.fetch(
            "SELECT application_id, name, key, sha256 FROM documents WHERE id = $1", document_id
        )
    digest = hashlib.sha256()
    with within(tenant=application_id):
        async with (
            aclosing(await hf.blobs.open(key)) as content,
            aclosing(_hashed(content, digest)) as pieces,
        ):
            scan: Scan = await look.scan(pieces)
    if digest.hexdigest() != sha256:
        raise Refused(f"The stored bytes of document {document_id} are not those that were uploaded.")
    return Result(document_id, name, scan.scanner, scan.found)


async def _hashed(content: AsyncIterable[bytes], digest: hashlib._Hash) -> AsyncGenerator[bytes, None]:
    async for piece in content:
        digest.update(piece)
        yield piece


async def _store(tx: Tx, application_id: str, results: list[Result]) -> None:
    now = await hf.now()
    for each in results:
        if each.found:
            await _quarantine(tx, application_id, each)
        await tx.execute(
            "UPDATE documents SET state = $1, found = $2, scanner = $3, scanned_at = $4 WHERE id = $5 AND state = 'new'",
            "infected" if each.found else "clean",
            each.found,
            each.scanner,
            now,
            each.document_id,
        )
    rows = await tx.fetch(
        "SELECT id, name, state, found FROM documents WHERE application_id = $1 AND state <> 'replaced'",
        application_id,
    )
    refused = [row for row in rows if row[2] == "infected"]
    clean = sum(row[2] == "clean" for row in rows)
    if refused:
        await _ask_for_others(tx, application_id, refused, clean)
    elif clean and await move(tx, application_id, State.VERIFIED):
        await happened(tx, application_id, "verified", documents=clean)
        await hf.emit("document.verified", Verified(application_id, clean), key=key_of(application_id), tx=tx)


async def _quarantine(tx: Tx, application_id: str, result: Result) -> None:
    """Nobody opens it any more, whatever a page shows."""
    [(key,)] = await tx.fetch("SELECT key FROM documents WHERE id = $1", result.document_id)
    with within(tenant=application_id):
        await hf.blobs.quarantine(key, result.found, tx=tx)


async def _ask_for_others(tx: Tx, application_id: str, refused: list[tuple[str, ...]], clean: int) -> None:
    """The application is not failed for it: its owner is told which file, and may replace it."""
    if not await move(tx, application_id, State.NEEDS_FILES):
        return
    names = [row[1] for row in refused]
    await happened(tx, application_id, "files_refused", names=names)
    told = FilesRefused(application_id, [row[0] for row in refused], clean)
    await hf.emit("document.refused", told, key=key_of(application_id), tx=tx)
    await letters.files_refused(tx, application_id, names, cause=":".join(sorted(told.refused)))


fails_with(verify, "verify")
