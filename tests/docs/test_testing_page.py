"""The page on testing works when it is pasted: its program, its conftest and its tests, in a pytest of their own."""

from __future__ import annotations

import os
import subprocess
import sys

from docs_examples import ROOT, blocks


def run_pytest(folder, *words):
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{folder}"}
    environment.pop("PYTEST_ADDOPTS", None)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "holdfast_pytest", "-o", "asyncio_mode=auto", "-q", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_page_on_testing(tmp_path):
    program, conftest, *tests = blocks("docs/testing.md", "python")
    (tmp_path / "shop.py").write_text(program)
    (tmp_path / "conftest.py").write_text(conftest)
    (tmp_path / "test_shop.py").write_text("\n".join(tests))
    done = run_pytest(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 passed" in done.stdout
    assert not (tmp_path / "holdfast.db").exists()


def test_the_message_on_the_page(tmp_path):
    program, conftest, *tests = blocks("docs/testing.md", "python")
    (tmp_path / "shop.py").write_text(program)
    (tmp_path / "conftest.py").write_text(conftest)
    failing = tests[1].replace(
        "[waiting] =", 'await assert_enqueued(hf, send, address="eve@example.org")\n    #'
    )
    (tmp_path / "test_shop.py").write_text(tests[0] + failing)
    done = run_pytest(tmp_path)
    [message, *_] = [block for block in blocks("docs/testing.md", "") if "AssertionError" in block]
    for line in message.splitlines():
        assert line in done.stdout
