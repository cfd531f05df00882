"""`request_tx(request)`: what the handler writes commits together with its answer."""

from __future__ import annotations

from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

from holdfast.jobs.blocking import BlockingTx, Portal, portal_of
from holdfast.kernel.errors import UsageError
from holdfast.store.ports import Tx
from holdfast.web.asgi import HasScope, Scope, scope_of
from holdfast.web.idempotency.exchange import IN_SCOPE, Exchange

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncSession


class request_tx:  # noqa: N801  it is called like the function that it stands for
    """`async with request_tx(request) as tx:` rows, jobs and events of the block commit together with the answer, or not at all.

    The block's end does not commit yet: that happens when the handler has answered, just before the answer is sent. An answer of
    500 and above, 408, 425 or 429 rolls back, and so does an exception, at once when it leaves the block. In a plain function it is
    `with request_tx(request) as tx:`. Needs `IdempotencyKeys` around the app; the request may have a key or none.
    """

    def __init__(self, request: HasScope | Scope) -> None:
        self._exchange = _exchange_of(request)

    async def __aenter__(self) -> Tx:
        return await self._exchange.tx()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            await self._exchange.roll_back(error)

    def __enter__(self) -> BlockingTx:
        portal = self._portal()
        return BlockingTx(portal.run(self._exchange.tx, instead=_INSTEAD), portal)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._portal().run(partial(self._exchange.roll_back, error))

    def _portal(self) -> Portal:
        return portal_of(self._exchange.store)


class request_session:  # noqa: N801
    """`async with request_session(request) as session:` the same with SQLAlchemy's session. Do not commit it: the answer does."""

    def __init__(self, request: HasScope | Scope) -> None:
        self._exchange = _exchange_of(request)

    async def __aenter__(self) -> AsyncSession:
        return await self._exchange.session()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            await self._exchange.roll_back(error)


_INSTEAD = "`async with request_tx(request) as tx`"


def _exchange_of(request: HasScope | Scope) -> Exchange:
    found = scope_of(request).get(IN_SCOPE)
    if not isinstance(found, Exchange):
        raise UsageError(
            "request_tx needs IdempotencyKeys around the app: app = IdempotencyKeys(app, hf). It commits what the handler writes."
        )
    return found
