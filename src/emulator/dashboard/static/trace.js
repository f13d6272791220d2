// The script of the requests: keys, and a pause. Rows under the eyes of a reader stay while the page is paused.
"use strict";

let isPaused = false;
const links = () => [...document.querySelectorAll("#rows tbody th a")];

/** Move the focus to the next row, or the one before; from elsewhere, to the one that is shown, or the first. */
function go(step) {
  const all = links();
  const from = document.activeElement.closest("tr") ?? document.querySelector("#rows [aria-current]")?.closest("tr");
  const at = all.findIndex((link) => link.closest("tr") === from);
  all[at < 0 ? 0 : Math.min(Math.max(at + step, 0), all.length - 1)]?.focus();
}

function pause() {
  if (isPaused) return location.reload();
  isPaused = true;
  say("Paused: the list stays as it is. Press p to go on.");
}

const KEYS = {
  j: () => go(1),
  k: () => go(-1),
  p: pause,
  "/": () => document.getElementById("filter-search")?.focus(),
  "?": () => document.getElementById("keys")?.toggleAttribute("open"),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) return;
  if (!Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
});
document.addEventListener("htmx:before:swap", ({ detail: { tasks } }) => {
  if (isPaused) tasks.splice(0, tasks.length, ...tasks.filter(({ target }) => target !== main && target !== "#main"));
});
