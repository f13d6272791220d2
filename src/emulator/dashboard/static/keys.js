// The keys of all pages, and the list of screens, names and deeds that they open.
"use strict";

const PLACES = {
  o: "_emulator/", p: "polls", r: "rankings", b: "buffers", s: "stores", c: "codes", i: "pins", l: "links", t: "trivia", u: "purchases",
  q: "requests", a: "broadcasts", k: "sockets", g: "rig", h: "clock", f: "faults", n: "namespaces",
};
const palette = document.getElementById("palette");
const wanted = palette.querySelector("input");
const list = palette.querySelector("ul");
const screenOf = (name) => document.querySelector(`nav a[href$="/${name}"]`);

let elsewhere = []; // records and forms of other screens, since the list was opened

async function readElsewhere() {
  const read = async (name) => {
    const { href, textContent: screen } = screenOf(name);
    const page = new DOMParser().parseFromString(await (await fetch(href)).text(), "text/html");
    const records = [...page.querySelectorAll("main tbody th a")].map((link) => [link.textContent, link.getAttribute("href")]);
    const forms = [...page.querySelectorAll("main form.action[id]")].map((form) => [form.querySelector("button").textContent, `${href}#${form.id}`]);
    return [...records, ...forms].map(([title, href]) => ({ title: `${title} · ${screen}`, href }));
  };
  elsewhere = (await Promise.all(["_emulator/", "polls", "rankings", "stores", "clock", "faults"].map(read))).flat();
  if (palette.open) showOffers();
}

/** What the list offers: links, and buttons that can be seen, each with its title. */
function offers(text) {
  const deeds = [...document.querySelectorAll("main tbody th a, main summary, main form.action button:not([type]), main .choices > a")];
  const screens = Object.entries(PLACES).map(([key, name]) => ({ target: screenOf(name), key: `g ${key}` }));
  const seen = deeds.filter((each) => each.checkVisibility()).map((target) => ({ target }));
  return [...screens, ...seen]
    .filter(({ target }) => target)
    .map((each) => ({ title: each.target.getAttribute("aria-label") ?? each.target.textContent.trim(), ...each }))
    .concat(text ? elsewhere : [])
    .filter(({ title }) => title.toLowerCase().includes(text.toLowerCase()))
    .slice(0, 40);
}

function showOffers() {
  list.replaceChildren(...offers(wanted.value.trim()).map(({ title, target, key, href }) => {
    const button = element("button", { type: "button" }, title, ...(key ? [" ", element("kbd", {}, key)] : []));
    button.addEventListener("click", () => {
      palette.close();
      if (href) return location.assign(href);
      target.click();
      (target.parentElement.querySelector(":scope > form :is(input:not([type=hidden]), select, textarea)") ?? target).focus();
    });
    return element("li", {}, button);
  }));
}

function openPalette() {
  if (palette.open) return;
  wanted.value = "";
  showOffers();
  palette.showModal();
  readElsewhere();
}

/** Move the focus to the next of some elements, or to the one before; `from` is in the one to start at. */
function step(all, by, from = document.activeElement) {
  const at = all.findIndex((each) => each.contains(from) || each.closest("tr")?.contains(from));
  all[at < 0 ? 0 : Math.min(Math.max(at + by, 0), all.length - 1)]?.focus();
}

/** Move the focus by rows; from elsewhere, to the first. */
function stepRow(by) {
  const links = [...document.querySelectorAll("main tbody :is(th, td:first-child) a")];
  step(links, by, document.activeElement.closest("tr") ?? undefined);
}

const KEYS_OF_ALL = {
  j: () => stepRow(1),
  k: () => stepRow(-1),
  "/": () => document.querySelector("main [role=search] input:not([type=hidden])")?.focus(),
  "?": openPalette,
};
let isGoing = false; // after `g`, the next letter names a screen

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "k") {
    event.preventDefault();
    return openPalette();
  }
  if (palette.open && ["ArrowDown", "ArrowUp"].includes(event.key)) {
    event.preventDefault();
    return step([wanted, ...list.querySelectorAll("button")], event.key === "ArrowDown" ? 1 : -1);
  }
  // The marks of a lane are many: the arrow keys lead along them, from its name.
  const lane = event.target.closest(".lane");
  if (lane && ["ArrowRight", "ArrowLeft"].includes(event.key)) {
    event.preventDefault();
    return step([...lane.querySelectorAll("a")], event.key === "ArrowRight" ? 1 : -1);
  }
  if (event.key === "Escape" && !palette.open) {
    if (result.contains(document.activeElement)) (acting?.isConnected ? acting : document.getElementById("main")).focus();
    say("");
  }
  if (palette.open || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) return;
  const place = isGoing ? PLACES[event.key] : undefined;
  isGoing = !isGoing && event.key === "g";
  const vote = /^[1-9]$/.test(event.key) && document.querySelectorAll(".bars .vote button")[event.key - 1];
  if (place) screenOf(place)?.click();
  else if (vote) vote.click();
  else if (!isGoing && Object.hasOwn(KEYS_OF_ALL, event.key)) KEYS_OF_ALL[event.key]();
  else return;
  event.preventDefault();
});
wanted.addEventListener("input", showOffers);
wanted.addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault(); // the key would also send the form that gets the focus
  list.querySelector("button")?.click();
});
document.addEventListener("click", ({ target }) => {
  if (target.closest("[data-palette]")) openPalette();
  else if (target === palette) palette.close();
});
