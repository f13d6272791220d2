// The page's own script: connects nothing by itself. htmx follows the event stream and sends the forms.
"use strict";

const result = document.getElementById("result");

const SHOWN = 6000; // milliseconds that a message stands after a success, unless it has the focus
let acting = null; // the button or drawer that was used last: the message stands beside it
let leaving = 0;

/** Make an element with these properties and content. */
function element(name, values, ...content) {
  const made = Object.assign(document.createElement(name), values);
  made.append(...content);
  return made;
}

/** Say something to everyone, screen readers included. The parts between backticks are code; `more` are elements.
 * It stays if it is an error, or if `stays` is true; it is green if `isDone` is true. */
function say(text, isError = false, more = [], { stays = isError, isDone = !isError } = {}) {
  const parts = text.split("`").map((part, index) => (index % 2 ? element("code", {}, part) : part));
  result.replaceChildren(...parts, ...more.flatMap((each) => [" ", each]));
  result.classList.toggle("error", isError);
  result.classList.toggle("done", isDone);
  place();
  clearTimeout(leaving);
  if (text && !stays) leaving = setTimeout(leaveAlone, SHOWN);
}

/** Remove the message, and stop marking new rows, unless the focus is in the message. */
function leaveAlone() {
  if (result.matches(":has(:focus-visible)")) leaving = setTimeout(leaveAlone, 1000);
  else {
    known = null;
    say("");
  }
}

/** Put the message beside what was used; without that, it stands at the end of the page. */
function place() {
  if (!acting || !result.firstChild) result.classList.remove("near");
  const box = acting?.getBoundingClientRect();
  if (!box?.width) return; // what was used may be gone: the message stays where it is
  result.classList.add("near");
  const { offsetWidth: width, offsetHeight: height } = result;
  const isRight = box.right + width + 16 <= innerWidth && !acting.closest(".drawers");
  const above = box.top - height - 8;
  const left = isRight ? box.right + 8 : Math.max(8, Math.min(box.left, innerWidth - width - 8));
  const top = isRight ? box.top + (box.height - height) / 2 : above > 48 ? above : box.bottom + 8;
  Object.assign(result.style, { left: `${left}px`, top: `${top}px` });
}
for (const name of ["scroll", "resize"]) addEventListener(name, place);
// A drawer that is opened needs the place.
document.addEventListener("toggle", ({ target }) => {
  if (!target.open || !target.matches(".drawer")) return;
  acting = null;
  place();
}, true);

let known = null; // what the rows were about before the last form was sent; afterwards, new ones are marked
const rows = () => [...document.querySelectorAll("main tbody tr")];
const keyOf = (row) => row.dataset.entry ?? row.querySelector("th a")?.href ?? row.querySelector("th")?.textContent;

function markNewRows() {
  for (const row of known ? rows() : []) {
    if (!known.has(keyOf(row))) row.animate([{ background: "var(--new)" }, {}], SHOWN / 2);
    known.add(keyOf(row));
  }
}

/** The JSON of an answer, `null` if it is none. */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** A member of a JSON value, by a path such as `body.pin`. */
const memberOf = (value, path) => path.split(".").reduce((inner, name) => inner?.[name], value);

// Rows change where they are, instead of moving for those before them: what moves on its own is hard to read.
htmx.config.morphScanLimit = 0;
// Morphing must not close what the reader has opened, nor show the link to reload.
htmx.registerExtension("dashboard", {
  htmx_before_morph_attr: (element, { attrName }) =>
    !(attrName === "open" && element.tagName === "DETAILS") && !(attrName === "hidden" && element.id === "reload"),
});

/** Show or hide the link to reload; a page whose content does not follow the service has none. */
function showReload(isShown) {
  document.getElementById("reload")?.toggleAttribute("hidden", !isShown);
}

const commands = document.getElementById("commands");
commands.checked = localStorage.getItem("commands") === "shown";
commands.addEventListener("change", () => localStorage.setItem("commands", commands.checked ? "shown" : ""));

/** Write what changes by the second: the service's clock, and what is left of a time. */
function tick() {
  const time = document.getElementById("time");
  const { frozen, offset } = time.dataset;
  const now = frozen ? Number(frozen) : Date.now() + Number(offset);
  const shown = new Date(now);
  if (!frozen && !Number.isNaN(shown.getTime())) time.textContent = shown.toISOString().slice(-13, -5);
  for (const left of document.querySelectorAll("[data-left]")) {
    const ms = Math.max(0, Number(left.dataset.left) - now); // as `countdown` in texts.py
    if (ms < 86_400_000) left.textContent = new Date(ms).toISOString().slice(11, 19).replace(/^00:/, "");
  }
}
setInterval(tick, 1000);
document.addEventListener("htmx:after:swap", () => {
  tick();
  markNewRows();
  place();
});
tick();

