// The page's own script: connects nothing by itself. htmx follows the event stream and sends the forms.
"use strict";

const reload = document.getElementById("reload");
const result = document.getElementById("result");

/** Say something to everyone, screen readers included. */
function say(text, isError = false) {
  result.textContent = text;
  result.classList.toggle("error", isError);
}

/** The error of an answer of the control API, in words. */
function reasonOf(text, status) {
  try {
    const body = JSON.parse(text);
    return body.info || body.reason || String(status);
  } catch {
    return `the service answered ${status}`;
  }
}

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
  const failed = ctx.response.status >= 400;
  say(failed ? reasonOf(ctx.text, ctx.response.status) : form.dataset.done, failed);
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
