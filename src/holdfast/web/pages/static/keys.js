// Dialogs and hotkeys. Without this module a dialog opens by its link, as the target of the address.

let pressed;
document.addEventListener("pointerdown", (event) => (pressed = event.target));

document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-dialog]");
  const dialog = opener && document.getElementById(opener.dataset.dialog);
  if (dialog?.showModal && isPlain(event)) {
    event.preventDefault();
    if (!dialog.open) dialog.showModal();
    return;
  }
  const closer = event.target.closest("[data-close]");
  // A click beside the dialog is a click on its backdrop: the box itself is covered by its content. Who selects text in it
  // and lets go outside has pressed inside.
  const isBeside = event.target.matches("dialog[open]") && pressed === event.target;
  const open = closer ? closer.closest("dialog") : isBeside && event.target;
  if (open?.matches?.(":modal")) {
    event.preventDefault();
    open.close();
  }
});

/** A click that the page may take over: with a modifier it belongs to the browser. */
export function isPlain(event) {
  return event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.matches("input, textarea, select, [contenteditable]")) return;
  const wanted = `[data-hotkey="${CSS.escape(event.key)}"]`;
  // The key of what has the focus comes first: many entries of a calendar have the same one.
  const scope = document.querySelector("dialog:modal") ?? document;
  const found = event.target.closest(wanted) ?? event.target.querySelector?.(wanted) ?? scope.querySelector(wanted);
  if (!found) return;
  event.preventDefault();
  if (found.matches("input, textarea, select")) found.focus();
  else found.click();
});
