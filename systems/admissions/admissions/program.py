"""The whole program: `holdfast worker admissions.program:hf`. What is declared anywhere is imported here."""

from __future__ import annotations

from admissions.core import hf
from admissions.desk import finance, status
from admissions.probing import probe_app
from admissions.status import application_view
from admissions.work import (
    adding,
    agreeing,
    asking,
    completing,
    hearing,
    paying,
    releasing,
    resources,
    telling,
    verifying,
    withdrawing,
)

__all__ = [
    "adding",
    "agreeing",
    "application_view",
    "asking",
    "completing",
    "finance",
    "hearing",
    "hf",
    "paying",
    "probe_app",
    "releasing",
    "resources",
    "status",
    "telling",
    "verifying",
    "withdrawing",
]
