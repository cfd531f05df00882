"""`hf.logins`: who is logged in where, and ending it from anywhere."""

from __future__ import annotations

from typing import Any

from holdfast.jobs.blocking import inner
from holdfast.kernel.awaits import must_await_all
from holdfast.store.visit_ports import SharedVisits
from holdfast.store.visit_records import Login, to_login


@must_await_all("hf.logins")
class Logins:
    """Sessions of web pages, of which `holdfast.web.Sessions` has the cookies."""

    def __init__(self, visits: SharedVisits) -> None:
        self._visits = visits

    @property
    def visits(self) -> SharedVisits:
        """Where sessions are kept: for the middleware."""
        return self._visits

    async def list(self, principal: str, *, limit: int = 100) -> list[Login]:
        """Where this person is logged in now; seen last first."""
        return [to_login(each) for each in await self._visits.find(principal, limit=limit)]

    async def end(self, principal: str, *, name: str | None = None, tx: Any = None) -> int:
        """Log this person out, at once and everywhere; or only the session of this `name`. Returns how many were ended.

        With `tx`, when that commits: as together with a new password.
        """
        return await self._visits.end_of(principal, name=name, tx=inner(tx))
