"""What is said for people: written when someone reads, and no harm to anyone when nobody does."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from holdfast.kernel import voice
from holdfast.kernel.processes import exit_now

FULL = """
import os, sys
from holdfast.kernel import voice
from holdfast.kernel.processes import exit_now
os.set_blocking(2, False)
try:
    while True:
        os.write(2, b"x" * 1000)
except BlockingIOError:
    os.set_blocking(2, True)
sys.stdout.write("printed, and not flushed")
for _ in range(voice._MOST + 10):
    voice.say("nobody reads this")
"""


@pytest.fixture
def pipe():
    ends = list(os.pipe())
    yield ends
    for end in ends:
        os.close(end)


def _run(code, stderr, stdout=subprocess.PIPE):
    environment = {**os.environ, "PYTHONUNBUFFERED": ""}
    return subprocess.Popen([sys.executable, "-c", code], stderr=stderr, stdout=stdout, env=environment)


def test_what_is_said_is_written():
    code = "from holdfast.kernel import voice\nvoice.say('one')\nvoice.say('zw\\xf6lf \\ud800')\nvoice.hear_out()"
    process = _run(code, subprocess.PIPE)
    _, said = process.communicate(timeout=20)
    assert said.decode().splitlines() == ["one", "zwölf \\ud800"]


def test_a_stream_in_memory(capsys):
    voice.say("hello")
    assert capsys.readouterr().err == "hello\n"


@pytest.mark.parametrize("how", ["sys.stderr.close()", "sys.stderr = None", "os.close(2)"])
def test_without_a_stderr_nothing_is_said(how):
    code = f"import os, sys\nfrom holdfast.kernel import voice\n{how}\nvoice.say('x')\nvoice.hear_out()\nprint('on')"
    process = _run(code, subprocess.DEVNULL)
    assert process.communicate(timeout=20)[0] == b"on\n"


def test_the_last_words_do_not_wait_for_a_reader(pipe):
    """Nobody empties the pipe: the process ends all the same, with its code, and what can be written is."""
    process = _run(f"{FULL}\nexit_now(70)", pipe[1])
    assert process.communicate(timeout=20)[0] == b"printed, and not flushed"
    assert process.returncode == 70


def test_an_end_in_order_does_not_wait_for_a_reader(pipe):
    process = _run(f"{FULL}\nvoice.hear_out(0.05)\nsys.exit(3)", pipe[1])
    assert process.communicate(timeout=20)[0] == b"printed, and not flushed"
    assert process.returncode == 3


def test_the_last_words_to_a_reader_who_has_gone():
    ours, theirs = os.pipe()
    os.close(ours)
    said = "voice.say('x')\nsys.stdout.write('x')\nexit_now(70)"
    code = f"import sys\nfrom holdfast.kernel import voice\nfrom holdfast.kernel.processes import exit_now\n{said}"
    process = _run(code, theirs, theirs)
    os.close(theirs)
    assert process.wait(20) == 70


def test_an_end_at_once_is_an_end_whatever_fails(monkeypatch):
    """No thread can be started: nothing is written then."""

    class Ended(BaseException): ...

    def end(code):
        raise Ended(code)

    monkeypatch.setattr("threading.Thread.start", lambda _: 1 / 0)
    monkeypatch.setattr("os._exit", end)
    with pytest.raises(Ended, match="70"):
        exit_now(70)
