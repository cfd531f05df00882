// Change a page in place: walk the old tree and the new one together, and touch only what differs.

// The one policy of these pages. HTML text becomes nodes here and nowhere else.
const policy = window.trustedTypes?.createPolicy("holdfast", { createHTML: (text) => text });

/** The document of an answer of our own origin. It is inert: nothing in it runs or loads. */
export function parse(text) {
  return new DOMParser().parseFromString(policy ? policy.createHTML(text) : text, "text/html");
}

/** Make `old` equal to `now`. Focus, selection, scroll, open details and what was typed stay as they are. */
export function swap(old, now) {
  const focused = document.activeElement;
  walk(old, now);
  // A browser without moveBefore takes the focus from what is moved.
  if (focused !== document.activeElement && focused?.isConnected) focused.focus({ preventScroll: true });
}

function walk(old, now) {
  if (old.isEqualNode(now) || isKept(old)) return;
  if (!isSame(old, now)) {
    old.replaceWith(document.importNode(now, true));
  } else if (old.nodeType === Node.ELEMENT_NODE) {
    attributes(old, now);
    children(old, now);
  } else {
    old.data = now.data;
  }
}

function isSame(old, now) {
  return old.nodeType === now.nodeType && old.nodeName === now.nodeName && key(old) === key(now);
}

/** A field that has the focus is the user's, and what says data-keep is a script's. */
function isKept(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return false;
  const isField = node.matches("input, textarea, select, [contenteditable]");
  return node.hasAttribute("data-keep") || (isField && node === document.activeElement);
}

function key(node) {
  return node.id || node.dataset?.key || "";
}

function attributes(old, now) {
  const isUsers = (name) => name === "open" && old.matches("details, dialog");
  for (const { name } of [...old.attributes]) {
    if (!now.hasAttribute(name) && !isUsers(name)) old.removeAttribute(name);
  }
  for (const { name, value } of now.attributes) {
    if (old.getAttribute(name) !== value && !isUsers(name)) old.setAttribute(name, value);
  }
}

/** Children are matched by id or data-key, else by place and tag; the rest is inserted or removed. */
function children(old, now) {
  const wanted = new Set(Array.from(now.children, key));
  for (const child of [...old.children]) {
    if (key(child) && !wanted.has(key(child))) child.remove();
  }
  const known = new Map(Array.from(old.children, (child) => [key(child), child]));
  let place = old.firstChild;
  for (const next of [...now.childNodes]) {
    const match = key(next) ? known.get(key(next)) : place;
    if (!match || !isSame(match, next)) {
      old.insertBefore(document.importNode(next, true), place);
    } else if (match === place) {
      place = place.nextSibling;
      walk(match, next);
    } else {
      move(old, match, place);
      walk(match, next);
    }
  }
  while (place) {
    const rest = place;
    place = place.nextSibling;
    rest.remove();
  }
}

function move(parent, child, place) {
  if (parent.moveBefore) parent.moveBefore(child, place);
  else parent.insertBefore(child, place);
}
