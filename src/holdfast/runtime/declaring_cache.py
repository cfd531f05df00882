"""`hf.cached`: put a cache before a function."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.views.cache import LEASE, TIMEOUT, WAIT, Caches, DeclareCached


class DeclaresCache:
    """The part of Holdfast that declares cached functions."""

    cache: Caches

    def cached(
        self,
        *,
        fresh: float,
        stale: float,
        key: str | None = None,
        tags: Sequence[str] = (),
        on: str | None = None,
        ignore: Sequence[str] = (),
        lease: float = LEASE,
        wait: float = WAIT,
        timeout: float | None = TIMEOUT,
    ) -> DeclareCached:
        """Keep what a function returns: `@hf.cached(fresh=300, stale=7200, key="gallery:{user}", tags=("user:{user}",))`.

        For `fresh` seconds a value is served as it is; until it is `stale` seconds old it is served at once, and one process
        refreshes it behind; after that it is never served, and callers wait for one load. It is kept `on` "memory" (of this
        process), "store", or "redis"; the last when Holdfast was given a cache URL, else the store. `key` and `tags` are
        made of the arguments; those in `ignore` do not count. A process loads with a `lease`, others `wait` so long for it, and a
        load has a `timeout`; all in seconds. The function is then awaited, also a plain one, which runs in a thread. It has
        `aged(…)`, `refresh(…)`, `invalidate(…)`, `key(…)`, `call_sync(…)`.
        """
        return self.cache.declare(
            fresh=fresh,
            stale=stale,
            key=key,
            tags=tags,
            on=on,
            ignore=ignore,
            lease=lease,
            wait=wait,
            timeout=timeout,
        )
