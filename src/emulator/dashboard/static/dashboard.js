// The page's own script: connects nothing by itself. htmx follows the event stream and sends the forms.
"use strict";

const reload = document.getElementById("reload");
const result = document.getElementById("result");

/** Say something to everyone, screen readers included. */
function say(text, isError = false) {
  result.textContent = text;
  result.classList.toggle("error", isError);
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

// Morphing must not close what the reader has opened.
htmx.registerExtension("dashboard", {
  htmx_before_morph_attr: (element, { attrName }) => !(attrName === "open" && element.tagName === "DETAILS"),
});

document.addEventListener("htmx:sse:after:connection", () => { reload.hidden = true; });
for (const name of ["htmx:sse:error", "htmx:sse:close"]) {
  document.addEventListener(name, () => { reload.hidden = document.hidden; });
}

document.addEventListener("htmx:after:request", (event) => {
  const { ctx } = event.detail;
  const form = ctx.sourceElement;
  if (!form.matches("form.action")) return;
  const answer = parsed(ctx.text);
  // A call as any caller answers 200 with the status of the call.
  const isCall = ctx.response.status === 200 && Number.isInteger(answer?.status);
  const status = isCall ? answer.status : ctx.response.status;
  const body = isCall ? answer.body : answer;
  if (status >= 400) {
    say(body?.info || body?.reason || `the service answered ${status}`, true);
  } else {
    const shown = form.dataset.show ? memberOf(answer, form.dataset.show) : undefined;
    say(shown === undefined ? form.dataset.done : `${form.dataset.done} ${shown}`);
  }
});
document.addEventListener("htmx:error", (event) => {
  if (event.detail.ctx?.sourceElement.matches("form.action")) say("The service does not answer.", true);
});

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

// The rig: a changed setting of one frame leaves the other frames as they are.
document.addEventListener("change", async ({ target }) => {
  const arrangement = document.getElementById("arrangement");
  const frame = target.closest(".frame")?.querySelector("iframe");
  if (!frame || target.form !== arrangement) return;
  const address = `${arrangement.action}?${new URLSearchParams(new FormData(arrangement))}`;
  if (target.dataset.live) {
    const value = target.type === "checkbox" ? target.checked : target.value;
    frame.contentWindow.postMessage({ extcli: { [target.dataset.live]: value } }, new URL(frame.src).origin);
  } else {
    const page = new DOMParser().parseFromString(await (await fetch(address)).text(), "text/html");
    const fresh = page.getElementById(frame.id);
    if (!fresh) return say(page.querySelector("[role=alert]")?.textContent || "The service does not answer.", true);
    frame.src = fresh.src;
  }
  history.replaceState(null, "", address);
  say("Changed; the address of this page has it.");
});
