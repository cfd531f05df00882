"""What can be set: delays, limits, and how webhooks come."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass
class Settings:
    answers_in: float = 0.0  # seconds that each call takes at least
    calls_a_second: int = 10_000  # above it: 429
    key_lasts: float = 86_400.0  # seconds for which an idempotency key is kept
    webhook_url: str = ""  # nothing is sent while it is empty
    webhook_delay: float = 0.0  # seconds before the first try
    webhook_copies: int = 1  # how often each event is sent, however it was answered
    webhook_shuffle: bool = False  # in any order
    webhook_off: bool = False  # they never come
    webhook_tries: int = 5  # while the answer is no 2xx
    webhook_pause: float = 0.2  # seconds before the second try; it doubles

    def change(self, told: dict[str, Any]) -> None:
        kinds = {each.name: type(getattr(self, each.name)) for each in fields(self)}
        for name, value in told.items():
            if name not in kinds:
                raise ValueError(f"no setting is called {name!r}; there are: {', '.join(kinds)}")
            setattr(self, name, kinds[name](value))

    def shown(self) -> dict[str, Any]:
        return asdict(self)
