"""How much a limiter adapts, how long it pauses, and what it says of that."""

import pytest

from holdfast import Backoff
from holdfast.guards import Guard, Limiter
from holdfast.kernel.errors import UsageError
from holdfast.kernel.notes import find


def test_how_much_an_answer_and_being_throttled_change(clock):
    limiter = Limiter(rate=100, floor=1, ceiling=1000, increase=0.5, decrease=0.75)
    limiter.throttled()
    assert limiter.rate() == pytest.approx(25)
    clock.advance(1)
    limiter.succeeded()
    assert limiter.rate() == pytest.approx(50)


def test_as_ever_when_nothing_is_said(clock):
    limiter = Limiter(rate=100, floor=1, ceiling=1000)
    limiter.throttled()
    assert limiter.rate() == pytest.approx(50)
    clock.advance(1)
    limiter.succeeded()
    assert limiter.rate() == pytest.approx(50 / 0.9)


@pytest.mark.parametrize(("jitter", "most"), [(0.0, 0.0), (1.0, 60.0)])
def test_a_pause_is_longer_by_at_most_its_jitter(clock, jitter, most):
    pauses = []
    for _ in range(50):
        limiter = Limiter(rate=10, pause_jitter=jitter)
        limiter.throttled(60)
        pauses.append(limiter.record().paused_for - 60)
    assert min(pauses) >= 0
    assert max(pauses) <= most
    assert not most or max(pauses) > 12  # more than by default


class TooMany(Exception):
    def __init__(self, **headers):
        super().__init__("too many")
        self.status_code, self.headers = 429, headers


@pytest.mark.parametrize(
    "headers", [{"Retry-After": "3000"}, {"RateLimit-Remaining": "0", "RateLimit-Reset": "3000"}]
)
@pytest.mark.parametrize(("longest", "paused"), [(60, 60), (300, 300), (7200, 3000)])
async def test_who_may_pause_for_longer_does(headers, longest, paused):
    guard = Guard("api", limiter=Limiter(rate=10, longest_pause=longest, pause_jitter=0))

    async def ask():
        raise TooMany(**headers)

    with pytest.raises(TooMany):
        await guard.call(ask)
    assert guard.limiter.record().paused_for == pytest.approx(paused, abs=1)


async def test_a_retry_waits_as_long_as_the_limiter_may_pause():
    """It was cut to 300 seconds, so a retry came too early and was refused."""
    guard = Guard("api", retry=Backoff(attempts=2, ceiling=600), limiter=Limiter(rate=10, longest_pause=7200))
    calls = []

    async def ask():
        calls.append(1)
        raise TooMany(**{"Retry-After": "1800"})

    with pytest.raises(TooMany):
        await guard.call(ask)
    assert len(calls) == 1  # whoever waits for it would wait too long


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"increase": 0.1}, r"increase=0\.1 has no meaning for a rate that never changes"),
        ({"decrease": 0.5}, "Give the limiter floor= or ceiling="),
        ({"floor": 1, "increase": 0}, r"increase must be from 0\.001 to 0\.9, not 0"),
        ({"floor": 1, "increase": 10}, r"For 10 % write 0\.1"),
        ({"floor": 1, "decrease": 1}, r"decrease must be from 0\.01 to 0\.99, not 1"),
        ({"floor": 1, "decrease": "half"}, "decrease must be a number"),
        ({"pause_jitter": -0.1}, "pause_jitter must be from 0 to 1"),
        ({"pause_jitter": 20}, r"For 20 % write 0\.2"),
    ],
)
def test_what_makes_no_sense_is_refused(options, told):
    with pytest.raises(UsageError, match=told):
        Limiter(rate=10, **options)


# --- what it says ---


def lines(notes):
    """As the log has them, without what is not said."""
    return [fields for name, fields in notes if name == "limiter.held_up"]


def test_one_line_in_ten_seconds_and_a_note_of_each(clock, notes):
    limiter = Limiter(rate=300, floor=1, per="{user}", name="pay", pause_jitter=0)
    for user in range(20):
        limiter.throttled(1.2, key=f"{user}")
        clock.advance(0.1)
    assert [name for name, _ in notes].count("limiter.slowed") == 20
    clock.advance(10)
    limiter.throttled(2, key="0")
    assert lines(notes) == [
        {
            "limiter": "pay",
            "key": "0",
            "why": "the other side says that these are too many calls",
            "paused_for": 1.2,
            "slowed_to": 150,
            "full": 300,
            "more": 0,
        },
        {
            "limiter": "pay",
            "key": "0",
            "why": "the other side says that these are too many calls",
            "paused_for": 2,
            "slowed_to": 75,
            "full": 300,
            "more": 19,
        },
    ]


def test_a_rate_that_does_not_change_is_not_told(clock, notes):
    limiter = Limiter(rate=300, name="pay")
    limiter.throttled(1.19871682126427)
    [line] = lines(notes)
    assert (line["slowed_to"], line["full"], line["key"]) == (None, None, "")
    assert line["paused_for"] == round(line["paused_for"], 2)


def test_the_sentence_leaves_out_what_there_is_not():
    entry = find("limiter.held_up")
    assert entry.sentence.startswith("limiter {limiter}[ ({key})]: {why}; nobody calls for {paused_for} s[")
