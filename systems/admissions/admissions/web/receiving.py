"""Files that come in by a form: told by their content, counted against limits, and gone again when the request is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Request

from admissions.core import hf
from admissions.domain.forms import FILE_MOST, FILES_MOST, TYPES
from holdfast import within
from holdfast.web import UploadForm, Uploads

FIELDS_MOST = 100_000  # bytes of all that is no file
FORM_MOST = FILES_MOST * FILE_MOST + FIELDS_MOST
_uploads = Uploads(hf.blobs, types=list(TYPES), total=FORM_MOST, part=FILE_MOST, parts=40)


@asynccontextmanager
async def received(request: Request, application_id: str) -> AsyncIterator[UploadForm]:
    """What is not committed in the block is removed, at once or by the sweep."""
    with within(tenant=application_id):
        form = await _uploads.receive(request)
        try:
            yield form
        except BaseException:
            for each in form.files:
                await hf.blobs.discard(each.staged)
            raise


def shown_name(told: str) -> str:
    """For people alone: what the client says, of which the form has kept letters only, and no path."""
    return told.strip() if any(letter.isprintable() for letter in told.strip()) else "document"
