"""The page on pages: its program and its templates, as they stand there."""

from __future__ import annotations

import importlib.util
import re

import pytest
from docs_examples import ROOT, blocks
from starlette.routing import Route
from starlette.testclient import TestClient


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "templates").mkdir()
    for name, text in zip(("orders", "add", "table"), blocks("docs/pages.md", "html"), strict=True):
        (tmp_path / "templates" / f"{name}.html").write_text(text)
    (tmp_path / "shop.py").write_text("\n".join(blocks("docs/pages.md", "python")))
    spec = importlib.util.spec_from_file_location("shop_of_the_docs", tmp_path / "shop.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    routes = [Route("/add", module.add, methods=["GET", "POST"]), Route("/table", module.table)]
    module.app._app.router.routes += routes
    return TestClient(module.app)


def test_the_first_page(shop):
    page = shop.get("/")
    assert "7: 1,250 pieces" in page.text
    parts = shop.get("/", headers={"x-holdfast-regions": "#orders"})
    assert parts.text.startswith('<ul id="orders" data-region>')
    again = {"x-holdfast-regions": "#orders", "x-holdfast-version": parts.headers["x-holdfast-version"]}
    assert shop.get("/", headers=again).status_code == 204


def test_its_form(shop):
    wrong = shop.post("/add", data={"pieces": "many", "back": "a=1"})
    assert wrong.status_code == 422
    assert "&#39;many&#39; is no number. Write one, such as 12." in wrong.text
    assert 'name="back" value="a=1"' in wrong.text
    right = shop.post("/add", data={"pieces": "12", "back": "a=1"})
    assert right.url.path + "?" + right.url.query.decode() == "/?a=1"
    assert "The order is added" in right.text
    assert "8: 12 pieces" in right.text


def test_its_table(shop):
    for _ in range(60):
        shop.post("/add", data={"pieces": "5"})
    first = shop.get("/table")
    assert "1 to 50 of 10,000+" in first.text
    older = shop.get("/table" + re.search(r'href="(\?older=[^"]+)"', first.text)[1])
    assert "51 to 61 of 10,000+" in older.text
    newer = shop.get("/table" + re.search(r'href="(\?newer=[^"]+)"', older.text)[1])
    assert "1 to 50 of 10,000+" in newer.text


def test_its_pictures_are_there():
    for name in re.findall(r"\]\((pages-\w+\.png)\)", (ROOT / "docs/pages.md").read_text()):
        assert (ROOT / "docs" / name).stat().st_size > 10_000
