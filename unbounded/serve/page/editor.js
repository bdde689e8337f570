// The text with its tint: a text area, and behind it the same text with a color for each word.

import { $, element } from "./dom.js";

const draft = $("draft");
const tint = $("tint");
const HOTTEST = 12; // nats: one in 160,000

let words = [];
let spans = [];
let view = "both";
let marked = null;

const heat = (prob) => Math.min(Math.max(-Math.log(prob) / HOTTEST, 0), 1);
const color = (prob) => `hsl(var(--hot) / ${(0.85 * heat(prob) ** 1.3).toFixed(3)})`;

function paint(span, word) {
  const memory = color(word.prob);
  const alone = color(word.static);
  if (view === "static") span.style.background = alone;
  else if (view === "memory") span.style.background = memory;
  else span.style.background = `linear-gradient(${alone} 0 24%, transparent 24% 30%, ${memory} 30%)`;
}

export const text = () => draft.value;
export const atEnd = () => draft.selectionStart === draft.value.length;

export function setText(value) {
  draft.value = value;
  draft.setSelectionRange(value.length, value.length);
  plain();
}

// The service counts characters, JavaScript halves of them; most texts have no difference.
function units(value) {
  const places = [0];
  for (const character of value) places.push(places.at(-1) + character.length);
  return (place) => places[Math.min(place, places.length - 1)];
}

// Before the colors are known: the words that did not change keep theirs.
export function plain() {
  grow();
  const value = draft.value;
  let same = 0;
  while (same < words.length && value.startsWith(words[same].shown, words[same].from)) same += 1;
  render(value, words.slice(0, same));
}

export function show(scored) {
  const at = units(scored.text);
  const found = scored.words
    .filter((word) => word.end > word.start && word.word !== "</s>")
    .map((word) => {
      const from = at(word.start);
      const to = at(word.end);
      return { ...word, from, to, shown: scored.text.slice(from, to) };
    });
  render(scored.text, found);
}

function render(value, found) {
  words = found;
  spans = [];
  const parts = [];
  let end = 0;
  for (const word of words) {
    parts.push(value.slice(end, word.from));
    const span = element("span", { class: "word" }, word.shown);
    span.dataset.nats = (-Math.log(word.prob)).toFixed(3);
    span.dataset.static = (-Math.log(word.static)).toFixed(3);
    paint(span, word);
    spans.push(span);
    parts.push(span);
    end = word.to;
  }
  tint.replaceChildren(...parts, `${value.slice(end)}\n`);
  grow();
}

export function setView(name) {
  view = name;
  spans.forEach((span, i) => paint(span, words[i]));
}

export const isEmpty = () => !draft.value.trim();

function grow() {
  draft.style.height = "auto";
  draft.style.height = `${draft.scrollHeight}px`;
}

function mark(index) {
  if (marked !== null) spans[marked]?.classList.remove("marked");
  marked = index;
  if (index !== null) spans[index]?.classList.add("marked");
}

// The word under a point, or under the caret; `pick` is told once a word.
export function onPick(pick) {
  let last = "";
  const tell = (index, always = false) => {
    if (index < 0) return;
    const word = words[index];
    const name = `${word.from}:${word.shown}:${word.prob}`;
    mark(index);
    if (name !== last || always) {
      last = name;
      pick(word, draft.value.slice(0, word.from));
    }
  };
  draft.addEventListener("mousemove", (event) => {
    const { clientX: x, clientY: y } = event;
    const inside = (box) => x >= box.left && x <= box.right && y >= box.top && y <= box.bottom;
    tell(spans.findIndex((span) => [...span.getClientRects()].some(inside)));
  });
  const caret = () => {
    const at = draft.selectionStart;
    tell(words.findIndex((word) => word.from <= at && at <= word.to && word.to > word.from));
  };
  draft.addEventListener("keyup", caret);
  draft.addEventListener("click", caret);
}

window.addEventListener("resize", grow);
