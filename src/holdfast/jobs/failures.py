"""An exception as it is kept with a job: bounded, and with nothing in it that was marked secret."""

from __future__ import annotations

import traceback
from collections.abc import Iterable

from holdfast.kernel.show import storable

LONGEST = 2_000  # characters of one error
_FRAMES = 5  # the innermost


def describe(error: BaseException, secrets: Iterable[str] = ()) -> str:
    """Type and message first, then where it was raised."""
    try:
        what = "".join(traceback.format_exception_only(error)).strip()
    except Exception:  # noqa: BLE001  an exception that cannot be printed must not hide itself
        what = type(error).__name__
    where = [
        f"  {frame.filename}:{frame.lineno} in {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
    ]
    text = "\n".join([_shortened(what), *where[-_FRAMES:]])
    for secret in secrets:
        text = text.replace(secret, "***")
    return storable(text)


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text)} characters)"
