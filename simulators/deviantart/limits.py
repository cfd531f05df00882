"""Velocity limits for a user and for the application: without headers, and with a block that grows with each call made in it."""

from __future__ import annotations

from collections import deque

from simulators.common.clock import Clock
from simulators.deviantart.answers import Failed, app_limit, user_limit
from simulators.deviantart.settings import Settings

_APP = "*"


class Limits:
    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        self._calls: dict[str, deque[float]] = {}
        self._blocked: dict[str, float] = {}  # until when

    def check(self, user: str) -> None:
        """Count this call; raises when the application, or this user, has made too many."""
        s = self._settings
        if self._is_blocked(_APP, s.app_calls, s.app_window):
            raise app_limit()
        if self._is_blocked(user, s.user_calls, s.user_window):
            raise user_limit()

    def block(self, user: str | None, seconds: float) -> Failed:
        """As if too many had been made just now; None: by the application."""
        self._blocked[user or _APP] = self._clock.now() + seconds
        return app_limit() if user is None else user_limit()

    def blocked_until(self, user: str | None) -> float | None:
        until = self._blocked.get(user or _APP, 0.0)
        return until if until > self._clock.now() else None

    def _is_blocked(self, who: str, most: int, window: float) -> bool:
        now = self._clock.now()
        if (until := self._blocked.get(who, 0.0)) > now:
            self._blocked[who] = until + self._settings.block_grows
            return True
        calls = self._calls.setdefault(who, deque())
        while calls and calls[0] <= now - window:
            calls.popleft()
        calls.append(now)
        if len(calls) > most:
            self._blocked[who] = now + self._settings.block
            calls.clear()
            return True
        return False
