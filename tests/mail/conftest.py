"""A mail server of the tests, programs that send through it, and a clock that they turn."""

from __future__ import annotations

import pytest

from holdfast import Holdfast
from holdfast.mail import MailSettings
from holdfast.store.states import State
from holdfast.testing import drain, fresh
from tools.mail_server import MailServer

_ENDS = (State.SUCCEEDED, State.DEAD)


@pytest.fixture
def server():
    with MailServer() as running:
        yield running


@pytest.fixture
async def mailing(manual_clock, url, server):
    settings = MailSettings(url=server.url, sender="Shop <shop@example.org>", timeout=5)
    async with fresh(Holdfast("sqlite:///never-made.db", mail=settings), url) as hf:
        yield hf


@pytest.fixture
def until_over(mailing, manual_clock):
    """Turn the clock until no attempt is left to make."""

    async def turned(*sent, most=30):
        for _ in range(most):
            await drain(mailing)
            if all([await each.status() in _ENDS for one in sent for each in one.handles]):
                return
            manual_clock.advance(3_600)
        raise AssertionError("a mail is not over")

    return turned
