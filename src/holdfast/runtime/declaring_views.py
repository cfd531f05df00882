"""`hf.view`: declare what events are made into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from holdfast.events.versions import Versions
from holdfast.views.projection import EVENT_KEY, KeyOf, Late, OnError
from holdfast.views.registry import ViewRegistry
from holdfast.views.view import View

R = TypeVar("R")


class DeclaringViews:
    """The part of `Holdfast` that is about views and versions."""

    views: ViewRegistry
    versions: Versions

    def view(
        self,
        name: str,
        /,
        *,
        on: str | Sequence[str],
        key: KeyOf = EVENT_KEY,
        late: Late = "ignore",
        on_error: OnError = "aside",
        history: bool = False,
    ) -> Callable[[Callable[[Any, Any], R | None]], View[R]]:
        """A read model: `@hf.view("orders", on="order.*", key="order_id")` on a plain function `(row, event) -> row`.

        Workers call it with each event that it hears, in order, and keep what it returns as the row of the event's key; None deletes
        it. `key` is a field of the events' data, "key" for the events' own, or a function of the event. The function is called again
        when the view is rebuilt, so it does nothing but make the row. A first parameter typed `Order | None` has rows in that type.

        An event whose key has a newer version in the row is ignored, unless `late="apply"`. An event that the function cannot take
        is set aside, and its row waits for it; with `on_error="stop"` the whole view does. With `history=True` events
        are kept for ever, so that the view can always be rebuilt.
        """

        def declared(function: Callable[[Any, Any], R | None]) -> View[R]:
            return self.views.add(
                name, function, on=on, key=key, late=late, on_error=on_error, history=history
            )

        return declared