// A browser opens at most six connections to a host, and each event stream holds one. Only a few pages follow the service:
// the visible ones that the reader has turned to last. The others leave the connections to the extension under test.
const MOST_STREAMS = 3;
const main = document.getElementById("main");
const pages = new BroadcastChannel("extcli");
const own = `${performance.timeOrigin}-${Math.random()}`;
const newer = new Set(); // the pages that were turned to after this one
const isFollowing = () => !document.hidden && newer.size < MOST_STREAMS;
let stream = null;

/** Open the event stream, or close it. */
function follow() {
  if (!isFollowing()) stream?.reader?.cancel();
  else if (!stream) htmx.trigger(main, "follow");
}

/** Tell the other pages that the reader has turned to this one. */
function turnTo() {
  if (document.hidden) return;
  newer.clear();
  pages.postMessage({ id: own, isOpen: true });
  follow();
}

if (main.hasAttribute("hx-sse:connect")) {
  pages.addEventListener("message", ({ data: { id, isOpen } }) => {
    if (isOpen) newer.add(id);
    else newer.delete(id);
    follow();
  });
  const leave = () => pages.postMessage({ id: own, isOpen: false });
  addEventListener("load", turnTo);
  addEventListener("focus", turnTo);
  addEventListener("pagehide", leave);
  document.addEventListener("pointerdown", turnTo);
  document.addEventListener("pointerenter", turnTo);
  document.addEventListener("visibilitychange", () => { document.hidden ? leave() : turnTo(); follow(); });
}

document.addEventListener("htmx:sse:before:connection", (event) => {
  if (!isFollowing()) event.preventDefault();
});
document.addEventListener("htmx:sse:after:connection", ({ detail }) => {
  stream = detail.connection;
  showReload(false);
});
document.addEventListener("htmx:sse:close", () => { stream = null; });
for (const name of ["htmx:sse:error", "htmx:sse:close"]) {
  document.addEventListener(name, () => showReload(!document.hidden));
}

say(sessionStorage.getItem("done") ?? "");
sessionStorage.removeItem("done");

/** Say how many sockets got the broadcast of a request, by the journal. */
async function sayReached(action, id, done, more) {
  const answer = await fetch(action.replace(/call$/, `journal?kind=delivery&id=${encodeURIComponent(id)}`));
  const count = (await answer.json()).entries?.reduce((sum, each) => sum + each.delivered, 0);
  if (count === 0) say("Sent, but no socket listens to this event now: see Sockets.", false, more, { isDone: false });
  else say(count ? `Sent to ${count} ${count === 1 ? "listener" : "listeners"}.` : done, false, more);
}

/** Fill in the names between braces, such as `{body.id}`, from an answer or else from a form. */
const filled = (pattern, answer, form) =>
  pattern.replace(/\{([^}]+)\}/g, (_, name) => encodeURIComponent(memberOf(answer, name) ?? form.elements[name]?.value ?? ""));

document.addEventListener("htmx:before:request", ({ detail: { ctx } }) => {
  if (!ctx.sourceElement.matches("form.action")) return;
  ctx.ending = { ...ctx.sourceElement.dataset }; // an update may change the form before the answer arrives
  known = new Set(rows().map(keyOf));
});
/** What the service answered to a form: why it failed, a hint, and the id of its request in the journal. */
function outcomeOf(form, { text, response }) {
  const answer = parsed(text);
  const isCall = form.action.endsWith("/call");
  // A call as any caller answers 200 with the status of the call, which is 0 if a fault left it without a response.
  const isMade = isCall && response.status === 200;
  const { status, body } = isMade ? answer : { status: response.status, body: answer };
  const entry = isMade ? answer.request_id : isCall ? "" : response.headers.get("x-request-id");
  const failure = status < 200 || status >= 400 ? body?.info || body?.reason || `the service answered ${status}` : "";
  const request = result.dataset.requests && entry ? result.dataset.requests + encodeURIComponent(entry) : "";
  return { answer, entry, failure, request, isMade, hint: (isMade && answer.hint) || "" };
}

