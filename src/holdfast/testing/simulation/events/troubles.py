"""What callers of simulated programs must be ready for."""

from __future__ import annotations

from holdfast.kernel.errors import CommitUnknown, NotOpen, TransportUnavailable
from holdfast.testing.simulation.history import REFUSALS

TROUBLE = (*REFUSALS, CommitUnknown, TransportUnavailable, NotOpen)
