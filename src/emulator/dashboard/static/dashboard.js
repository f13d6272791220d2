// The page's own script: connects nothing by itself. htmx follows the event stream and sends the forms.
"use strict";

const result = document.getElementById("result");

/** Say something to everyone, screen readers included. `request` is the id of a refused request, to link to its page.
 * `value` is what the reader waits for, such as a PIN: it stands out. */
function say(text, isError = false, request = "", value = "") {
  const shown = Object.assign(document.createElement("b"), { textContent: value });
  result.replaceChildren(text, ...(value ? [" ", shown] : []));
  result.classList.toggle("error", isError);
  if (!request) return;
  const link = document.createElement("a");
  link.href = result.dataset.requests + encodeURIComponent(request);
  link.textContent = "Why, and what to do";
  result.append(" ", link);
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
  for (const left of document.querySelectorAll("[data-until]")) {
    const seconds = Math.round((Number(left.dataset.until) - now) / 1000);
    left.textContent = seconds > 0 && seconds <= 600 ? ` (${seconds} s)` : "";
  }
  for (const left of document.querySelectorAll("[data-left]")) {
    const ms = Math.max(0, Number(left.dataset.left) - now); // as `countdown` in texts.py
    if (ms < 86_400_000) left.textContent = new Date(ms).toISOString().slice(11, 19).replace(/^00:/, "");
  }
}
setInterval(tick, 1000);
document.addEventListener("htmx:after:swap", tick);
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
async function sayReached(form, id) {
  const answer = await fetch(form.action.replace(/call$/, `journal?kind=delivery&id=${encodeURIComponent(id)}`));
  const count = (await answer.json()).entries?.reduce((sum, each) => sum + each.delivered, 0);
  if (count === 0) say("Sent, but nothing listens to this event there now: see Sockets.");
  else say(count ? `Sent to ${count} ${count === 1 ? "listener" : "listeners"}.` : form.dataset.done);
}

document.addEventListener("htmx:after:request", (event) => {
  const { ctx } = event.detail;
  const form = ctx.sourceElement;
  if (!form.matches("form.action")) return;
  const answer = parsed(ctx.text);
  // A call as any caller answers 200 with the status of the call.
  const isCall = ctx.response.status === 200 && form.action.endsWith("/call");
  const status = isCall ? answer.status : ctx.response.status;
  const body = isCall ? answer.body : answer;
  if (status < 400) form.closest("details.asks")?.removeAttribute("open");
  if (status >= 400) {
    const id = isCall ? answer.request_id : form.action.endsWith("/call") ? "" : ctx.response.headers.get("x-request-id");
    const hint = isCall && answer.hint ? ` (${answer.hint})` : "";
    say((body?.info || body?.reason || `the service answered ${status}`) + hint, true, result.dataset.requests && id);
  } else if ("reached" in form.dataset) {
    sayReached(form, answer.request_id);
  } else {
    const shown = form.dataset.show ? memberOf(answer, form.dataset.show) : undefined;
    if (form.dataset.next) {
      sessionStorage.setItem("done", form.dataset.done);
      location.assign(form.dataset.next);
    } else say(form.dataset.done, false, "", [shown, isCall ? answer.hint : undefined].filter((part) => part !== undefined).join(" "));
  }
});
// Each click on such a button is another viewer, also while the page waits for the next update.
document.addEventListener("submit", ({ target }) => {
  if (target.matches("form.fresh")) target.elements.opaque_user_id.value = `A${Math.random().toString(36).slice(2)}`;
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
  if (kind === "each" || kind === "limits") {
    const [before, name, after] = pieces[0];
    const values = name.endsWith(":json") ? parsed(typed(name)) : typed(name).split("\n").filter(Boolean);
    if (!Array.isArray(values)) return named(shown);
    const place = (index) => (kind === "limits" && values.length > 1 ? `${index}=` : "");
    return values.flatMap((value, index) => named(`${before}${place(index)}${value}${after}`));
  }
  const word = pieces.map(([before, name, after]) => {
    const value = typed(name);
    return value && value.startsWith(only) ? `${before}${value.slice(only.length)}${after}` : "";
  }).join("");
  if (word) return named(word);
  return (option && !form.elements[pieces[0][1]]?.required) || kind === "optional" ? [] : named(shown);
}

/** Write what is typed into a form into the command beside it. */
function followForm(form) {
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
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    say("Copied.");
  } catch {
    say("The browser does not allow copying here; select the text.", true);
  }
});
