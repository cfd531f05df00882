"""Any topic, type and group as NATS can name it: subjects have words between dots, streams and consumers have one."""

from __future__ import annotations

import re
from hashlib import sha256
from urllib.parse import quote

_LONGEST = 200  # of 255 characters
_UNFIT = re.compile("[^A-Za-z0-9-]")


def subject(*names: str) -> str:
    """Their words, with dots between: `holdfast.events` and `order placed` are `holdfast.events.order%20placed`."""
    return ".".join(quote(word, safe="") or "%" for name in names for word in name.split("."))


def one_word(name: str) -> str:
    """Two names never become the same one."""
    word = _UNFIT.sub(lambda found: "".join(f"_{byte:02x}" for byte in found[0].encode()), name)
    if len(word) <= _LONGEST:
        return word
    return f"{word[:100]}__{sha256(name.encode()).hexdigest()}"
