// Send many files, one after the other, each with its progress. What breaks off goes on when the connection is back.

const form = document.getElementById("upload");
const place = document.getElementById("uploads");
const list = place.querySelector(".uploads");
const words = place.querySelector(".upload-words");
const goOn = place.querySelector("[data-go-on]");
const input = form.querySelector("input[type=file]");
const zone = form.querySelector("[data-zone]");
const SVG = "http://www.w3.org/2000/svg";
const PAUSE = 3_000; // ms until what broke off is tried again
let queue = [];
let isSending = false;
let post = form.elements.post?.value ?? ""; // of "one post with all of them", once its first file is there

form.addEventListener("submit", (event) => {
  event.preventDefault();
  for (const file of input.files) add(file);
  input.value = "";
  place.hidden = false;
  run();
});

input.addEventListener("change", () => input.files.length && form.requestSubmit());

for (const name of ["dragover", "drop", "dragleave"]) {
  zone.addEventListener(name, (event) => {
    event.preventDefault();
    zone.classList.toggle("over", name === "dragover");
    if (name === "drop" && event.dataTransfer.files.length) {
      input.files = event.dataTransfer.files;
      form.requestSubmit();
    }
  });
}

goOn.addEventListener("click", run);
addEventListener("online", run);
addEventListener("beforeunload", (event) => isSending && event.preventDefault());

function add(file) {
  const row = document.createElement("div");
  row.className = "progress";
  const [line, name, told] = [document.createElement("p"), document.createElement("span"), document.createElement("span")];
  name.className = "progress-label";
  name.textContent = file.name;
  line.append(name, told);
  const bar = document.createElementNS(SVG, "svg");
  for (const [key, value] of Object.entries({ width: "100%", height: 6, role: "progressbar", "aria-label": file.name, "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": 0 })) bar.setAttribute(key, value);
  const track = box("track", "100%");
  const done = box("done", "0%");
  bar.append(track, done);
  row.append(line, bar);
  list.append(row);
  const item = { file, row, told, bar, done, state: "waits" };
  if (file.size > Number(form.dataset.most)) fail(item, `It is larger than ${form.dataset.most / 1e6} MB.`);
  else queue.push(item);
  say();
}

function box(name, width) {
  const rect = document.createElementNS(SVG, "rect");
  rect.setAttribute("class", name);
  rect.setAttribute("width", width);
  rect.setAttribute("height", 6);
  return rect;
}

async function run() {
  if (isSending) return;
  isSending = true;
  goOn.hidden = true;
  while (queue.length) {
    const answer = await send(queue[0]);
    if (answer === null) break; // no connection: it stays the first
    finish(queue.shift(), answer);
    say();
  }
  isSending = false;
  say();
  if (queue.length) {
    goOn.hidden = false;
    setTimeout(run, PAUSE);
  }
}

/** The answer, or null when none came. */
function send(item) {
  const data = new FormData();
  data.append("csrf_token", form.elements.csrf_token?.value ?? "");
  if (post) data.append("post", post);
  data.append("mode", form.elements.mode?.value ?? "each");
  if (form.elements.again.checked) data.append("again", "yes");
  data.append("files", item.file);
  return new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.open("POST", form.action);
    request.setRequestHeader("accept", "application/json");
    request.responseType = "json";
    request.upload.addEventListener("progress", (event) => show(item, event.loaded / event.total));
    request.addEventListener("load", () => resolve(request.status >= 500 || request.status === 429 ? null : { status: request.status, body: request.response }));
    for (const name of ["error", "abort", "timeout"]) request.addEventListener(name, () => resolve(null));
    request.send(data);
  });
}

function show(item, part) {
  const per = Math.floor(part * 100);
  item.told.textContent = per < 100 ? `${per} %` : "being checked";
  item.done.setAttribute("width", `${per}%`);
  item.bar.setAttribute("aria-valuenow", per);
}

function finish(item, { status, body }) {
  if (status !== 201) return fail(item, body?.words ?? "It was not taken.");
  const [file] = body.files;
  item.state = "done";
  show(item, 1);
  item.told.textContent = file.file_id ? "added" : "is there already, left out";
  if (form.elements.mode?.value === "one" && file.post_id) post = file.post_id;
}

function fail(item, reason) {
  item.state = "failed";
  item.told.textContent = "not added";
  const why = document.createElement("p");
  why.className = "failed-words";
  why.textContent = reason;
  item.row.append(why);
}

function say() {
  const all = list.children.length;
  const rest = queue.length;
  const done = all - rest;
  words.textContent = rest && !isSending ? `The connection is lost: ${done} of ${all} are done, ${rest} wait. It goes on by itself.` : `${done} of ${all} done.`;
  place.querySelector("[data-finished]").hidden = rest > 0;
}
