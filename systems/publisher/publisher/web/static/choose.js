// Tables of posts: choose all of them, and say how many are chosen.

function told(form) {
  const boxes = [...form.querySelectorAll("input[name=post]")];
  const chosen = boxes.filter((box) => box.checked).length;
  for (const each of form.querySelectorAll("[data-chosen]")) each.textContent = chosen ? `${chosen} of ${boxes.length}` : "";
  for (const box of boxes) box.closest("tr").classList.toggle("selected", box.checked);
  const all = form.querySelector("[data-all]");
  if (all) {
    all.checked = chosen > 0 && chosen === boxes.length;
    all.indeterminate = chosen > 0 && chosen < boxes.length;
  }
}

function begin() {
  for (const form of document.querySelectorAll(".choosing")) {
    const head = form.querySelector("thead th");
    if (head && !head.querySelector("input")) {
      const all = document.createElement("input");
      all.type = "checkbox";
      all.dataset.all = "";
      all.ariaLabel = "Choose all";
      head.append(all);
    }
    told(form);
  }
}

document.addEventListener("change", (event) => {
  const form = event.target.closest(".choosing");
  if (!form) return;
  if ("all" in event.target.dataset) {
    for (const box of form.querySelectorAll("input[name=post]")) box.checked = event.target.checked;
  }
  told(form);
});
document.addEventListener("holdfast:shown", begin);
begin();
