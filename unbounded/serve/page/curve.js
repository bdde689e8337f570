// Two curves: how surprised the network alone and the memory were, word by word.

import { $, number, perplexity } from "./dom.js";

const SPACE = "http://www.w3.org/2000/svg";
const svg = $("curve");
const SHOWN = 300;

let points = [];
let total = { words: 0, memory: 0, alone: 0 };

export function reset() {
  points = [];
  total = { words: 0, memory: 0, alone: 0 };
  draw();
}

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
}

function thinned() {
  const step = Math.ceil(points.length / SHOWN);
  return points.filter((_, i) => i % step === 0 || i === points.length - 1);
}

export function draw() {
  const label = $("curve-text");
  if (!points.length) {
    svg.replaceChildren(label);
    label.textContent = "Nothing read yet";
    $("ppl-static").textContent = $("ppl-memory").textContent = "–";
    return;
  }
  const shown = thinned();
  const values = shown.flatMap((point) => [point.memory, point.alone]);
  const low = Math.min(...values) - 0.1;
  const high = Math.max(...values) + 0.1;
  const first = shown[0].words;
  const last = total.words;
  const x = (words) => (last === first ? 400 : (400 * (words - first)) / (last - first));
  const y = (nats) => 150 - (140 * (nats - low)) / (high - low);
  const line = (name) => {
    const made = document.createElementNS(SPACE, "polyline");
    made.setAttribute("class", name === "alone" ? "static" : "memory");
    const places = shown.map((point) => `${x(point.words).toFixed(1)},${y(point[name]).toFixed(1)}`);
    if (places.length === 1) places.unshift(places[0].replace(/^[^,]*/, "0"));
    made.setAttribute("points", places.join(" "));
    return made;
  };
  svg.replaceChildren(label, line("alone"), line("memory"));
  const now = points.at(-1);
  const alone = perplexity(Math.exp(now.alone));
  const memory = perplexity(Math.exp(now.memory));
  $("ppl-static").textContent = alone;
  $("ppl-memory").textContent = memory;
  label.textContent =
    `After ${number(total.words)} words: perplexity ${alone} for the network alone, ` +
    `${memory} with memory`;
}