/** What follows the message of a success: what it shows, with a button to copy a secret, a link, and a button to undo it. */
function followUps(form, ending, { answer, request, isMade }, shown, isSecret) {
  const href = ending.open ? filled(ending.open, answer, form) : isMade ? request : "";
  const inverse = ending.inverse && filled(ending.inverse, answer, form);
  const undo = () => {
    const form = document.getElementById(inverse); // it may come with the next update
    if (form) form.requestSubmit();
    else document.addEventListener("htmx:after:swap", undo, { once: true });
  };
  const copy = element("button", { type: "button" }, "Copy");
  copy.dataset.copy = shown;
  return [
    shown && element("b", {}, shown),
    isSecret && copy,
    href && element("a", { href }, ending.open ? "Open" : "Its request"),
    inverse && element("button", { type: "button", onclick: undo }, "Undo"),
  ].filter(Boolean);
}

document.addEventListener("htmx:after:request", ({ detail: { ctx } }) => {
  const { sourceElement: form, ending } = ctx;
  if (!form.matches("form.action")) return;
  const used = form.contains(document.activeElement) ? document.activeElement : null;
  const isByKeys = used?.matches(":focus-visible");
  acting = used ?? form.querySelector("button:not([type])");
  const outcome = outcomeOf(form, ctx);
  const { answer, entry, hint, failure, request } = outcome;
  if (failure) {
    const why = request ? [element("a", { href: request }, "Why, and what to do")] : [];
    return say(hint ? `${failure} (${hint})` : failure, true, why);
  }
  if (ending.next) {
    sessionStorage.setItem("done", ending.done);
    return location.assign(ending.next);
  }
  const found = ending.show ? memberOf(answer, ending.show) : undefined;
  const shown = found === "0" ? "" : found;
  const isNothing = Boolean(ending.show) && !shown;
  const isSecret = Boolean(shown) && ending.show.startsWith("body.");
  const more = followUps(form, ending, outcome, shown, isSecret);
  const folded = form.closest("details.asks, details.drawer");
  if (folded) {
    folded.open = false;
    acting = folded.querySelector("summary");
    acting.focus();
  }
  if ("reached" in ending) sayReached(form.action, entry, ending.done, more);
  else say(`${isNothing ? ending.nothing : ending.done} ${hint}`.trim(), false, more, { stays: isSecret, isDone: !isNothing });
  if (folded && isByKeys) result.querySelector("a, button")?.focus();
  markNewRows();
});
// Each click on such a button is the chosen voter, or another viewer, also while the page waits for the next update.
document.addEventListener("submit", ({ target }) => {
  if (!target.matches("form.fresh")) return;
  const voter = document.querySelector("[name=voter]:checked")?.value || `A${Math.random().toString(36).slice(2)}`;
  target.elements.opaque_user_id.value = voter;
}, true);
document.addEventListener("htmx:error", (event) => {
  if (event.detail.ctx?.sourceElement.matches("form.action")) say("The service does not answer.", true);
});

/** The words that a part of a command stands for; see `commands.py`. */
function wordsOf(part, form) {
  if (typeof part === "string") return [part];
  const { option, pieces, shown, kind, only = "", when } = part;
  const typed = (name) => form.elements[name]?.value ?? "";
  const named = (value) => (option ? [option, value] : [value]);
  if (when && typed(when[0]) !== when[1]) return [];
  if (!pieces) return [option];
  if (kind === "each") {
    const [before, name, after] = pieces[0];
    const values = name.endsWith(":json") ? parsed(typed(name)) : typed(name).split("\n").filter(Boolean);
    if (!Array.isArray(values)) return named(shown);
    return values.flatMap((value) => named(`${before}${value}${after}`));
  }
  const word = pieces.map(([before, name, after]) => {
    const value = typed(name);
    return value && value.startsWith(only) ? `${before}${value.slice(only.length)}${after}` : "";
  }).join("");
  if (word) return named(word);
  return (option && !form.elements[pieces[0][1]]?.required) || kind === "optional" ? [] : named(shown);
}

/** Show only the fields for what is chosen, and write what is typed into a form into the command beside it. */
function followForm(form) {
  for (const field of form.querySelectorAll("[data-only]")) {
    const [name, value] = field.dataset.only.split("=");
    field.disabled = form.elements[name].value !== value;
    field.parentElement.hidden = field.disabled;
  }
  const code = form.querySelector("code[data-command]");
  if (!code) return;
  const line = JSON.parse(code.dataset.command).flatMap((part) => wordsOf(part, form)).map("windows" in result.dataset ? windows : posix).join(" ");
  code.textContent = line;
  code.parentElement.querySelector("[data-copy]").dataset.copy = line;
}

const followForms = () => document.querySelectorAll("form.action").forEach(followForm);
document.addEventListener("input", ({ target }) => target.form?.matches("form.action") && followForm(target.form));
document.addEventListener("htmx:after:swap", followForms);
followForms();

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  if (!result.contains(button)) acting = button;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    say("Copied.");
  } catch {
    say("The browser does not allow copying here; select the text.", true);
  }
});
