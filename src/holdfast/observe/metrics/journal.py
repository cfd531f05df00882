"""Ends on their way to the store, written down before: so each is counted once, also when the process is killed in between.

A block is free, or says what was SENT, or what the numbers ARE once it is counted. Numbers are written down as they will be, not as
what is added: whoever finds such a block may write them again.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from holdfast.observe.metrics.cells import BLOCK, BLOCKS, Cells

FREE, SENT, COUNTED = 0, 1, 2
_STATE, _SENT, _COUNTED = 0, 1, 2  # words of a block: its state, and the lengths of its two parts
_BEGIN, _MIDDLE = 64, BLOCK * 3 // 4  # bytes: what was sent, and what is counted
_PAIR = struct.Struct("=Qd")
ROOM = _MIDDLE - _BEGIN  # bytes of what was sent


class Journal:
    """The blocks of one process's numbers."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._free = list(range(BLOCKS))

    def take(self) -> Block | None:
        """None: all are in use, or the disk is full. Then an end is not counted when the process is killed before the store has answered."""
        if not self._free or not self._cells.has_room_for(self._free[-1]):
            return None
        return Block(self._cells, self._free.pop())

    def give_back(self, block: Block) -> None:
        block.state = FREE
        self._free.append(block.number)


class Block:
    """One of them. Its parts are written before its state, and each state has a part of its own."""

    __slots__ = ("_bytes", "_cells", "_words", "number")

    def __init__(self, cells: Cells, number: int) -> None:
        self._cells, self.number = cells, number
        self._bytes = cells.block(number)
        self._words = self._bytes.cast("Q")

    @property
    def state(self) -> int:
        return self._words[_STATE]

    @state.setter
    def state(self, state: int) -> None:
        self._words[_STATE] = state

    def sent(self, text: bytes) -> None:
        """At most ROOM bytes."""
        self.state = FREE
        self._bytes[_BEGIN : _BEGIN + len(text)] = text
        self._words[_SENT] = len(text)
        self.state = SENT

    def what_was_sent(self) -> bytes:
        return bytes(self._bytes[_BEGIN : _BEGIN + self._words[_SENT]])

    def count(self, added: Sequence[tuple[int, float]]) -> None:
        """Add to the numbers at these places, whole, whenever this is cut off. The caller has the lock of the cells."""
        numbers, at = self._cells.numbers, _MIDDLE
        for place, number in added:
            _PAIR.pack_into(self._bytes, at, place, numbers[place] + number)
            at += _PAIR.size
        self._words[_COUNTED] = len(added)
        self.state = COUNTED
        self.finish()

    def finish(self) -> None:
        """Write the numbers down. What was counted before this process was is counted by it."""
        for number in range(self._words[_COUNTED]):
            place, value = _PAIR.unpack_from(self._bytes, _MIDDLE + number * _PAIR.size)
            self._cells.numbers[place] = value
        self.state = FREE


def left_in(cells: Cells) -> Iterator[Block]:
    """The blocks that are not free, of a process that is gone."""
    for number in range(BLOCKS):
        block = Block(cells, number)
        if block.state != FREE:
            yield block
