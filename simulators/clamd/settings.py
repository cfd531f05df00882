"""What can be set: how slow it is, and the largest file that it takes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass
class Settings:
    answers_in: float = 0.0  # seconds that each scan takes at least
    most: int = 25 * 1024 * 1024  # bytes of a stream, as clamd's StreamMaxLength is by default

    def change(self, told: dict[str, Any]) -> None:
        kinds = {"answers_in": float, "most": int}
        for name, value in told.items():
            if name not in kinds:
                raise ValueError(f"no setting is called {name!r}; there are: {', '.join(kinds)}")
            setattr(self, name, kinds[name](value))

    def shown(self) -> dict[str, Any]:
        return asdict(self)
