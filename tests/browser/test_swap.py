"""swap.js alone, against pairs of trees, and what it leaves as it is."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.asyncio(loop_scope="session")

TREES = [
    ("equal", "<p>a</p>", "<p>a</p>"),
    ("text", "<p>a</p>", "<p>b</p>"),
    ("attributes", '<p class="a" title="x">a</p>', '<p class="b" lang="en">a</p>'),
    ("tag", "<p>a</p>", "<h2>a</h2>"),
    ("added at the end", "<p>a</p>", "<p>a</p><p>b</p>"),
    ("added before", "<p>b</p>", "<h2>a</h2><p>b</p>"),
    ("removed", "<p>a</p><p>b</p><p>c</p>", "<p>c</p>"),
    ("emptied", "<p>a</p>text<b>b</b>", ""),
    ("filled", "", "<p>a</p>text<b>b</b>"),
    ("text between", "one<b>two</b>three", "<b>two</b>three<i>four</i>five"),
    ("comment", "<!-- a --><p>a</p>", "<!-- b --><p>b</p>"),
    ("rows added in front", '<i id="b">b</i><i id="c">c</i>', '<i id="a">a</i><i id="b">b</i><i id="c">c</i>'),
    ("rows turned", '<i id="a">a</i><i id="b">b</i><i id="c">c</i>', '<i id="c">C</i><i id="b">b</i><i id="a">a</i>'),
    ("first to last", '<i id="a">a</i><i id="b">b</i><i id="c">c</i>', '<i id="b">b</i><i id="c">c</i><i id="a">a</i>'),
    ("all others", '<i id="a">a</i><i id="b">b</i>', '<i id="c">c</i><i id="d">d</i>'),
    ("id on another tag", '<i id="a">a</i><i id="b">b</i>', '<b id="b">b</b><i id="a">a</i>'),
    ("id gone", '<i id="a">a</i>', "<i>a</i>"),
    ("data-key", '<i data-key="1">a</i><i data-key="2">b</i>', '<i data-key="2">b</i><i data-key="3">c</i>'),
    ("mixed", 'x<i id="a">a</i><p>p</p>y', '<p>q</p>z<i id="a">A</i>'),
    ("deep", "<div><ul><li>1<li>2</ul></div>", "<div><ul><li>2<li>3<li>4</ul><p>x</p></div>"),
    ("table", "<table><tbody><tr><td>1</table>", "<table><tbody><tr><td>1<td>2<tr><td>3</table>"),
    ("drawing", '<svg><rect x="1"/></svg>', '<svg viewBox="0 0 1 1"><rect x="2"/><line x1="0"/></svg>'),
    ("select", "<select><option>a</select>", "<select><option selected>b<option>c</select>"),
    ("script data", '<p data-x="&lt;b&gt;">&amp;</p>', '<p data-x="&lt;i&gt;">&lt;script&gt;</p>'),
]  # fmt: skip
SWAP = """async ([before, after]) => {
  const { parse, swap } = await import(document.querySelector("script").src.replace("app.js", "swap.js"));
  const stage = document.getElementById("stage");
  const tree = (html) => document.importNode(parse(`<div id="stage">${html}</div>`).getElementById("stage"), true);
  stage.replaceWith(tree(before));
  const old = document.getElementById("stage");
  swap(old, tree(after));
  return [old.isConnected, old.innerHTML, tree(after).innerHTML];
}"""
# `stage` is filled, then prepared by the first function, swapped, and looked at by the second.
KEPT = """async ([before, after, prepare, look]) => {
  const { parse, swap } = await import(document.querySelector("script").src.replace("app.js", "swap.js"));
  const tree = (html) => document.importNode(parse(`<div id="stage">${html}</div>`).getElementById("stage"), true);
  document.getElementById("stage").replaceWith(tree(before));
  const stage = document.getElementById("stage"), $ = (selector) => stage.querySelector(selector);
  const actions = {
    focus: () => $("#it").focus(),
    focusInOlderBrowsers: () => { delete Element.prototype.moveBefore; $("#it").focus(); },
    type: () => { $("#it").focus(); $("#it").value = "typed"; $("#it").setSelectionRange(1, 3); },
    typeAndLeave: () => { $("#it").value = "typed"; },
    open: () => { $("#it").open = true; },
    modal: () => { $("#it").showModal(); $("input").value = "typed"; },
    scroll: () => { $("#it").scrollTop = 40; },
    select: () => { getSelection().selectAllChildren($("#it")); },
    mark: () => { $("#it").mine = "kept"; },
    count: () => { window.seen = []; window.watch = new MutationObserver((all) => seen.push(...all)); watch.observe(stage, { subtree: true, childList: true, attributes: true, characterData: true }); },
  };
  const looks = {
    focus: () => document.activeElement.id,
    type: () => [document.activeElement.id, $("#it").value, $("#it").selectionStart, $("#it").selectionEnd],
    value: () => $("#it").value,
    open: () => $("#it").open,
    modal: () => [$("#it").matches(":modal"), $("input").value, $("p").textContent],
    scroll: () => $("#it").scrollTop,
    select: () => getSelection().toString(),
    mark: () => $("#it").mine,
    count: () => watch.takeRecords().length,
  };
  actions[prepare]();
  swap(stage, tree(after));
  return looks[look]();
}"""


@pytest.fixture(scope="module")
def pairs():
    return TREES


async def test_a_tree_becomes_the_other_in_place(open_page, pairs):
    async with open_page() as page:
        await page.goto("/bare")
        for name, before, after in pairs:
            for one, other in ((before, after), (after, before)):
                is_same, got, wanted = await page.evaluate(SWAP, [one, other])
                assert is_same, name
                assert got == wanted, name


FIELD = '<p>1</p><input id="it" value="a">'
KEEPS = [
    ("focus, selection and what is typed", FIELD, '<p>2</p><h2>x</h2><input id="it" value="b" class="c">', "type", "type", ["it", "typed", 1, 3]),
    ("what is typed and not sent", FIELD, '<input id="it" value="b">', "typeAndLeave", "value", "typed"),
    ("the focus when rows move", '<button id="a">a</button><button id="it">b</button>', '<button id="it">b</button><button id="c">c</button><button id="a">a</button>', "focus", "focus", "it"),
    ("a field with the focus that nobody has typed in yet", FIELD, '<input id="it" value="b">', "focus", "value", "a"),
    ("the focus where a browser cannot move", '<i id="a">a</i><i id="b">b</i><button id="it">c</button>', '<button id="it">c</button><i id="b">b</i><i id="a">a</i>', "focusInOlderBrowsers", "focus", "it"),
    ("rows in their place when one before them is gone", '<i id="x">x</i><i id="a">a</i><i id="b">b</i>', '<i id="a">a</i><i id="b">b</i>', "count", "count", 1),
    ("an open details", '<details id="it"><p>1</p></details>', '<details id="it"><p>2</p></details>', "open", "open", True),
    ("an open dialog and its fields", '<dialog id="it"><p>1</p><input></dialog>', '<dialog id="it"><p>2</p><input></dialog>', "modal", "modal", [True, "typed", "2"]),
    ("selected text", '<p>1</p><p id="it">read me</p>', '<p>2</p><p id="it">read me</p>', "select", "select", "read me"),
    ("the node itself", '<p id="it">1</p>', '<h2>x</h2><p id="it" class="y">2</p>', "mark", "mark", "kept"),
    ("what says data-keep", '<p id="it" data-keep>mine</p>', '<p id="it" data-keep>theirs</p>', "select", "select", "mine"),
    ("everything when nothing has changed", "<ul><li>a<li>b</ul>", "<ul><li>a<li>b</ul>", "count", "count", 0),
    ("all but the one text that has changed", "<ul><li>a<li>b<li>c</ul>", "<ul><li>a<li>x<li>c</ul>", "count", "count", 1),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "prepare", "look", "wanted"), [k[1:] for k in KEEPS], ids=[k[0] for k in KEEPS])  # fmt: skip
async def test_a_swap_keeps(open_page, before, after, prepare, look, wanted):
    async with open_page() as page:
        await page.goto("/bare")
        assert await page.evaluate(KEPT, [before, after, prepare, look]) == wanted


async def test_a_swap_keeps_how_far_somebody_has_scrolled(open_page):
    async with open_page(viewport={"width": 400, "height": 200}) as page:
        await page.goto("/sheet")
        await page.evaluate("scrollTo(0, 300)")
        await page.evaluate(
            """async () => {
              const { parse, swap } = await import(document.querySelector("script").src.replace("app.js", "swap.js"));
              const text = await (await fetch(location.href)).text();
              swap(document.body, parse(text.replaceAll("Done", "Finished")).body);
            }"""
        )
        assert await page.evaluate("scrollY") == 300
        assert await page.get_by_text("Finished").count() >= 1


RANDOM = """async (seed) => {
  const { swap } = await import(document.querySelector("script").src.replace("app.js", "swap.js"));
  const random = () => ((seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648);
  const pick = (many) => many[Math.floor(random() * many.length)];
  function grow(parent, depth) {
    const ids = new Set();
    for (let count = Math.floor(random() * 6); count > 0; count--) {
      if (random() < 0.3) { parent.append(document.createTextNode(pick(["a", "b", " "]))); continue; }
      const node = document.createElement(pick(["p", "ul", "details", "b"]));
      const id = pick(["", "", "x", "y", "z"]);
      if (id && !ids.has(id)) { ids.add(id); node.dataset.key = id; }
      if (random() < 0.5) node.setAttribute(pick(["class", "title", "lang"]), pick(["1", "2"]));
      if (depth) grow(node, depth - 1);
      parent.append(node);
    }
    return parent;
  }
  for (let round = 0; round < 2000; round++) {
    const [one, other] = [grow(document.createElement("div"), 3), grow(document.createElement("div"), 3)];
    const [before, wanted] = [one.outerHTML, other.outerHTML];
    document.getElementById("stage").replaceChildren(one);
    swap(one, other);
    if (one.outerHTML !== wanted || other.outerHTML !== wanted || !one.isConnected) return [before, one.outerHTML, wanted];
  }
  return [];
}"""


async def test_any_tree_becomes_any_other(open_page):
    async with open_page() as page:
        await page.goto("/bare")
        assert await page.evaluate(RANDOM, 20261118) == []
