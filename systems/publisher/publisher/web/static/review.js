// The inbox by keyboard: arrows go from one to the next, A or Enter approves, X or Escape rejects.

const items = [...document.querySelectorAll("[data-item]")];
const here = () => document.activeElement?.closest?.("[data-item]");

function go(step) {
  const at = items.indexOf(here());
  items[Math.min(items.length - 1, Math.max(0, at + step))]?.focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("a, button, summary") && event.key === "Enter") return;
  const item = here();
  const key = event.key.toLowerCase();
  if (key === "arrowdown" || key === "arrowup") {
    event.preventDefault();
    return go(key === "arrowdown" ? 1 : -1);
  }
  const what = { a: "approve", enter: "approve", x: "reject", escape: "reject" }[key];
  if (!item || !what) return;
  event.preventDefault();
  item.querySelector(`[data-do=${what}]`).click();
});

items[0]?.focus({ preventScroll: true });
