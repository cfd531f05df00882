"""The whole program: `holdfast worker publisher.program:hf`. What is declared anywhere is imported here."""

from __future__ import annotations

from publisher.core import hf
from publisher.probing import probe_app
from publisher.work import exporting, leaving, previews, publishing, resources

__all__ = ["exporting", "hf", "leaving", "previews", "probe_app", "publishing", "resources"]
