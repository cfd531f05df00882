"""The whole program: `holdfast worker publisher.program:hf`. What is declared anywhere is imported here."""

from __future__ import annotations

from publisher.core import hf
from publisher.work import publishing, resources

__all__ = ["hf", "publishing", "resources"]
