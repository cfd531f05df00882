"""The header `Idempotency-Key`, quoted as the draft of the IETF has it, or bare as most clients send it."""

from __future__ import annotations

import re

from holdfast.web.asgi import Scope, headers
from holdfast.web.problems import Problem

LONGEST = 255
_QUOTED = re.compile(r'"((?:[^"\\]|\\["\\])*)"')
_ESCAPE = re.compile(r"\\(.)")
_PRINTABLE = re.compile(r"[!-~](?:[ -~]*[!-~])?")

MISSING = Problem(
    status=400,
    title="Idempotency-Key is missing",
    code="IDEMPOTENCY_KEY_MISSING",
    detail="Send a header Idempotency-Key with a value that is new for each thing to be done, such as a UUID.",
)


def read_key(scope: Scope) -> str | Problem | None:
    """The key without its quotes; None: there is no such header."""
    found = headers(scope, b"idempotency-key")
    if len(found) > 1:
        return _invalid(f"There are {len(found)} of them; send one.")
    return _key_in(found[0].strip()) if found else None


def _key_in(text: str) -> str | Problem:
    if text.startswith('"'):
        if (quoted := _QUOTED.fullmatch(text)) is None:
            return _invalid("Its quotes are not closed, or something follows them.")
        text = _ESCAPE.sub(r"\1", quoted[1])
    if not text:
        return _invalid("It is empty.")
    if len(text) > LONGEST:
        return _invalid(f"It has {len(text)} characters; at most {LONGEST} are taken.")
    if _PRINTABLE.fullmatch(text) is None:
        return _invalid("Only printable ASCII is taken, without a space at its beginning or end.")
    return text


def _invalid(why: str) -> Problem:
    return Problem(
        status=400, title="Idempotency-Key is not valid", code="IDEMPOTENCY_KEY_INVALID", detail=why
    )
