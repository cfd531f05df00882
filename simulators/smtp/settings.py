"""What can be set: how slow it answers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass
class Settings:
    answers_in: float = 0.0  # seconds that each mail takes at least

    def change(self, told: dict[str, Any]) -> None:
        for name, value in told.items():
            if name != "answers_in":
                raise ValueError(f"no setting is called {name!r}; there is: answers_in")
            self.answers_in = float(value)

    def shown(self) -> dict[str, Any]:
        return asdict(self)
