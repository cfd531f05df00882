"""When a part is down, who waits for it is told so, and that nothing is lost; nobody else is."""

from __future__ import annotations

import admissions_kit as kit
import pytest
from admissions.core import hf, scanner
from admissions.core import stripe as guard
from admissions_visitors import Visitor

from holdfast.testing import drain
from tools.waiting import until


async def fails(guard):
    async def cut():
        raise OSError("nobody answers")

    for _ in range(12):
        with pytest.raises(Exception):  # noqa: B017  first the cut, then the open breaker
            await guard.call(cut)

    async def is_known():
        return str((await hf.guards.look(guard.name)).state) == "open"

    await until(is_known, 30)  # what a process sees is told to the others in a moment


async def test_the_page_says_that_payments_are_slow(manual_clock, quick_site, stripe_simulator, box):
    term = await kit.term()
    async with Visitor(quick_site, headers={"accept": "text/html"}) as anh:
        await anh.log_in()
        found = await anh.submitted(term)
        await fails(guard)
        page = (await anh.get(f"/applications/{found}/status")).text
        assert "slow right now" not in page  # it waits for the scanner, which is well
        await fails(scanner)
        page = (await anh.get(f"/applications/{found}/status")).text
        assert "Checking the files is slow right now" in page
        manual_clock.advance(120)
        await manual_clock.run(drain(hf, raise_dead=True))
        assert (await kit.row(found))["state"] == "awaiting_payment"
        await fails(guard)
        for address in ("status", "pay"):
            page = (await anh.get(f"/applications/{found}/{address}")).text
            assert "Payments are slow right now" in page


async def test_a_page_of_trouble_is_in_the_language_of_its_reader(quick_site):
    """Whatever the browser likes most; and who has logged in is still seen to be."""
    async with Visitor(quick_site, headers={"accept": "text/html", "accept-language": "en"}) as anh:
        await anh.log_in(language="vi")
        answer = await anh.get(f"/applications/{'0' * 32}/status")
        assert answer.status_code == 404
        assert "<h1>Không có trang này</h1>" in answer.text
        assert "Hồ sơ của tôi" in answer.text
        assert "<form" not in answer.text.partition("<main")[0]  # it could not be sent from here
