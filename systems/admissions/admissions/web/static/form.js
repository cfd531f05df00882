// Forms of an application: saved while somebody types, sent once, counted, and files with their progress.

const SAVE = 900; // ms after the last letter
const AGAIN = 4_000; // ms until a save that broke off is tried again

for (const form of document.querySelectorAll("form[data-draft]")) draft(form);
for (const form of document.querySelectorAll("form[data-upload]")) upload(form);
for (const line of document.querySelectorAll("[data-count-of]")) count(line);

document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-once]");
  if (!form) return;
  if (form.dataset.sent !== undefined) return void event.preventDefault();
  form.dataset.sent = "";
  const button = form.querySelector("button.main, button.fatal");
  if (button) button.ariaBusy = "true";
});
addEventListener("pageshow", () => { for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent; });

function draft(form) {
  const line = document.getElementById("saved");
  const tell = (text, isWrong = false) => {
    line.classList.toggle("late", isWrong);
    line.querySelector("span").textContent = text;
  };
  let timer, isSaving = false, isAgain = false, isOver = false;
  form.addEventListener("input", () => {
    tell(line.dataset.unsaved);
    later(SAVE);
  });
  form.addEventListener("submit", () => { clearTimeout(timer); isOver = true; });
  document.addEventListener("visibilitychange", () => document.hidden && timer && save());

  function later(ms) {
    clearTimeout(timer);
    timer = setTimeout(save, ms);
  }

  async function save() {
    clearTimeout(timer);
    timer = 0;
    if (isOver) return;
    if (isSaving) return void (isAgain = true);
    isSaving = true;
    tell(line.dataset.saving);
    try {
      const answer = await fetch(form.action, { method: "POST", headers: { accept: "application/json" }, body: new URLSearchParams(new FormData(form)), keepalive: true });
      const said = await answer.json();
      tell(said.words, !answer.ok);
      if (answer.ok) form.elements.version.value = said.version;
      else isOver = answer.status === 409; // changed elsewhere: nothing of that is overwritten
    } catch {
      tell(line.dataset.failed, true);
      isAgain = false;
      later(AGAIN);
    }
    isSaving = false;
    if (isAgain) {
      isAgain = false;
      later(0);
    }
  }
}

function count(line) {
  const field = document.getElementById(line.dataset.countOf);
  const show = () => {
    const length = [...field.value.trim()].length;
    line.textContent = line.dataset.words.replace("#", length);
    line.classList.toggle("over", length > Number(line.dataset.most));
  };
  line.hidden = false;
  field.addEventListener("input", show);
  show();
}

/** A file is looked at before it is sent, and sent at once when it is chosen. The page then shows it. */
function upload(form) {
  const input = form.querySelector("input[type=file]");
  const wrong = form.querySelector("#wrong-file");
  const shown = form.querySelector("[data-progress]");
  const [name, told] = shown.querySelectorAll("span");
  const refuse = (words) => {
    wrong.hidden = !words;
    wrong.querySelector("span").textContent = words;
    input.ariaInvalid = words ? "true" : null;
  };
  input.addEventListener("change", () => input.files.length && form.requestSubmit());
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const file = input.files[0];
    const words = file ? reason(file) : form.dataset.none;
    refuse(words);
    if (!words && shown.hidden) send(file);
  });

  function reason(file) {
    if (/\.hei[cf]$/i.test(file.name)) return form.dataset.heic;
    if (!/\.(pdf|jpe?g|png)$/i.test(file.name)) return form.dataset.type;
    if (file.size === 0) return form.dataset.empty;
    return file.size > Number(form.dataset.most) ? form.dataset.large : "";
  }

  function send(file) {
    const request = new XMLHttpRequest();
    const end = (words) => {
      shown.hidden = true;
      refuse(words);
    };
    request.open("POST", form.action);
    request.setRequestHeader("accept", "application/json");
    request.responseType = "json";
    request.upload.addEventListener("progress", (event) => show(event.loaded / event.total));
    request.addEventListener("load", () => (request.status === 201 ? location.reload() : end(request.response?.words ?? form.dataset.failed)));
    request.addEventListener("error", () => end(form.dataset.failed));
    name.textContent = file.name;
    shown.hidden = false;
    show(0);
    request.send(new FormData(form));
  }

  function show(part) {
    const percent = Math.round(100 * part);
    const bar = shown.querySelector("svg");
    bar.setAttribute("aria-valuenow", percent);
    bar.querySelector(".done").setAttribute("width", `${percent}%`);
    told.textContent = percent < 100 ? `${percent} %` : form.dataset.checking;
  }
}
