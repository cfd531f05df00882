"""`traces()`: from now on this process makes spans. OpenTelemetry is imported here, and nowhere before."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from holdfast.kernel.errors import UsageError
from holdfast.kernel.tracing import is_traced, trace_by

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

SETTING = "HOLDFAST_TRACES"


def traces(provider: TracerProvider | None = None) -> Callable[[], None]:
    """Make spans for OpenTelemetry of all that Holdfast does in this process; call what is returned to stop.

    Without a `provider` they go to the one that `opentelemetry.trace.set_tracer_provider` has been given, or will be; while there
    is none, nothing is made, so set that up first. Sampling and exporting are its own.
    """
    try:
        from opentelemetry.trace import TracerProvider as Kind  # noqa: PLC0415  it is an extra

        from holdfast.observe.traces.tracer import OtelTracer  # noqa: PLC0415  so it is
    except ImportError as error:
        raise UsageError("Traces need OpenTelemetry's API: pip install 'holdfast[otel]'.") from error
    if provider is not None and not isinstance(provider, Kind):
        raise UsageError(f"traces takes a TracerProvider of OpenTelemetry, not {provider!r}.")
    return trace_by(OtelTracer(provider))


def trace_if_asked(environment: Mapping[str, str] = os.environ) -> None:
    """HOLDFAST_TRACES=on is `traces()` for a program that does not say it."""
    asked = environment.get(SETTING, "off").strip().lower() or "off"
    if asked not in ("on", "off"):
        raise UsageError(f"{SETTING} is on or off, not {asked!r}.")
    if asked == "on" and not is_traced():
        traces()
