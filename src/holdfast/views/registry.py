"""The views of one program, and the services that keep them up to date."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from holdfast.events.catalog import Catalog
from holdfast.fleet.leading import TTL
from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show
from holdfast.store.ports import Store
from holdfast.views.projection import KeyOf, Late, OnError, Projection
from holdfast.views.projector import Projector
from holdfast.views.view import View


class ViewRegistry:
    """`hf.views`: `hf.views["orders"]`, and `for view in hf.views`."""

    _store: Store

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._views: dict[str, View[Any]] = {}

    def send_to(self, store: Store) -> None:
        """From now on rows are kept there."""
        self._store = store

    def add(
        self,
        name: str,
        function: Callable[..., Any],
        *,
        on: str | Sequence[str],
        key: KeyOf,
        late: Late,
        on_error: OnError,
        history: bool,
    ) -> View[Any]:
        made = Projection(name, function, on=on, key=key, late=late, on_error=on_error, history=history)
        if made.name in self._views:
            raise UsageError(f"There are two views called {made.name!r}. Give each its own name.")
        for text in made.on:
            self._catalog.hear(f"view:{made.name} {text}", text)
        view = self._views[made.name] = View(made, lambda: self._store)
        return view

    def services(self, owner: str, lease: float = TTL) -> list[Projector]:
        """What a worker with such a lease runs beside its jobs."""
        return [self.projector(view, owner, min(TTL, lease)) for view in self]

    def projector(self, view: View[Any], owner: str, ttl: float = TTL) -> Projector:
        return Projector(self._store, view.projection, owner=owner, ttl=ttl)

    def __getitem__(self, name: str) -> View[Any]:
        if (view := self._views.get(name)) is None:
            raise UsageError(
                f"The program has no view {show(name)}. There are: {', '.join(self._views) or 'none'}."
            )
        return view

    def __iter__(self) -> Iterator[View[Any]]:
        return iter(tuple(self._views.values()))

    def __len__(self) -> int:
        return len(self._views)
