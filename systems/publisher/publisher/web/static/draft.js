// The form of a post: counts characters of the title, and says when something is not saved yet.

const form = document.getElementById("draft");

function count(field) {
  const words = field.closest(".field").querySelector(".label-row span");
  const length = [...field.value].length;
  words.textContent = `${length} of ${field.dataset.count}`;
  words.classList.toggle("over", length > Number(field.dataset.count));
}

for (const field of form.querySelectorAll("[data-count]")) count(field);

form.addEventListener("input", (event) => {
  if (event.target.dataset.count) count(event.target);
  const told = form.querySelector("[data-unsaved]");
  if (told) told.hidden = false;
});
