"""The files of the kit themselves: nothing inline, everything escaped, each module small, all of it in the wheel."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import holdfast.web.pages

ROOT = Path(__file__).parents[3]
KIT = Path(holdfast.web.pages.__file__).parent
sys.path.insert(0, str(ROOT / "tests" / "browser"))

from sample.app import app  # noqa: E402
from xss import CORPUS  # noqa: E402

TEMPLATES = sorted((KIT / "templates").rglob("*.*"))
SCRIPTS = sorted((KIT / "static").glob("*.js"))


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_has_nothing_inline(path):
    text = path.read_text()
    assert "safe" not in re.findall(r"\|\s*(\w+)", text)
    assert not re.findall(r"\sstyle\s*=|\son\w+\s*=|<style|javascript:|autoescape", text)
    assert not re.findall(r"<script(?![^>]*\ssrc=)", text)
    assert not re.findall(r"=\{\{", text), "every attribute has its quotes"
    for form in re.findall(r'<form[^>]*method="post".*?</form>', text, re.DOTALL):
        assert "csrf_field()" in form


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_module_is_small_and_makes_no_html(path):
    text = path.read_text()
    assert text.startswith("// "), "its first line says its job"
    assert len(text.splitlines()) < 120
    assert not re.findall(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|\.style\b", text
    )
    assert text.count("createPolicy") == (path.name == "swap.js")


class Skeleton(HTMLParser):
    """The elements of a page and the names of their attributes: what text must not change."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, *(name for name, _ in attrs)))
        for name, value in attrs:
            if name in ("href", "src", "action", "formaction"):
                assert not re.match(r"\s*(javascript|data|vbscript):|//", value or "", re.IGNORECASE), (
                    tag,
                    value,
                )

    def handle_endtag(self, tag):
        self.found.append(f"/{tag}")


def test_no_text_changes_what_a_page_is_made_of():
    """Every macro, filter and drawing with each attack in each of its places has the elements that it has with a plain word."""
    http = TestClient(app)

    def skeleton(text):
        page = http.get("/nasty", params={"x": text})
        assert page.status_code == 200, text
        return Skeleton(page.text).found

    plain = skeleton("word")
    assert len(plain) > 600
    for attack in CORPUS:
        assert skeleton(attack) == plain, attack


def test_the_wheel_has_templates_and_static_files(tmp_path):
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    for folder in ("templates", "static"):
        for path in (KIT / folder).rglob("*.*"):
            assert f"holdfast/web/pages/{path.relative_to(KIT).as_posix()}" in names
