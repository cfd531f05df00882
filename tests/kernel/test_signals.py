"""Signals that ask to leave: heard once in a moment, on the loop or beside it, and forgotten at the end."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest
from waiting import until

from holdfast.kernel import signals
from holdfast.kernel.signals import on_signals


def send(number):
    os.kill(os.getpid(), number)


@pytest.fixture
def moment(monkeypatch):
    """How long two signals are one."""
    monkeypatch.setattr(signals, "_ONE_MOMENT", 0.05)
    return 0.1


async def test_two_within_a_moment_are_one():
    heard = []
    end = on_signals(heard.append)
    send(signal.SIGTERM)
    send(signal.SIGINT)
    await until(lambda: heard)
    end()
    assert len(heard) == 1


async def test_the_second_is_heard_while_the_loop_stands_still(moment):
    first, second = [], threading.Event()
    end = on_signals(first.append, again=lambda _: second.set())
    send(signal.SIGTERM)
    time.sleep(moment)  # not a turn of the loop
    send(signal.SIGINT)
    assert second.wait(5)
    assert first == []
    await until(lambda: first == [signal.SIGTERM])
    end()


async def test_a_key_held_down_is_a_second_signal(moment):
    """Each comes within a moment of the one before."""
    first, second = [], threading.Event()
    end = on_signals(first.append, again=lambda _: second.set())
    began = time.monotonic()
    while not second.is_set() and time.monotonic() < began + 5:
        send(signal.SIGINT)
        time.sleep(moment / 10)
    end()
    assert second.is_set()


async def test_without_again_each_is_told_on_the_loop(moment):
    heard = []
    end = on_signals(heard.append)
    send(signal.SIGTERM)
    await until(lambda: len(heard) == 1)
    time.sleep(moment)
    send(signal.SIGINT)
    await until(lambda: heard == [signal.SIGTERM, signal.SIGINT])
    end()


async def test_a_loop_that_stands_still_after_its_patience_is_stuck(monkeypatch):
    monkeypatch.setattr(signals, "_A_TURN", 0.05)
    stuck, heard = threading.Event(), []
    end = on_signals(heard.append, patience=0.1, stuck=stuck.set)
    send(signal.SIGTERM)
    began = time.monotonic()
    await until(lambda: heard and time.monotonic() > began + 0.4)  # it turns
    assert not stuck.is_set()
    assert stuck.wait(5)  # this line blocks it
    end()


async def test_the_end_puts_back_what_was_there(left_threads):
    before = [signal.getsignal(number) for number in signals.NUMBERS]
    on_signals(lambda _: None)()
    assert [signal.getsignal(number) for number in signals.NUMBERS] == before
    assert not left_threads("holdfast-signals")


async def test_whoever_fails_on_a_signal_hears_the_next(moment):
    """The thread that hears signals goes on."""
    told = []

    def fails(number):
        told.append(number)
        raise OSError("nobody reads what is said")

    end = on_signals(lambda _: None, again=fails)
    for count in range(3):
        send(signal.SIGTERM)
        time.sleep(moment)
        await until(lambda count=count: len(told) == count)
    end()
