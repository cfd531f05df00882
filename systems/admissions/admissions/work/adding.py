"""A document that came later, because an officer has asked for it: scanned like the others, while its application stays where it is."""

from __future__ import annotations

from functools import partial

import msgspec

from admissions.core import STAGES, VERIFY, hf, scanner
from admissions.outside.scanning import Scanner
from admissions.steps import happened
from admissions.work import letters
from admissions.work.verifying import Result, scan
from holdfast import Job, Tx


@hf.task(name="admissions.scan_added", queue=VERIFY, retry=STAGES, timeout=600, unique="scan:{document_id}")
async def scan_added(job: Job, application_id: str, document_id: str, look: Scanner) -> str:
    async with hf.transaction() as tx:
        rows = await tx.fetch("SELECT state FROM documents WHERE id = $1", document_id)
    if not rows or rows[0][0] != "new":
        return "over"  # withdrawn meanwhile, or scanned with the others
    result = msgspec.convert(await job.step("scan", partial(scan, look), document_id, guard=scanner), Result)
    async with job.commit(result.found or "clean") as tx:
        await _store(tx, application_id, result)
    return result.found or "clean"


async def _store(tx: Tx, application_id: str, result: Result) -> None:
    """What is refused does not count as what was asked for: it is asked for again, and its owner is told."""
    changed = await tx.execute(
        "UPDATE documents SET state = $1, found = $2, scanner = $3, scanned_at = $4 WHERE id = $5 AND state = 'new'",
        "replaced" if result.found else "clean",
        result.found,
        result.scanner,
        await hf.now(),
        result.document_id,
    )
    if not changed or not result.found:
        return
    await tx.execute(
        "UPDATE requests SET document_id = NULL, closed_at = NULL WHERE document_id = $1", result.document_id
    )
    await happened(tx, application_id, "files_refused", names=[result.name])
    await letters.files_refused(tx, application_id, [result.name], cause=result.document_id)
