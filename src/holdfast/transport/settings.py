"""What the query of a transport's URL may say, whichever broker it names."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_name, check_seconds
from holdfast.kernel.show import show


class Settings(msgspec.Struct, frozen=True):
    topic: str  # messages of one topic know nothing of those of another
    timeout: float = 5.0  # seconds for an answer of the broker


NAMES = Settings.__struct_fields__


def read(given: Mapping[str, str], *, topic: str, shown: str) -> Settings:
    """`shown`: the URL as people may see it. `topic`: when the URL names none."""
    chosen = check_name("topic", given.get("topic") or topic)
    if "timeout" not in given:
        return Settings(chosen)
    try:
        seconds = float(given["timeout"])
    except ValueError:
        raise UsageError(
            f"The timeout in the URL {shown} is a number of seconds, not {show(given['timeout'])}."
        ) from None
    return Settings(chosen, check_seconds(f"The timeout in the URL {shown}", seconds, 0.1, 600))
