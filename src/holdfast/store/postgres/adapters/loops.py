"""An async connection is used on its own event loop: on another one it hangs or breaks."""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, ref

from holdfast.kernel.errors import WrongConnection

_first: WeakKeyDictionary[object, ReferenceType[asyncio.AbstractEventLoop]] = WeakKeyDictionary()


def same_loop(connection: Any) -> None:
    """Raise unless this loop is the connection's. asyncpg tells; of psycopg's we know the loop we met it on first."""
    here = asyncio.get_running_loop()
    loop = getattr(connection, "_loop", None)
    if loop is None:
        loop = _first.setdefault(connection, ref(here))()
        if loop is None or loop.is_closed():  # psycopg's connections outlive a loop unharmed
            _first[connection] = ref(here)
            return
    if loop is not here:
        raise WrongConnection(
            "This connection belongs to another event loop than the one that runs here. "
            "Open it on this loop, or make the call on the loop where it was opened."
        )
