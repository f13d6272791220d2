// The script of the requests: a pause, and rows that stand still while the reader is at them.
"use strict";

let isPaused = false;
let held = null; // the latest update, while the reader looks at rows
let isReleasing = false; // while that update is shown, wherever the reader looks

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
  say(isPaused ? "Paused: the list does not change. Press p to resume." : "");
  if (!isPaused) release();
  showPause();
}

/** Say on the button what it does. */
function showPause() {
  const button = document.getElementById("pause");
  if (button) button.textContent = isPaused ? "Resume" : "Pause";
}

KEYS_OF_ALL.p = pause;
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
