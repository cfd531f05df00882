// Move posts in the calendar: dragged with any pointer, or by the key M. Both open the same dialog, whose form does it.

import { isPlain } from "./keys.js";

const FAR = 6; // pixels until a press is a drag
let held = null; // the entry under the pointer: { entry, x, y, ghost }

/** The dialog for this entry. `day` is where it was dropped; the time of day stays. */
function ask(entry, day) {
  const dialog = document.getElementById("move");
  const at = entry.dataset.at;
  dialog.querySelector("#move-post").value = entry.dataset.move;
  dialog.querySelector("#move-name").textContent = entry.dataset.title ?? entry.querySelector("span > span").textContent;
  dialog.querySelector("#move-from").textContent = `Now ${words(at)}`;
  dialog.querySelector("#move-at").value = day ? `${day}T${at.split("T")[1]}` : at;
  dialog.showModal();
  dialog.querySelector("#move-at").focus();
}

/** 2026-11-20T18:00 as Fri 20 Nov, 18:00: the time of the artist's zone, whatever that of the browser is. */
function words(at) {
  const day = new Date(`${at.split("T")[0]}T00:00Z`);
  const told = day.toLocaleDateString("en-GB", { weekday: "short", day: "numeric", month: "short", timeZone: "UTC" });
  return `${told.replace(",", "")}, ${at.split("T")[1]}`;
}

document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "m" || event.ctrlKey || event.metaKey || event.altKey) return;
  const entry = event.target.closest?.("[data-move]");
  if (!entry) return;
  event.preventDefault();
  ask(entry);
});

document.addEventListener("click", (event) => {
  const entry = event.target.closest("[data-move]");
  if (!entry || !isPlain(event)) return;
  if (entry.matches(".entry") && !entry.dataset.dropped) return; // a link to the post
  event.preventDefault();
  if (!entry.dataset.dropped) ask(entry);
  delete entry.dataset.dropped;
}, true);

document.addEventListener("pointerdown", (event) => {
  const entry = event.target.closest(".entry[data-move]");
  // A finger scrolls the page: on a touch screen the button "Move" does it.
  if (entry && event.button === 0 && event.pointerType !== "touch") held = { entry, x: event.clientX, y: event.clientY };
});

document.addEventListener("pointermove", (event) => {
  if (!held) return;
  if (!held.ghost && Math.hypot(event.clientX - held.x, event.clientY - held.y) < FAR) return;
  held.ghost ??= lift(held.entry);
  held.ghost.style.transform = `translate(${event.clientX - 20}px, ${event.clientY - 14}px)`;
  mark(dayUnder(event));
});

document.addEventListener("pointerup", (event) => {
  if (!held) return;
  const { entry, ghost } = held;
  const day = ghost && dayUnder(event);
  drop();
  if (!ghost) return;
  entry.dataset.dropped = ""; // the click that follows is not one
  setTimeout(() => delete entry.dataset.dropped, 50);
  if (day && day !== entry.closest("td")) ask(entry, day.dataset.day);
});

document.addEventListener("pointercancel", drop);
document.addEventListener("keydown", (event) => event.key === "Escape" && held && drop());
document.addEventListener("dragstart", (event) => event.target.closest?.("[data-move]") && event.preventDefault());

function lift(entry) {
  const ghost = entry.cloneNode(true);
  for (const name of ["href", "data-move", "data-key"]) ghost.removeAttribute(name);
  ghost.classList.add("dragged");
  ghost.ariaHidden = "true";
  document.body.append(ghost);
  document.documentElement.classList.add("is-dragging");
  return ghost;
}

function drop() {
  held?.ghost?.remove();
  held = null;
  mark(null);
  document.documentElement.classList.remove("is-dragging");
}

const dayUnder = (event) => document.elementFromPoint(event.clientX, event.clientY)?.closest("td[data-day]") ?? null;

function mark(day) {
  for (const each of document.querySelectorAll("td[data-drop]")) if (each !== day) delete each.dataset.drop;
  if (day) day.dataset.drop = "";
}
