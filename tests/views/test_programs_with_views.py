"""`hf.view` in a program: workers keep it up to date, tests drain it, and what is wrong is said when it is declared."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import msgspec
import pytest
from waiting import until

from holdfast import Event, Holdfast
from holdfast.kernel.errors import PayloadError, UsageError
from holdfast.kernel.ids import new_id
from holdfast.testing import drain, inline


class Submitted(msgspec.Struct):
    application_id: int
    name: str


class Application(msgspec.Struct):
    names: list[str] = []
    state: str = "new"


def declared(hf: Holdfast):
    @hf.view("application_view", on="application.*", key="application_id")
    def view(row: Application | None, event: Event) -> Application | None:
        """Applications by their number."""
        if event.type == "application.withdrawn":
            return None
        before = row or Application()
        return Application([*before.names, event.data["name"]], event.type.partition(".")[2])

    return view


async def test_a_worker_keeps_a_view_up_to_date(hf):
    view = declared(hf)
    async with hf.worker():
        for name in ("ada", "bob"):
            emitted = await hf.emit(
                "application.submitted", {"application_id": 7, "name": name}, key="application:7"
            )
        assert await view.get(7, at_least=emitted, wait=20) == Application(["ada", "bob"], "submitted")
        assert await view.get("7", at_least=2, wait=20) == Application(["ada", "bob"], "submitted")
        gone = await hf.emit("application.withdrawn", {"application_id": 7}, key="application:7")
        assert await view.get(7, at_least=gone, wait=20) is None
        assert (await view.lag()).events == 0


async def test_two_workers_share_the_views(hf):
    view = declared(hf)
    other = hf.view("counts", on="*", key=lambda event: event.type)(lambda row, event: (row or 0) + 1)
    async with hf.worker(), hf.worker():
        emits = [
            hf.emit(
                "application.submitted", {"application_id": number % 3, "name": "x"}, key=f"a:{number % 3}"
            )
            for number in range(30)
        ]
        await asyncio.gather(*emits)

        async def counted():
            return await other.get("application.submitted") == 30 and len(await view.find()) == 3

        await until(counted, 20)
    assert [len(entry.row.names) for entry in await view.find()] == [10, 10, 10]


async def test_drain_brings_views_up_to_date(hf):
    view = declared(hf)
    await hf.emit("application.submitted", {"application_id": 1, "name": "ada"}, key="a:1")
    await drain(hf)
    assert await view.get(1) == Application(["ada"], "submitted")
    await hf.emit("application.withdrawn", {"application_id": 1}, key="a:1")
    await drain(hf)
    assert await view.get(1) is None


async def test_inline_brings_views_up_to_date(hf):
    view = declared(hf)
    with inline(hf):
        await hf.emit("application.submitted", {"application_id": 1, "name": "ada"}, key="a:1", expect=0)
        assert await view.get(1) == Application(["ada"], "submitted")


async def test_events_typed_by_the_function(hf):
    @hf.view("names", on="application.submitted", key="application_id")
    def names(row: str | None, event: Event[Submitted]) -> str | None:
        return event.data.name.upper()

    await hf.emit("application.submitted", {"application_id": 1, "name": "ada"}, key="a:1")
    await hf.emit("application.submitted", {"application_id": 2}, key="a:2")
    await drain(hf)
    assert [(entry.key, entry.row) for entry in await names.find()] == [("1", "ADA")]
    [aside] = await names.aside()
    assert "name" in aside.error


async def test_a_view_can_be_called_and_found(hf):
    view = declared(hf)
    assert view(None, _event("application.submitted", name="ada")) == Application(["ada"], "submitted")
    assert view.__doc__ == "Applications by their number."
    assert (list(hf.views), len(hf.views), hf.views["application_view"]) == ([view], 1, view)
    with pytest.raises(UsageError, match="There are: application_view"):
        hf.views["others"]


def _event(kind, **data):
    return Event(id=new_id(), type=kind, data=data, time=datetime.now(UTC))


async def test_two_views_of_one_name_are_refused(hf):
    declared(hf)
    with pytest.raises(UsageError, match="two views called 'application_view'"):
        declared(hf)


async def test_a_view_hears_an_event_type(hf):
    hf.event("application.submitted", Submitted)
    with pytest.raises(UsageError, match="No subscriber"):
        async with hf.worker():
            pass
    declared(hf)
    async with hf.worker():
        pass


async def test_rows_of_another_type_ask_for_a_rebuild(hf):
    view = declared(hf)
    await hf.emit("application.submitted", {"application_id": 1, "name": "ada"}, key="a:1")
    await drain(hf)
    changed = Holdfast()
    changed.views.send_to(hf.store)  # the next version of the program

    @changed.view("application_view", on="application.*", key="application_id")
    def other(row: list[int] | None, event: Event) -> list[int] | None:
        return [*(row or []), 1]

    with pytest.raises(PayloadError, match="Rebuild the view"):
        await other.get(1)
    assert await view.get(1) is not None
