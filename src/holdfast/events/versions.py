"""Optimistic versions: a writer says which version it has seen, and a reader passes over what is older than it knows."""

from __future__ import annotations

from holdfast.jobs.blocking import Portal, inner
from holdfast.kernel.awaits import must_await_all
from holdfast.kernel.errors import UsageError, VersionConflict
from holdfast.kernel.names import check_int
from holdfast.store.ports import Store


@must_await_all("hf.versions")
class Versions:
    """`hf.versions`. The version of a key is that of its newest event: 1, 2, 3 …; 0: it has none."""

    _store: Store
    _portal: Portal

    def send_to(self, store: Store, portal: Portal) -> None:
        """From now on they are compared there."""
        self._store, self._portal = store, portal

    async def current(self, key: str, *, tx: object | None = None) -> int:
        """The newest version of a key. Another may raise it at once: to change something by it, use `expect`."""
        return await self._store.outbox.version(key, tx=inner(tx))

    async def expect(self, key: str, version: int, *, tx: object) -> None:
        """Raise VersionConflict unless this is the newest version of the key; until `tx` ends, nobody else can raise it.

        So what is written in `tx` is written by who has seen the newest version. Emit the event of the change in the same `tx`: it
        raises the version, and without it the next one who has seen the same version is let in as well.
        """
        await expect(self._store, key, version, tx=inner(tx))

    async def advance(self, reader: str, key: str, version: int, *, tx: object | None = None) -> bool:
        """Whether the version is newer than all that this reader has seen of the key; it has seen it from now on.

        `if not await hf.versions.advance("search", event.key, event.version, tx=tx): return` passes over what is stale.
        """
        return await self._store.versions.advance(reader, key, version, tx=inner(tx))

    # --- for code without an event loop ---

    def current_sync(self, key: str, *, tx: object | None = None) -> int:
        """`current` for code without an event loop."""
        return self._portal.run_with(
            tx, lambda: self.current(key, tx=tx), instead="`await hf.versions.current(…)`"
        )

    def expect_sync(self, key: str, version: int, *, tx: object) -> None:
        """`expect` for code without an event loop."""
        self._portal.run_with(
            tx, lambda: self.expect(key, version, tx=tx), instead="`await hf.versions.expect(…)`"
        )

    def advance_sync(self, reader: str, key: str, version: int, *, tx: object | None = None) -> bool:
        """`advance` for code without an event loop, such as a plain handler."""
        return self._portal.run_with(
            tx, lambda: self.advance(reader, key, version, tx=tx), instead="`await hf.versions.advance(…)`"
        )


async def expect(store: Store, key: str, version: int, *, tx: object) -> None:
    check_int("expect", version, 0, 2**63 - 1)
    found = await store.versions.hold(key, tx=tx)
    if found != version:
        raise VersionConflict(
            f"{key!r} has version {found}, and {version} was expected: somebody has changed it meanwhile. "
            "Read it again, and decide anew.",
            key=key,
            expected=version,
            found=found,
        )


def needed(key: str | None) -> str:
    if key is None:
        raise UsageError("Versions are those of a key: give the event one, key=…, or leave out expect=.")
    return key
