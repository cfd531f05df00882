"""The Holdfast of the publisher and the one guard around DeviantArt. What uses them is declared in program.py."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast import Backoff, Holdfast
from holdfast.guards import Breaker, Fault, Limiter
from holdfast.vault import new_key
from publisher.domain.failures import Kind
from publisher.outside.errors import DeviantArtError
from publisher.settings import Settings, settings_of

PUBLISHING, TOKENS, CLEANING = "deviation-publisher", "token-maintenance", "r2-cleanup"
DESK = "desk"  # previews, exports, and accounts that leave
KEY_FILE = "publisher-keys"  # for trying out; production is given its own

settings = settings_of()


def _keys() -> str:
    if settings.keys is not None:
        return settings.keys.reveal()
    path = Path(KEY_FILE)
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(new_key("trying-out") + "\n")
    except FileExistsError:
        pass
    return f"file:{path.absolute()}"


def _fault(error: BaseException) -> Fault:
    """What the guard makes of an error: only a limit of the artist slows the artist, all else is for the breaker."""
    if not isinstance(error, DeviantArtError):
        return Fault.TRANSIENT
    match error.kind:
        case Kind.USER_LIMIT:
            return Fault.THROTTLED
        case Kind.APP_LIMIT | Kind.PASSING:
            return Fault.TRANSIENT
        case Kind.NOBODY_KNOWS:
            return Fault.UNKNOWN
        case _:
            return Fault.PERMANENT


def _limiter(told: Settings) -> Limiter | None:
    if not told.limiter_enabled:
        return None
    return Limiter(
        rate=1000 / told.base_delay_ms,
        burst=1,
        floor=1000 / told.max_delay_ms,
        ceiling=1000 / min(told.fastest_ms, told.base_delay_ms),
        increase=1 - told.success_factor,
        decrease=1 - 1 / told.failure_factor,
        per="artist:{artist}",
        wait=10.0,  # of calls for a person; steps of jobs are held instead
        longest_pause=told.longest_rest_ms / 1000,
        pause_jitter=told.jitter_percent / 100,
        pause=Backoff(
            first=min(20 * told.base_delay_ms, told.longest_rest_ms) / 1000,
            ceiling=told.longest_rest_ms / 1000,
        ),
    )


def _breaker(told: Settings) -> Breaker | None:
    if not told.breaker_enabled:
        return None
    return Breaker(
        failures=told.breaker_threshold, window=60.0, cooldown=told.breaker_open_ms / 1000, permits=1
    )


hf = Holdfast(
    settings.database_url,
    guards=settings.guards_url,
    cache=settings.redis_url,
    sessions=settings.redis_url,
    keys=_keys(),
    mail=settings.mail(),
    blobs=settings.blobs(),
)
deviantart = hf.guard(
    "deviantart",
    timeout=settings.call_timeout_s,
    breaker=_breaker(settings),
    limiter=_limiter(settings),
    classify=_fault,
    uncharged={Fault.THROTTLED},
)
hf.vault.column("logins", "access", row="artist_id", tenant="artist_id")
hf.vault.column("logins", "refresh", row="artist_id", tenant="artist_id")
