"""What the pages show works when it is pasted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from docs_examples import blocks

from tools import saga_story


def environment():
    """`python` is the one that runs the tests."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def test_the_first_example_of_the_readme(tmp_path):
    [program, *_] = blocks("README.md", "python")
    [commands, *_] = blocks("README.md", "sh")
    (tmp_path / "shop.py").write_text(program)
    done = subprocess.run(
        ["bash", "-c", commands],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "order 1: attempt 1 begins" in done.stdout, done.stderr
    assert "order 1: attempt 2 begins" in done.stdout, done.stderr
    assert done.stdout.rstrip().endswith("parcels: [(1,)]"), done.stdout
    assert "was lost with worker" in done.stderr


def pasted(page, folder):
    """What all of its blocks print, one after the other in one program."""
    (folder / "page.py").write_text("\n".join(blocks(page, "python")))
    done = subprocess.run(
        [sys.executable, "page.py"], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_page_on_jobs(tmp_path):
    story, *_ = blocks("docs/jobs.md", "text")
    assert pasted("docs/jobs.md", tmp_path) == f"hello ada\n{story}"


def test_the_page_on_logging_prints_what_it_says(tmp_path):
    said = pasted("docs/logging.md", tmp_path)
    said = re.sub(r"\[01..\]", "[01a1]", re.sub(r"job 01[\w-]+", "job 01a1…", said))
    said = re.sub(r'"/\S+/page', '"…/page', re.sub(r"in 0[.\d]* s", "in 0.1 s", said))
    assert said == "".join(blocks("docs/logging.md", "text"))


def test_the_page_on_sync_programs_prints_what_it_says(tmp_path):
    assert pasted("docs/sync.md", tmp_path) == "".join(blocks("docs/sync.md", "text"))


def test_the_page_on_steps_prints_what_it_says(tmp_path):
    assert pasted("docs/steps.md", tmp_path) == "".join(blocks("docs/steps.md", "text"))


def test_the_page_on_sagas_prints_what_it_says(tmp_path):
    assert pasted("docs/sagas.md", tmp_path) == "".join(blocks("docs/sagas.md", "text"))


def test_the_story_of_a_saga_is_what_happens():
    """Real processes, one of them killed, and a lease that has to end."""
    page = saga_story.PAGE.read_text()
    assert saga_story.rendered(page) == page, "run `python -m tools.saga_story`, and look at what changed"


def test_the_page_on_guards_prints_what_it_says(tmp_path):
    shown = [block for block in blocks("docs/guards.md", "text") if "▶" not in block]  # one is a picture
    assert pasted("docs/guards.md", tmp_path) == "".join(shown)


def test_the_page_on_views_prints_what_it_says(tmp_path):
    assert pasted("docs/views.md", tmp_path) == "".join(blocks("docs/views.md", "text"))


def test_the_page_on_events_prints_what_it_says(tmp_path):
    assert pasted("docs/events.md", tmp_path) == "".join(blocks("docs/events.md", "text"))


def test_the_page_on_sqlalchemy_prints_what_it_says(tmp_path):
    assert pasted("docs/sqlalchemy.md", tmp_path) == "".join(blocks("docs/sqlalchemy.md", "text"))


def test_the_page_on_the_cache_prints_what_it_says(tmp_path):
    assert pasted("docs/cache.md", tmp_path) == "".join(blocks("docs/cache.md", "text"))
