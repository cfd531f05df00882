// Fetch pages and put them in place of what is shown. The newest action of the user wins.

import { parse, swap } from "./swap.js";

const PATIENCE = 15_000;
let newest = 0;
let address = location.href.split("#")[0];

/** The address of what is shown, which may not be that of the browser yet. */
export const shownAddress = () => address;

/** A number that grows with each action of the user: an answer to an older one is dropped. */
export const turn = () => newest;

/** Fetch `url` and show it. `target` is a selector; what it does not find in both pages stays as it is. */
export async function page(url, { target = "body", history = "push", ...options } = {}) {
  const mine = ++newest;
  let answer, text;
  try {
    answer = await fetch(url, { headers: { accept: "text/html" }, signal: AbortSignal.timeout(PATIENCE), ...options });
    text = await answer.text();
  } catch {
    if (mine === newest) say("Connection lost. Nothing was changed here; try again.");
    return null;
  }
  if (mine !== newest) return null;
  if (!isPage(answer)) {
    say(refusal(answer.status));
    return null;
  }
  if (history === "push" && answer.url !== location.href) window.history.pushState({}, "", answer.url);
  if (history === "replace") window.history.replaceState({}, "", answer.url);
  address = location.href.split("#")[0];
  show(parse(text), target);
  return answer;
}

/** A form that is refused comes back as 422, with its errors beside the fields: that is a page, too. */
function isPage(answer) {
  const isHtml = (answer.headers.get("content-type") ?? "").startsWith("text/html");
  return isHtml && (answer.ok || answer.status === 422);
}

function refusal(status) {
  if (status === 401 || status === 403) return "This page is too old for that. Reload it, and try again.";
  if (status === 429) return "Too many at once. Wait a moment, and try again.";
  return `That did not work (${status}). Nothing was changed here; try again.`;
}

export function show(fresh, target = "body") {
  say("");
  document.title = fresh.title;
  for (const name of ["lang", "data-theme", "data-zone"]) {
    const value = fresh.documentElement.getAttribute(name);
    if (value === null) document.documentElement.removeAttribute(name);
    else document.documentElement.setAttribute(name, value);
  }
  const targets = target === "body" ? "body" : `${target}, #toasts`;
  for (const old of document.querySelectorAll(targets)) {
    const now = old === document.body ? fresh.body : old.id && fresh.getElementById(old.id);
    if (now) swap(old, now);
  }
  document.dispatchEvent(new Event("holdfast:shown"));
}

/** One line that is read out: what does not work now, and what is done about it. Empty: all is well. */
export function say(text) {
  const line = document.getElementById("status-line") ?? newLine();
  if (line.textContent === text) return;
  // What stands outside of an open dialog is neither seen nor read out.
  const place = (text && document.querySelector("dialog:modal")) || document.body;
  if (line.parentNode !== place) place.append(line);
  line.textContent = text;
}

function newLine() {
  const line = document.createElement("p");
  line.id = "status-line";
  line.role = "status";
  line.dataset.keep = "";
  return line;
}
