// The script of the rig, after the one of all pages. A changed setting of one frame leaves the other frames as they are.
"use strict";

/** Scale each screen to the width that it has, and put the frame of a component where it belongs in the video. */
function fit() {
  for (const box of document.querySelectorAll(".fit")) {
    const screen = box.firstElementChild;
    const { dataset, style } = screen.firstElementChild;
    const isComponent = box.closest(".component");
    style.left = isComponent ? `${dataset.x}%` : "";
    style.top = isComponent ? `${dataset.y}%` : "";
    const scale = Math.min(1, box.clientWidth / screen.offsetWidth);
    screen.style.transform = `scale(${scale})`;
    box.style.height = `${screen.offsetHeight * scale}px`;
  }
}
addEventListener("resize", fit);
fit();

const OWN_EVENT = /"event":"sandbox:[^":]+:/; // the name of each event begins with the environment and the client id

/** List what the helper in a frame tells: events that its page heard, lines of its console, and errors of its scripts. */
addEventListener("message", ({ source, origin, data }) => {
  const frame = [...document.querySelectorAll(".frame iframe")].find((each) => each.contentWindow === source);
  const { kind, text } = data?.extcli ?? {};
  if (!frame || origin !== new URL(frame.src).origin || typeof kind !== "string") return;
  if (kind === "changed") return reloadPages();
  // Another frame has updated the cache after this page took an old file from it, and maybe before it could hear of that.
  if (kind === "unchanged") return hasChanged && reloadPage(frame);
  const line = document.createElement("li");
  const head = document.createElement("b");
  head.textContent = kind;
  line.append(head, ` ${text.replace(OWN_EVENT, '"event":"')}`);
  line.title = text;
  line.classList.toggle("error", kind === "error");
  const list = frame.closest(".frame").querySelector(".said");
  list.prepend(line);
  if (list.childElementCount > 20) list.lastElementChild.remove();
});

// The frames that load their page again. What the page sent before is out of date.
const reloading = new Set();
document.addEventListener("load", ({ target }) => reloading.delete(target), true);

let hasChanged = false;

/** Load the page of each frame again: its files in the browser's cache are up to date now. */
function reloadPages() {
  hasChanged = true;
  for (const frame of document.querySelectorAll(".frame iframe")) if (!reloading.has(frame)) reloadPage(frame);
  say("A file of the pages has changed: the frames show it now.");
}

function reloadPage(frame) {
  reloading.add(frame);
  frame.closest(".frame").querySelector(".said").replaceChildren();
  frame.contentWindow.postMessage({ extcli: { reload: true } }, new URL(frame.src).origin);
}

// The event stream has the calls of the users in its address: it follows a changed arrangement when it connects again.
let following = null;
document.addEventListener("htmx:config:request", ({ detail: { ctx } }) => {
  if (ctx.sourceElement !== main) return;
  following = ctx.request;
  following.action = main.getAttribute("hx-sse:connect");
});

/** Follow the calls of a changed arrangement, by the address that its page has. */
function followCalls(address) {
  main.setAttribute("hx-sse:connect", address);
  if (following) following.action = address;
  stream?.reader?.cancel();
}

const arrangement = document.getElementById("arrangement");

/** Set fields of some viewers, which may have none yet, and show the arrangement that they make. */
function arrange(viewers, settings) {
  for (const viewer of viewers) {
    for (const [setting, value] of new URLSearchParams(settings)) {
      const name = `${viewer}.${setting}`;
      const field = arrangement.elements[name] ?? arrangement.appendChild(Object.assign(document.createElement("input"), { type: "hidden", name }));
      if (field.type === "checkbox") field.checked = value === "on";
      else field.value = value;
    }
  }
  arrangement.requestSubmit();
}

document.addEventListener("click", ({ target: { dataset } }) => {
  const { viewers } = arrangement.elements;
  const all = Array.from({ length: viewers.value || viewers.defaultValue }, (_, index) => index + 1);
  if (dataset.all) arrange(all, dataset.all);
  if (dataset.add) arrange([viewers.value = all.length + 1], dataset.add);
});

document.addEventListener("change", async ({ target }) => {
  const frame = target.closest(".frame")?.querySelector("iframe");
  if (!frame || target.form !== arrangement) return;
  const address = `${arrangement.action}?${new URLSearchParams(new FormData(arrangement))}`;
  if (target.dataset.live) {
    if (!target.checkValidity()) return say(target.validationMessage, true);
    const value = { checkbox: target.checked, number: target.valueAsNumber }[target.type] ?? target.value;
    if (target.dataset.live === "height") frame.height = value;
    else if (target.dataset.live in frame.dataset) frame.dataset[target.dataset.live] = value;
    frame.contentWindow.postMessage({ extcli: { [target.dataset.live]: value } }, new URL(frame.src).origin);
  } else {
    const page = new DOMParser().parseFromString(await (await fetch(address)).text(), "text/html");
    const fresh = page.getElementById(frame.id);
    if (!fresh) return say(page.querySelector("[role=alert]")?.textContent || "The service does not answer.", true);
    target.closest(".frame").className = fresh.closest(".frame").className;
    target.closest(".frame").querySelector(".said").replaceChildren();
    followCalls(page.getElementById("main").getAttribute("hx-sse:connect"));
    for (const name of ["width", "height", "src"]) frame[name] = fresh[name];
  }
  fit();
  history.replaceState(null, "", address);
  say("Changed; the address of this page has it.");
});
