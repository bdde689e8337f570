// Two curves: how surprised the network alone and the memory were, word by word. Their points are
// kept in this browser, so that they are there after a reload; they are numbers and no words.

import { $, number, perplexity } from "./dom.js";

const SPACE = "http://www.w3.org/2000/svg";
const svg = $("curve");
const SHOWN = 300;
const LEFT = 44;
const BELOW = 20;

let name = null;
let points = [];
let total = { words: 0, memory: 0, alone: 0 };

const key = (memory) => `unbounded-curve:${memory}`;

// That of a memory: what was kept of it, or nothing if the memory has nothing in it.
export function open(memory, entries) {
  name = memory;
  const kept = entries ? JSON.parse(localStorage.getItem(key(memory))) : null;
  points = kept?.points ?? [];
  total = kept?.total ?? { words: 0, memory: 0, alone: 0 };
  draw();
}

export const drop = (memory) => localStorage.removeItem(key(memory));

// So many words with this mean surprise, in nats.
export function add(count, memory, alone) {
  total.words += count;
  total.memory += count * memory;
  total.alone += count * alone;
  points.push({
    words: total.words,
    memory: total.memory / total.words,
    alone: total.alone / total.words,
  });
  if (points.length > 2 * SHOWN) points = points.filter((_, i) => i % 2 || i === points.length - 1);
}

function thinned() {
  const step = Math.ceil(points.length / SHOWN);
  return points.filter((_, i) => i % step === 0 || i === points.length - 1);
}

function shape(kind, attributes, text) {
  const made = document.createElementNS(SPACE, kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// Round numbers between two, few enough to be read: perplexities by ratio, words by difference.
function ratios(low, high) {
  let found = [];
  for (const steps of [[1, 1.5, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]]) {
    found = [];
    for (let ten = 10 ** Math.floor(Math.log10(low)); ten <= high; ten *= 10) {
      found.push(...steps.map((step) => step * ten).filter((one) => one >= low && one <= high));
    }
    if (found.length <= 5) return found;
  }
  return found.filter((_, i) => i % Math.ceil(found.length / 5) === 0);
}

function differences(high, most) {
  const ten = 10 ** Math.floor(Math.log10(high));
  const step = [0.2, 0.5, 1, 2, 5].map((one) => one * ten).find((one) => high / one <= most);
  return Array.from({ length: Math.floor(high / step) + 1 }, (_, i) => i * step);
}

// Six digits have no room beside the curves.
const tick = (one) => (one < 10 ? one : one < 1e5 ? number(one) : `${number(one / 1000)}k`);

export function draw() {
  const label = $("curve-text");
  if (!points.length) {
    label.textContent = "Nothing read on this page yet";
    svg.removeAttribute("viewBox");
    svg.replaceChildren(label, shape("text", { x: 14, y: 26 }, label.textContent));
    $("ppl-static").textContent = $("ppl-memory").textContent = "–";
    return;
  }
  const shown = thinned();
  const { width, height } = svg.getBoundingClientRect();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  // The mean of a few words is anything: the first of many are left out.
  const steady = shown.filter((point) => point.words >= Math.min(100, total.words / 2));
  const values = steady.flatMap((point) => [point.memory, point.alone]);
  const low = Math.min(...values) - 0.15;
  const high = Math.max(...values) + 0.15;
  const x = (words) => LEFT + ((width - LEFT - 10) * words) / total.words;
  const y = (nats) => 6 + ((height - BELOW - 6) * (high - nats)) / (high - low);
  const axes = [
    ...ratios(Math.exp(low), Math.exp(high)).flatMap((one) => [
      shape("line", { x1: LEFT, x2: width - 10, y1: y(Math.log(one)), y2: y(Math.log(one)) }),
      shape("text", { x: LEFT - 6, y: y(Math.log(one)) + 4, class: "end" }, tick(one)),
    ]),
    ...differences(total.words, width < 500 ? 3 : 4.5).map((one, i, all) => shape("text",
      { x: Math.min(x(one), width - 8), y: height - 5, class: i ? (i === all.length - 1 ? "end" : "middle") : "" },
      i === all.length - 1 ? `${number(one)} words` : number(one))),
  ];
  const line = (name) => {
    const places = steady.map((point) => `${x(point.words).toFixed(1)},${y(point[name]).toFixed(1)}`);
    if (places.length === 1) places.unshift(places[0].replace(/^[^,]*/, LEFT));
    return shape("polyline", {
      class: name === "alone" ? "static" : "memory", points: places.join(" "),
    });
  };
  svg.replaceChildren(label, ...axes, line("alone"), line("memory"));
  const now = points.at(-1);
  const alone = perplexity(Math.exp(now.alone));
  const memory = perplexity(Math.exp(now.memory));
  $("ppl-static").textContent = alone;
  $("ppl-memory").textContent = memory;
  label.textContent =
    `After ${number(total.words)} words: perplexity ${alone} for the network alone, ` +
    `${memory} with memory`;
  localStorage.setItem(key(name), JSON.stringify({ points: shown, total }));
}

window.addEventListener("resize", draw);
