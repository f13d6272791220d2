// How shells read words, without a character that a terminal acts on: the rules of `contract/shell.py`.
"use strict";

const UNPRINTABLE = /(?! )[\p{C}\p{Z}]/u;
const isLive = (character) => UNPRINTABLE.test(character) || '"$`%“”„'.includes(character);
const replaced = (word, mustBe, by) => [...word].map((each) => (mustBe(each) ? by(each) : each)).join("");

function posix(word) {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  const inQuotes = `'${word.replaceAll("'", `'"'"'`)}'`;
  if (!UNPRINTABLE.test(word)) return inQuotes.replace(/\\(?=[\\'])/g, "'\\\\'");
  const bytes = (each) => Array.from(new TextEncoder().encode(each), (byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
  return `$'${replaced(word.replaceAll("\0", "\\x00"), (each) => UNPRINTABLE.test(each) || "'\\!".includes(each), bytes)}'`;
}

function windows(word) {
  if (/^[\w+=:./\\-]+$/.test(word)) return word;
  if (!UNPRINTABLE.test(word) && !/["$`%“”„]/.test(word)) return `"${word}"`;
  if (!UNPRINTABLE.test(word) && !/[&|<>^%]/.test(word) && word.split('"').length % 2) return `'${word.replace(/['‘’‚‛]/g, "$&$&")}'`;
  const units = (each) => each.split("").map((unit) => `$([char]${unit.charCodeAt(0)})`).join("");
  return `"${replaced(word, isLive, units)}"`;
}
