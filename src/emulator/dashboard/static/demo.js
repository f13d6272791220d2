// The demo: a seeded crowd that this page sends into the namespace `demo`, until it is stopped, hidden, closed or dropped.
"use strict";

const NAMESPACE = document.currentScript.src.replace(/\/_emulator\/ui\/static\/.*$/, "");
const CALLS = `${NAMESPACE}/_emulator/call`;
const LONGEST = 180; // seconds
const BEAT = 400; // milliseconds
const PLACE = { client_id: "demo-extension", channel_id: "1001" };
const OPTIONS = ["Dragon", "Golem", "Hydra", "Kraken"];
const WORDS = ["gg", "wow", "clutch", "again", "nerf it"];
let random, timer, beat, isPlaying = false;
let underWay = null; // the calls that have no response yet

/** Numbers from 0 to 1, the same at each start (mulberry32). */
function seeded(state) {
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Make a call of the service as any caller. */
function send(role, user_id, method, path, body) {
  return fetch(CALLS, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ ...PLACE, role, user_id, method, path: `/v1/e/${path}`, body }),
  });
}

const chosen = (values, exponent = 1) => values[Math.floor(values.length * random() ** exponent)];

/** What is there before the crowd comes. */
async function prepare() {
  const config = { prompt: "Which boss is next?", options: OPTIONS };
  await send("broadcaster", "1001", "POST", "vote_config?id=boss", { config });
  await send("admin", "", "PUT", "codes", { names: ["Hat"], indices: [0], codes: [Array.from({ length: 200 }, (_, at) => `HAT-${at}`)] });
}

/** What happens in one beat: votes, and now and then something else. */
async function play() {
  const user = String(50_000 + Math.floor(random() * 5_000));
  const calls = Array.from({ length: 1 + Math.floor(random() * 4) }, (_, at) =>
    send("viewer", String(10_000 + beat * 4 + at), "POST", "vote?id=boss", { value: OPTIONS.indexOf(chosen(OPTIONS, 1.7)) }));
  if (beat % 3 === 1) calls.push(send("viewer", user, "POST", "rank?id=words", { key: chosen(WORDS, 2) }));
  if (beat % 12 === 2) calls.push(send("broadcaster", "1001", "POST", "broadcast", { event: "round", data: { number: beat / 12 | 0 } }));
  if (beat % 20 === 5) {
    await send("admin", "", "POST", "codes/mark_from_list", { users: [user], prizes: [0], prize_limits: [1] });
    calls.push(send("viewer", user, "POST", "codes/redeem", { prize: 0 }));
  }
  if (beat % 25 === 10) calls.push(send("viewer", user, "POST", "vote?id=boss", { value: 900 }));
  return (await Promise.all(calls)).every((answer) => answer.ok);
}

/** Show the button, which each update of the page writes again. */
function show() {
  const button = document.getElementById("play");
  if (!button) return;
  button.hidden = false;
  button.textContent = isPlaying ? `Stop (${Math.ceil(LONGEST - beat * BEAT / 1000)} s left)` : "Play";
}

function stop() {
  isPlaying = false;
  clearTimeout(timer);
  show();
}

async function step() {
  if (!isPlaying) return;
  const goesOn = document.hidden || (await finished(play().catch(() => false)));
  beat += 1;
  if (!goesOn || beat * BEAT > LONGEST * 1000) stop();
  else if (isPlaying) timer = setTimeout(step, BEAT);
  show();
}

async function start() {
  [random, beat, isPlaying] = [seeded(7), 0, true];
  show();
  await finished(prepare()).then(step, stop);
}

/** Wait for calls, and note them as under way until then. */
async function finished(calls) {
  underWay = calls;
  return calls.finally(() => { underWay = null; });
}

/** End with the namespace, which was dropped. A call that was under way may have created it again. */
async function end() {
  isPlaying = false;
  clearTimeout(timer);
  if (underWay) {
    await underWay.catch(() => false);
    await fetch(NAMESPACE, { method: "DELETE" });
  }
  show();
}

document.addEventListener("click", ({ target }) => { if (target.id === "play") isPlaying ? stop() : start(); });
document.addEventListener("htmx:after:swap", show);
document.addEventListener("gone", end);
show(); // and start at a click alone: a link from elsewhere must not write into the namespace
