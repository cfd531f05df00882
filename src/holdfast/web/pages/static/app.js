// What every page of the kit does when scripts run: links, forms, filters, copies, toasts. It also starts the rest.

import { isPlain } from "./keys.js";
import { follow } from "./live.js";
import { page, shownAddress } from "./page.js";

const TYPING = 200; // ms after the last letter until a filter is asked
const TOAST = 6_000;
const root = document.documentElement;
root.dataset.js = ""; // what only scripts can do is shown from now on

document.addEventListener("click", (event) => {
  const copy = event.target.closest("[data-copy]");
  if (copy) return void copied(copy);
  const link = event.target.closest("a[data-swap]");
  if (!link || link.dataset.dialog || event.defaultPrevented || !isPlain(event) || link.origin !== location.origin) return;
  event.preventDefault();
  const before = location.pathname;
  page(link.href, { target: link.dataset.swap || "body" }).then((answer) => {
    if (answer && location.pathname !== before) scrollTo(0, 0); // another page; else the same one, seen otherwise
  });
});

document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-swap]");
  if (!form || event.defaultPrevented || asked(form, event.submitter).origin !== location.origin) return;
  if (form.getAttribute("method") === "dialog") return;
  event.preventDefault();
  send(form, event.submitter);
});

/** Attributes, not properties: a field that is called "action" would be in their place. */
function asked(form, submitter) {
  const action = submitter?.getAttribute("formaction") ?? form.getAttribute("action") ?? "";
  return new URL(action || location.href, location.href);
}

async function send(form, submitter, history = "push") {
  const data = new FormData(form, submitter);
  const fields = form.enctype === "multipart/form-data" ? data : new URLSearchParams(data);
  const url = asked(form, submitter);
  const options = { target: form.dataset.swap || "body", history };
  if ((form.getAttribute("method") ?? "get").toLowerCase() === "get") {
    url.search = new URLSearchParams([...fields].filter(([, value]) => value !== "")); // short addresses
    return page(url, options);
  }
  if (form.ariaBusy === "true") return null; // the same form twice
  form.ariaBusy = "true";
  if (submitter) submitter.ariaDisabled = "true";
  const answer = await page(url, { ...options, method: "POST", body: fields });
  form.ariaBusy = null;
  if (submitter) submitter.ariaDisabled = null;
  if (answer?.ok) {
    form.closest("dialog:modal")?.close();
    form.reset(); // what was typed is stored; the fields show what the server says now
  } else if (answer) {
    form.querySelector("[aria-invalid='true']")?.focus();
  }
  return answer;
}

let typing;
document.addEventListener("input", (event) => {
  const form = event.target.closest("form[data-swap][data-filter]");
  if (!form) return;
  clearTimeout(typing);
  typing = setTimeout(() => send(form, null, "replace"), TYPING);
});

/** A step to another place in the same page is none that needs the server: what stands here may be the answer to a form. */
addEventListener("popstate", () => location.href.split("#")[0] !== shownAddress() && page(location.href, { history: "" }));

async function copied(button) {
  await navigator.clipboard.writeText(button.dataset.copy);
  button.dataset.done = "";
  setTimeout(() => delete button.dataset.done, 1500);
}

function toasts() {
  for (const toast of document.querySelectorAll(".toast:not([data-seen])")) {
    toast.dataset.seen = "";
    const away = () => (toast.matches(":hover, :focus-within") ? setTimeout(away, TOAST) : toast.remove());
    setTimeout(away, TOAST);
  }
}
document.addEventListener("holdfast:shown", toasts);
toasts();

/** The server writes times in the zone of the reader, which it learns from this cookie. */
function zone() {
  const ours = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!("zone" in root.dataset) || root.dataset.zone === ours) return;
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `holdfast_zone=${ours}; path=${root.dataset.root || "/"}; max-age=31536000; samesite=lax${secure}`;
  if (document.cookie.includes(`holdfast_zone=${ours}`)) page(location.href, { history: "" });
}
zone();

if (root.dataset.follow) follow(Number(root.dataset.follow));
