// The script of the requests: keys, a pause, and rows that stand still while the reader is at them.
"use strict";

let isPaused = false;
let held = null; // the latest update, while the reader looks at rows
let isReleasing = false; // while that update is shown, wherever the reader looks
const links = () => [...document.querySelectorAll("#rows tbody th a")];

/** Move the focus to the next row, or the one before; from elsewhere, to the one that is shown, or the first. */
function go(step) {
  const all = links();
  const from = document.activeElement.closest("tr") ?? document.querySelector("#rows [aria-current]")?.closest("tr");
  const at = all.findIndex((link) => link.closest("tr") === from);
  all[at < 0 ? 0 : Math.min(Math.max(at + step, 0), all.length - 1)]?.focus();
}

/** Whether the reader looks at rows, so that they must stay where they are. */
function isRead() {
  return isPaused || scrollY > 0 || Boolean(document.querySelector("#rows:hover, #rows:focus-within"));
}

/** Say how many rows the latest update adds; a page of rows may not have them all. */
function showHeld() {
  const entries = held ? [...held.text.matchAll(/<tr (data-entry="\d+")/g)].map((match) => match[1]) : [];
  const count = entries.filter((entry) => !document.querySelector(`tr[${entry}]`)).length;
  const button = document.getElementById("newer");
  if (!button) return;
  button.hidden = !count;
  button.textContent = `${count}${count && count === entries.length ? "+" : ""} new`;
}

/** Show the latest update. */
function release() {
  if (!held) return;
  isReleasing = true;
  htmx.swap(held);
  isReleasing = false;
}

function pause() {
  isPaused = !isPaused;
  say(isPaused ? "Paused: the list stays as it is. Press p to go on." : "");
  if (!isPaused) release();
  showPause();
}

/** Say on the button what it does. */
function showPause() {
  const button = document.getElementById("pause");
  if (button) button.textContent = isPaused ? "Resume" : "Pause";
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
document.addEventListener("htmx:before:swap", ({ detail: { ctx, tasks } }) => {
  const at = tasks.findIndex(({ target }) => target === main || target === "#main");
  if (at < 0) return;
  held = isRead() && !isReleasing ? { ...ctx } : null; // htmx uses one context for all updates of a stream
  if (held) tasks.splice(at, 1);
  showHeld();
});
for (const name of ["pointerover", "focusin", "scroll"]) {
  document.addEventListener(name, () => held && !isRead() && release());
}
document.addEventListener("click", ({ target }) => {
  if (target.id === "pause") pause();
  if (target.id !== "newer") return;
  isPaused = false;
  showPause();
  scrollTo({ top: 0, behavior: "instant" });
  release();
});
