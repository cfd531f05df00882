// Keep the parts of a page that say data-region up to date, while somebody can see them.

import { say, turn } from "./page.js";
import { parse, swap } from "./swap.js";

const PATIENCE = 8_000;
const LONGEST = 15;
let timer, wait, isAsking;
let told = ""; // what stands in the line is taken back by who has put it there

/** Ask every `seconds` for the regions of this page. The server answers 204 when nothing has changed. */
export function follow(seconds) {
  wait = seconds;
  const next = () => {
    clearTimeout(timer);
    if (!document.hidden) timer = setTimeout(ask, wait * 1000 * (0.9 + 0.2 * Math.random()));
  };
  const ask = async () => {
    if (isAsking) return;
    isAsking = true;
    const goesOn = !document.querySelector("[data-region]") || (await look(seconds));
    isAsking = false;
    if (goesOn) next();
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : ask()));
  next();
}

/** One question. False: this page cannot go on by itself. */
async function look(seconds) {
  const regions = Array.from(document.querySelectorAll("[data-region][id]"), (each) => `#${each.id}`).join(",");
  const [began, url] = [turn(), location.href.split("#")[0]];
  const known = document.getElementById("version"); // of the page as it was sent, and of each answer since
  const headers = { accept: "text/html", "x-holdfast-regions": regions, "x-holdfast-version": known?.value ?? "" };
  let answer, text;
  try {
    answer = await fetch(url, { headers, signal: AbortSignal.timeout(PATIENCE) });
    text = await answer.text();
    if (answer.status >= 500 || answer.status === 429) throw new Error(`status ${answer.status}`);
  } catch {
    wait = Math.min(LONGEST, wait * 2);
    tell("late", `Connection lost. Trying again in ${Math.round(wait)} s`);
    return true;
  }
  if (began !== turn() || url !== location.href.split("#")[0]) return true;
  if (answer.redirected || !answer.ok) {
    tell("late", "This page cannot be kept up to date any more. Reload it.");
    return false;
  }
  wait = seconds;
  tell("ok", "");
  if (answer.status === 200) {
    put(parse(text));
    if (known) known.value = answer.headers.get("x-holdfast-version") ?? "";
  }
  return true;
}

function put(fresh) {
  for (const old of document.querySelectorAll("[data-region][id]")) {
    const now = fresh.getElementById(old.id);
    if (now) swap(old, now);
  }
}

function tell(state, text) {
  for (const each of document.querySelectorAll("[data-live]")) {
    each.dataset.live = state;
    each.textContent = state === "ok" ? "Live" : "Not live";
  }
  if (text || told) say(text);
  told = text;
}
