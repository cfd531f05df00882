"""Where this runs, for people: the version of Holdfast, and the name of the host."""

from __future__ import annotations

import re
import socket
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of

_LONGEST = 250  # characters of a host's name that are kept
_UNFIT = re.compile(r"[^\x21-\x7e]")


@cache
def version() -> str:
    """The version of Holdfast that runs here."""
    try:
        return version_of("holdfast")
    except PackageNotFoundError:  # it was copied here, not installed
        return "unknown"


def host() -> str:
    """The name of this machine, or of this container."""
    return _UNFIT.sub("?", socket.gethostname())[:_LONGEST] or "unknown"
