"""A bulkhead in a forked child: the threads that had its permits do not exist there."""

from holdfast.guards import Bulkhead


def test_permits_of_the_parents_threads_are_free():
    bulkhead = Bulkhead(2)
    assert bulkhead.try_acquire()
    assert bulkhead.try_acquire()
    bulkhead.forked()
    assert bulkhead.free == 2
    assert bulkhead.try_acquire()
    bulkhead.release()
    bulkhead.release()  # by the thread that has forked, in the middle of its call
    bulkhead.release()
    assert bulkhead.free == 2
