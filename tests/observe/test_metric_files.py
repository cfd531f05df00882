"""Numbers outlive their process, are added up once, and never fall, wherever a process is killed."""

from __future__ import annotations

import pytest

from holdfast.observe.metrics.cells import LOST, MOST, Cells, adopt, look
from holdfast.observe.metrics.folder import Folder
from holdfast.observe.metrics.journal import COUNTED, SENT, Block, Journal

RUNS = '["c","runs_total"]'
NOW = '["g","now"]'


def cells(folder, name):
    made = Cells(folder / f"{name}.cells")
    made.runs = made.place(("c", "runs_total"))
    made.now = made.place(("g", "now"))
    return made


async def nothing(sent):
    return []


async def test_the_numbers_of_the_dead_are_kept_and_what_was_so_then_is_not(tmp_path):
    first, second = cells(tmp_path, "1"), cells(tmp_path, "2")
    for each, runs in ((first, 3), (second, 4)):
        each.add(each.runs, runs)
        each.set(each.now, 1)
    folder = Folder(tmp_path)
    assert (folder.read()[RUNS], folder.read()[NOW]) == (7, 2)
    first.close()
    assert folder.read()[RUNS] == 7
    await folder.tidy(nothing)
    assert (folder.read()[RUNS], folder.read()[NOW]) == (7, 1)
    assert not first.path.exists()
    assert second.path.exists(), "its process lives"
    await folder.tidy(nothing)
    assert folder.read()[RUNS] == 7


async def test_who_is_killed_while_it_buries_counts_nothing_twice(tmp_path):
    left = cells(tmp_path, "1")
    left.add(left.runs, 5)
    left.close()
    folder = Folder(tmp_path)
    whole = left.path.read_bytes()
    await folder.tidy(nothing)
    left.path.write_bytes(whole)  # the rename was done, and the file is still there
    assert folder.read()[RUNS] == 5
    await folder.tidy(nothing)
    assert folder.read()[RUNS] == 5
    assert not left.path.exists()
    await folder.tidy(nothing)
    assert folder.read()[RUNS] == 5


@pytest.mark.parametrize("added", [[], [1.0]])
async def test_what_was_sent_is_settled_and_counted_once(tmp_path, added):
    left = cells(tmp_path, "1")
    left.add(left.runs, 2)
    block = Journal(left).take()
    block.sent(f"job {left.runs}".encode())
    left.close()
    asked = []

    async def settle(sent):
        asked.append(sent)
        return [(left.runs, number) for number in added]

    folder = Folder(tmp_path)
    await folder.tidy(settle)
    await folder.tidy(settle)
    assert asked == [f"job {left.runs}".encode()]
    assert folder.read()[RUNS] == 2 + sum(added)


async def test_what_cannot_be_told_yet_waits(tmp_path):
    left = cells(tmp_path, "1")
    left.add(left.runs, 2)
    Journal(left).take().sent(b"job")
    left.close()
    answers = [None, [(left.runs, 1.0)]]

    async def settle(sent):
        return answers.pop(0)

    folder = Folder(tmp_path)
    await folder.tidy(settle)
    assert folder.read()[RUNS] == 2
    assert left.path.exists()
    await folder.tidy(settle)
    assert folder.read()[RUNS] == 3


async def test_a_count_that_was_cut_off_is_finished(tmp_path, monkeypatch):
    left = cells(tmp_path, "1")
    left.add(left.runs, 2)
    block = Journal(left).take()
    block.sent(b"job")
    with monkeypatch.context() as cut:
        cut.setattr(
            Block, "finish", lambda self: None
        )  # killed with the numbers written down, and not yet in place
        block.count([(left.runs, 3.0)])
    assert block.state == COUNTED
    left.numbers[left.runs] = 5.0  # or in place already
    left.close()
    folder = Folder(tmp_path)
    await folder.tidy(nothing)
    assert folder.read()[RUNS] == 5


def test_a_block_is_given_back_and_says_nothing_more(tmp_path):
    mine = cells(tmp_path, "1")
    journal = Journal(mine)
    block = journal.take()
    block.sent(b"job")
    assert block.state == SENT
    journal.give_back(block)
    assert block.state == 0
    taken = [journal.take() for _ in range(1_000)]
    assert None in taken, "there is an end to them, and then nobody waits"


def test_nobody_adopts_the_living(tmp_path):
    mine = cells(tmp_path, "1")
    assert adopt(mine.path) is None
    mine.add(mine.runs, 2)
    assert look(mine.path)[RUNS] == 2
    mine.close()
    left = adopt(mine.path)
    assert adopt(mine.path) is None, "only one does"
    left.close()


def test_there_is_an_end_to_the_numbers(tmp_path):
    mine = Cells()
    places = [mine.place(("c", "many_total", str(number))) for number in range(MOST + 10)]
    assert places.count(LOST) == 11
    assert len(mine.read()) == MOST


def test_the_files_are_for_the_owner_alone(tmp_path):
    mine = cells(tmp_path, "1")
    assert mine.path.stat().st_mode & 0o077 == 0
