"""Whatever happens to the calls: open admits none, half-open at most its permits, and it is always left again."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from virtual import StillWorld

from holdfast.guards import Breaker, BreakerOpen, State
from holdfast.kernel import world as kernel_world

LEASE, COOLDOWN = 30.0, 10.0
FORMS = [
    {"failures": 2},
    {"failures": 2, "window": 20},
    {"failure_ratio": 0.5, "minimum": 3, "window": 20},
]


class Calls(RuleBasedStateMachine):
    """Many callers, each of which may succeed, fail, be cancelled, never call, or never be heard of again."""

    def __init__(self):
        super().__init__()
        self.clock = StillWorld()
        self.inside = kernel_world.inhabit(self.clock)
        self.inside.__enter__()
        self.out = []  # permits, with the state that they were given in
        self.recorded = 0
        self.admitted = 0

    def teardown(self):
        self.inside.__exit__(None, None, None)

    @initialize(form=st.sampled_from(FORMS), permits=st.integers(1, 3))
    def make(self, form, permits):
        self.permits = permits
        self.breaker = Breaker(**form, permits=permits, cooldown=COOLDOWN, lease=LEASE, slow=5)

    @rule()
    def call(self):
        state = self.breaker.state
        try:
            permit = self.breaker.admit()
        except BreakerOpen:
            assert state is not State.CLOSED
        else:
            assert state is not State.OPEN
            self.admitted += 1
            self.out.append((permit, self.clock.monotonic()))

    @precondition(lambda self: self.out)
    @rule(data=st.data(), how=st.sampled_from(["well", "badly", "cut_off", "not_made"]))
    def ends(self, data, how):
        permit, _ = self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))
        before = (self.breaker.generation, self.breaker._switch.state)
        late = permit.generation != self.breaker.generation
        match how:
            case "well":
                permit.record()
            case "badly":
                permit.record(ConnectionError())
            case "cut_off":
                permit.cut_off()
            case "not_made":
                permit.not_made()
        if late:
            assert (self.breaker.generation, self.breaker._switch.state) == before

    @precondition(lambda self: self.out)
    @rule()
    def is_never_heard_of_again(self):
        self.out.pop(0)

    @rule(seconds=st.sampled_from([0.1, 1.0, 6.0, 11.0, 31.0]))
    def time_passes(self, seconds):
        self.clock.advance(seconds)

    @invariant()
    def half_open_has_at_most_its_permits(self):
        if not hasattr(self, "breaker"):
            return
        now, generation = self.clock.monotonic(), self.breaker.generation
        probes = [
            permit
            for permit, since in self.out
            if permit.number and permit.generation == generation and now < since + LEASE
        ]
        assert len(probes) <= self.permits

    @rule()
    def left_alone_it_leaves_half_open(self):
        """From anywhere: two leases later, calls that go well close it."""
        for _ in range(10):
            if self.breaker.state is State.CLOSED:
                return
            self.clock.advance(LEASE + COOLDOWN * 1.2)
            for _ in range(self.permits):
                try:
                    self.breaker.admit().record()
                except BreakerOpen:
                    break
        raise AssertionError(f"it stays {self.breaker.state}")


TestBreakerCalls = Calls.TestCase
TestBreakerCalls.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
