// The script of the rig, after the one of all pages. A changed setting of one frame leaves the other frames as they are.
"use strict";

const frames = [...document.querySelectorAll(".frame iframe")];
const post = (frame, message) => frame.contentWindow.postMessage({ extcli: message }, new URL(frame.src).origin);

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

const [log, calls] = ["log", "calls"].map((id) => document.getElementById(id));

/** Put a line into the log, where the newest is first. */
function insert(line) {
  log.insertBefore(line, [...log.children].find(({ dataset }) => Number(dataset.at) <= line.dataset.at) ?? null);
  if (log.childElementCount > 200) log.lastElementChild.remove();
}

let latest = 0;
/** Move the calls into the log that it does not have yet. */
function takeCalls() {
  for (const line of [...(calls?.children ?? [])].reverse()) {
    line.remove();
    if (line.dataset.number <= latest) continue;
    latest = Number(line.dataset.number);
    insert(line);
  }
}
takeCalls();
document.addEventListener("htmx:after:swap", takeCalls);

/** Write what a frame did. If several frames do the same within a second, it is one line. */
function write(frame, kind, ...content) {
  const at = Date.now();
  const text = element("span", {}, ...content);
  let line = [...log.children].find((each) => at - each.dataset.at < 1000 && each.lastChild.textContent === text.textContent && each.frames?.has(frame) === false);
  if (!line) {
    line = element("li", {}, element("time", {}, new Date(at).toISOString().slice(11, 19)), " ", element("b"), " ", text);
    line.frames = new Set();
    line.dataset.at = at;
    line.classList.toggle("error", kind === "error");
    insert(line);
  }
  line.frames.add(frame);
  const names = [...line.frames].map(({ title }) => title);
  line.querySelector("b").textContent = names.length > 1 && names.length === frames.length ? "All frames" : names.join(", ");
}

// The name of an event begins with the environment and the client id. The helper cuts long data.
const HEARD = /^(\S+) \{"event":"(?:sandbox:[^":]+:)?([^"]*)"(?:,"data":)?(.*?)\}?$/s;
const BANNER = /^\s*To use the debug helix token flow/; // of the SDK

addEventListener("message", ({ source, origin, data }) => {
  const frame = frames.find((each) => each.contentWindow === source);
  const { kind, text, used: files, found } = data?.extcli ?? {};
  if (!frame || origin !== new URL(frame.src).origin || typeof kind !== "string") return;
  const [, target, event, content] = (kind === "heard" && HEARD.exec(text)) || [];
  if (kind === "files") {
    used.set(frame, files);
    showChanges(found);
  } else if (event) {
    write(frame, kind, "heard ", element("b", {}, event), target === "broadcast" ? " " : ` (${target}) `, element("code", {}, content));
  } else if (!BANNER.test(text)) write(frame, kind, `${kind} `, element("code", {}, text));
});

const used = new Map(); // for each frame, the versions of the files that it uses, by their address
const misses = new Map(); // how often in a row a frame had another version of a file, by its address
// While a frame loads, it takes files from the cache, which must stay as it is until the frame has told of them.
const loading = new Set();
document.addEventListener("load", ({ target }) => loading.delete(target), true);

function beginLoading(frame) {
  used.delete(frame);
  loading.add(frame);
}

/** Ask all frames for the files that they use, and one of them for the files that the server has. */
function look() {
  if (document.hidden || loading.size) return;
  const [asked] = used.keys();
  const files = new Set([...used.values()].flatMap(Object.keys));
  used.clear();
  for (const frame of frames) post(frame, { look: frame === asked ? [...files] : [] });
}
addEventListener("load", () => setInterval(look, 500));

/** Load the frames again that use other versions of files than the server has. */
function showChanges(found) {
  for (const [url, version] of Object.entries(found)) {
    const old = frames.filter((frame) => ![version, undefined].includes(used.get(frame)?.[url]));
    const times = old.length && (misses.get(url) ?? 0) + 1;
    misses.set(url, times);
    if (times & (times - 1)) continue; // a page that differs at each request is loaded ever more rarely
    for (const frame of old) {
      write(frame, "changed", "loaded again: ", element("b", {}, url.split("/").pop()), " has changed");
      reload(frame);
    }
  }
}

/** Load the page of a frame again, with the settings that it has now. */
function reload(frame) {
  const url = new URL(frame.src);
  for (const { dataset: { live }, type, checked, value } of frame.closest(".frame").querySelectorAll("[data-live]")) {
    url.searchParams.set(live === "language" ? live : `extcli_${live}`, type !== "checkbox" ? value : checked ? "on" : "off");
  }
  url.searchParams.set("extcli_reload", Date.now()); // so that no cache has the document
  beginLoading(frame);
  frame.contentWindow.location.replace(url);
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
const { viewers } = arrangement.elements;
const settingsOf = (name) => [...document.querySelectorAll(`.viewers [name$=".${name}"]`)]; // of all viewers

/** Show which switches are on: those with what all viewers have. */
function showSwitches() {
  for (const button of document.querySelectorAll("[data-all]")) {
    const [name, wanted] = button.dataset.all.split("=");
    button.ariaPressed = settingsOf(name).every(({ value }) => value === wanted);
  }
}
showSwitches();

document.addEventListener("click", ({ target: { id, dataset } }) => {
  const [name, value] = dataset.all?.split("=") ?? [];
  for (const field of name ? settingsOf(name) : []) {
    field.value = value;
    if (field.dataset.live) field.dispatchEvent(new Event("change", { bubbles: true }));
  }
  if (id === "add") viewers.stepUp();
  if (id === "add" || name === "view") arrangement.requestSubmit();
});

const addressNow = () => `${arrangement.action}?${new URLSearchParams(new FormData(arrangement))}`;

document.addEventListener("change", async ({ target }) => {
  const box = target.closest(".frame");
  if (!box || target.form !== arrangement) return;
  const frame = box.querySelector("iframe");
  if (target.dataset.live) {
    if (!target.checkValidity()) return say(target.validationMessage, true);
    const value = { checkbox: target.checked, number: target.valueAsNumber }[target.type] ?? target.value;
    if (target.dataset.live === "height") frame.height = value;
    else if (target.dataset.live in frame.dataset) frame.dataset[target.dataset.live] = value;
    post(frame, { [target.dataset.live]: value });
  } else {
    const page = new DOMParser().parseFromString(await (await fetch(addressNow())).text(), "text/html");
    const fresh = page.getElementById(frame.id);
    if (!fresh) return say(page.querySelector("[role=alert]")?.textContent || "The service does not answer.", true);
    box.className = fresh.closest(".frame").className;
    box.querySelector("small").replaceWith(fresh.closest(".frame").querySelector("small"));
    followCalls(page.getElementById("main").getAttribute("hx-sse:connect"));
    beginLoading(frame);
    for (const name of ["width", "height", "src"]) frame[name] = fresh[name];
  }
  fit();
  showSwitches();
  history.replaceState(null, "", addressNow()); // another setting may have changed meanwhile
});
