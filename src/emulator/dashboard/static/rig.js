// The script of the rig, after the one of all pages. A changed setting of one frame leaves the other frames as they are.
"use strict";

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
