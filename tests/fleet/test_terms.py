"""On which terms a fleet's quota is granted: whatever the delays within them, the limiter's bound holds."""

from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.fleet.terms import terms_of

RATES = st.floats(0.01, 100_000)
BURSTS = st.floats(1, 100_000)


@given(RATES, BURSTS, st.floats(0.01, 1))
@example(10, 10, 1)
@example(1000, 1, 1)
@example(0.01, 100_000, 1)
def test_the_bucket_and_what_is_still_in_hand_are_never_more_than_the_burst(fastest, burst, part):
    terms = terms_of(fastest, burst)
    rate = terms.rate(fastest * part)
    assert 0 < terms.lasts <= 1
    assert 1 <= terms.size <= burst
    assert rate <= fastest * part * (1 + 1e-9)
    if terms.size > 1:
        assert rate * terms.lasts + terms.size <= burst * (1 + 1e-9)
    else:  # one call at a time: granted so far apart that they are never made too close together
        assert 1 / rate - terms.lasts >= 1 / (fastest * part) - 1e-9 or rate * terms.lasts + 1 <= burst + 1e-9


@given(RATES)
def test_with_a_second_of_burst_nothing_of_the_rate_is_lost(rate):
    terms = terms_of(rate, max(1.2, rate))
    assert terms.rate(rate) >= rate / 1.06 or rate > 1
    if rate >= 2:
        assert terms.rate(rate) == rate
