"""What can be set: limits and lifetimes. The defaults are those that were seen, as far as anybody has told."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass
class Settings:
    user_calls: int = 18  # of one user in `user_window` seconds; the next one is blocked
    user_window: float = 6.0
    app_calls: int = 600
    app_window: float = 60.0
    block: float = 1800.0  # seconds that a block lasts
    block_grows: float = 60.0  # seconds that each call during a block adds
    access_lasts: float = 3600.0
    refresh_lasts: float = 90 * 86_400.0
    code_lasts: float = 60.0
    answers_in: float = 0.0  # seconds that each call of the API takes at least
    stash_lookup: bool = False  # whether /stash/item exists; nobody documents it any more

    def change(self, told: dict[str, Any]) -> None:
        kinds = {each.name: type(getattr(self, each.name)) for each in fields(self)}
        for name, value in told.items():
            if name not in kinds:
                raise ValueError(f"no setting is called {name!r}; there are: {', '.join(kinds)}")
            setattr(self, name, kinds[name](value))

    def shown(self) -> dict[str, Any]:
        return asdict(self)
