"""Events into rows: late versions, several sources, what fails and is taken later; whatever the batches, the same rows."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel.ids import new_id
from holdfast.store.event_records import OutboxEvent
from holdfast.store.view_records import Aside, Loaded, ViewRow
from holdfast.views.fold import WAITS, Fold, hear, hear_again, keys_of
from holdfast.views.projection import Projection


def published(position, *, key="order:1", version=None, row="a", value=0, kind="order.changed"):
    """An event in the log, for the row it names."""
    return OutboxEvent(
        seq=position,
        id=new_id(),
        type=kind,
        key=key,
        version=None if key is None else version or position,
        data=msgspec.json.encode({"row": row, "value": value}).decode(),
        time=1.0,
        correlation_id=None,
        causation_id=None,
        trace=None,
        state="published",
        position=position,
        published_at=1.0,
        tries=0,
        error=None,
    )


class Shelf:
    """What a store would keep of one generation."""

    def __init__(self):
        self.rows, self.asides = {}, {}

    def load(self, keys):
        held = frozenset(each.key for each in self.asides.values() if each.key in keys)
        return Loaded(tuple(self.rows[key] for key in keys if key in self.rows), held)

    def keep(self, fold, settled=()):
        for row in fold.rows:
            before = self.rows.get(row.key)
            assert before is None or before.position < row.position
            self.rows[row.key] = ViewRow(**msgspec.structs.asdict(row), updated_at=0.0)
        for event in fold.aside:
            kept = msgspec.structs.asdict(event)
            self.asides[event.position] = Aside(view="v", generation=1, tries=1, at=0.0, tried_at=0.0, **kept)
        for position in settled:
            del self.asides[position]


def batch(projection, shelf, events):
    heard = hear(projection, events)
    fold = Fold(projection, shelf.load(keys_of(heard)))
    for each in heard:
        fold.take(each)
    shelf.keep(fold)
    return fold


def again(projection, shelf):
    heard = hear_again(projection, [shelf.asides[position] for position in sorted(shelf.asides)])
    fold = Fold.again(projection, shelf.load(keys_of(heard)))
    settled = [each.position for each in heard if fold.take_again(each)]
    shelf.keep(fold, settled)


def listing(row, event):
    """The values in their order; a negative one deletes."""
    value = event.data["value"]
    return None if value < 0 else [*(row or []), value]


def view(function=listing, **options):
    return Projection("v", function, on="order.*", key=lambda event: event.data["row"], **options)


def rows_of(shelf):
    return {key: row.data for key, row in shelf.rows.items()}


def test_events_become_rows():
    shelf = Shelf()
    batch(view(), shelf, [published(1, value=5), published(2, row="b", value=7), published(3, value=6)])
    assert rows_of(shelf) == {"a": "[5,6]", "b": "[7]"}
    assert [(row.source, row.position) for row in shelf.rows.values()] == [("order:1", 3), ("order:1", 2)]


def test_what_it_does_not_hear_is_nothing_to_it():
    shelf = Shelf()
    assert batch(view(), shelf, [published(1, kind="ship.sent")]).rows == ()


def test_a_late_version_is_ignored():
    """One that was quarantined while those behind it went on has a later position and an older version."""
    shelf = Shelf()
    events = [
        published(1, version=1, value=1),
        published(2, version=3, value=3),
        published(3, version=2, value=2),
    ]
    fold = batch(view(), shelf, events)
    assert rows_of(shelf) == {"a": "[1,3]"}
    assert [each.position for each in fold.late] == [3]
    assert (shelf.rows["a"].version, shelf.rows["a"].position) == (3, 2)


def test_a_late_version_may_count():
    shelf = Shelf()
    batch(view(late="apply"), shelf, [published(1, version=2, value=2), published(2, version=1, value=1)])
    assert rows_of(shelf) == {"a": "[2,1]"}


def test_a_late_version_does_not_bring_back_what_was_deleted():
    shelf = Shelf()
    batch(view(), shelf, [published(1, version=1, value=1), published(2, version=3, value=-1)])
    batch(view(), shelf, [published(3, version=2, value=2)])
    assert rows_of(shelf) == {"a": None}
    batch(view(), shelf, [published(4, version=4, value=4)])
    assert rows_of(shelf) == {"a": "[4]"}


def test_a_row_of_several_keys_goes_by_position():
    shelf = Shelf()
    events = [published(1, key="x", version=9, value=1), published(2, key="y", version=1, value=2)]
    batch(
        view(), shelf, [*events, published(3, key="x", version=9, value=3), published(4, key=None, value=4)]
    )
    assert rows_of(shelf) == {"a": "[1,2,3,4]"}
    assert (shelf.rows["a"].source, shelf.rows["a"].version, shelf.rows["a"].position) == (None, None, 4)


def test_a_row_waits_for_what_is_set_aside_and_others_do_not():
    shelf = Shelf()
    poison = view(lambda row, event: 1 / event.data["value"] and listing(row, event))
    batch(poison, shelf, [published(1, value=1), published(2, value=0), published(3, value=3)])
    batch(poison, shelf, [published(4, row="b", value=4), published(5, value=5)])
    assert rows_of(shelf) == {"a": "[1]", "b": "[4]"}
    assert {position: aside.error for position, aside in shelf.asides.items()}.keys() == {2, 3, 5}
    assert "ZeroDivisionError" in shelf.asides[2].error
    assert shelf.asides[3].error == shelf.asides[5].error == WAITS
    again(poison, shelf)
    assert shelf.asides.keys() == {2, 3, 5}
    again(view(), shelf)
    assert rows_of(shelf) == {"a": "[1,0,3,5]", "b": "[4]"}
    assert shelf.asides == {}


def test_an_event_whose_row_is_not_known_is_set_aside_alone():
    shelf = Shelf()
    lost = Projection("v", listing, on="order.*", key="missing")
    batch(lost, shelf, [published(1), published(2)])
    assert [aside.key for aside in shelf.asides.values()] == [None, None]
    again(view(), shelf)
    assert rows_of(shelf) == {"a": "[0,0]"}


def test_a_row_that_went_on_without_an_event_does_not_take_it():
    shelf = Shelf()
    batch(Projection("v", listing, on="order.*", key="missing"), shelf, [published(1, value=1)])
    batch(view(), shelf, [published(2, value=2)])
    again(view(), shelf)
    assert rows_of(shelf) == {"a": "[2]"}
    assert "Rebuild" in shelf.asides[1].error
    batch(view(), shelf, [published(3, value=3)])
    again(view(), shelf)
    assert rows_of(shelf) == {"a": "[2,3]"}, "its row goes on, as it did before the key was found"
    assert shelf.asides.keys() == {1}


def test_what_a_view_does_not_hear_any_more_holds_no_row():
    shelf = Shelf()
    poison = view(lambda row, event: 1 / event.data["value"] and listing(row, event))
    batch(
        poison, shelf, [published(1, value=1), published(2, value=0, kind="order.odd"), published(3, value=3)]
    )
    narrower = Projection("v", poison.function, on="order.changed", key=lambda event: event.data["row"])
    again(narrower, shelf)
    assert rows_of(shelf) == {"a": "[1,3]"}
    assert shelf.asides == {}


changes = st.lists(
    st.tuples(
        st.sampled_from("abc"),  # the row
        st.sampled_from(["k1", "k2", None]),
        st.integers(1, 5),  # the version: also late ones
        st.integers(-1, 3),
        st.booleans(),  # it cannot be taken for now
    ),
    max_size=25,
)


@given(changes, st.lists(st.integers(1, 6), max_size=25), st.sampled_from(["ignore", "apply"]))
def test_whatever_the_batches_the_rows_are_those_of_a_rebuild(changes, sizes, late):
    """I30: no row ever goes back, and after all is taken the rows are those of one pass from the start."""
    events = [
        published(place, row=row, key=key, version=version, value=value)
        for place, (row, key, version, value, _) in enumerate(changes, 1)
    ]
    broken = {event.id for event, change in zip(events, changes, strict=True) if change[4]}

    def fails(row, event):
        if event.id in broken:
            raise ValueError("not yet")
        return listing(row, event)

    shelf, whole = Shelf(), Shelf()
    left, sizes = list(events), iter(sizes)
    while left:
        size = next(sizes, 4)
        batch(view(fails, late=late), shelf, left[:size])
        left = left[size:]
    while shelf.asides:
        broken.discard(shelf.asides[min(shelf.asides)].event_id)
        again(view(fails, late=late), shelf)
    batch(view(late=late), whole, events)
    assert shelf.rows == whole.rows
