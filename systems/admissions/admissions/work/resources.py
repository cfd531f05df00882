"""What a worker opens once: the client of Stripe, and the scanner."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from admissions.core import hf, settings
from admissions.flags import SCANNER
from admissions.outside.payments import Payments
from admissions.outside.scanning import Scanner, Switched, scanner_of


@hf.resource
def payments() -> Iterator[Payments]:
    yield Payments(settings)


@hf.resource
def scanner() -> Iterator[Scanner]:
    yield Switched(scanner_of(settings.clamd), partial(hf.flag, SCANNER, default=True))
