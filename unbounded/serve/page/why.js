// Why a word was expected, or was not: probabilities, shares, passages.

import { memoryPath, post } from "./api.js";
import { $, element, latest, percent } from "./dom.js";

const NAMES = {
  static: "network", uniform: "any word", adapted: "network, adapting", dynamic_head: "network, learning", unigram: "how often",
  ngram: "same words before", latest: "last 128 words", recent: "last 1,024", unbounded: "all it read",
};

export const nameOf = (expert) => NAMES[expert] ?? expert;

const bits = (prob) => `${(-Math.log2(prob)).toFixed(1)} bits`;

function table(word, asked) {
  const rows = [
    ["network alone", percent(word.static), bits(word.static)],
    ["with memory", percent(word.prob), bits(word.prob)],
  ];
  const shares = Object.entries(asked.shares)
    .filter(([, share]) => share >= 0.01)
    .sort((one, other) => other[1] - one[1]);
  return element("div", {},
    element("table", {}, element("tbody", {}, ...rows.map(([name, ...cells]) =>
      element("tr", {}, element("th", { scope: "row" }, name), ...cells.map((cell) => element("td", {}, cell)))))),
    element("h3", {}, "Whose word it is"),
    element("table", { class: "shares" }, element("tbody", {}, ...shares.map(([name, share]) => {
      const meter = element("span", { class: "meter" });
      meter.style.width = `${(10 * share).toFixed(2)}rem`;
      return element("tr", {}, element("th", { scope: "row" }, nameOf(name)),
        element("td", {}, meter), element("td", {}, percent(share)));
    }))),
  );
}

function passages(sources) {
  if (!sources.length) return element("p", { class: "faint" }, "No passage speaks for it.");
  return element("ul", { class: "passages" }, ...sources.map((one) =>
    element("li", {}, one.text,
      element("small", {}, `${one.document}, line ${one.line} · ${one.time.slice(0, 10)} · adds ${percent(one.weight)}`))));
}

export function clear() {
  $("why-title").textContent = "Why?";
  $("why-body").replaceChildren(element("p", { class: "faint" }, "Point at a word."));
}

export const explain = latest(async (signal, memory, word, before, failed) => {
  try {
    const body = { text: before, n: 1, sources: 4, word: word.word };
    const found = await post(memoryPath(memory, "predict"), body, signal);
    $("why-title").replaceChildren("Why ", element("strong", {}, word.shown), "?");
    $("why-body").replaceChildren(table(word, found.asked), passages(found.asked.sources));
  } catch (error) {
    if (error.name !== "AbortError") failed(error);
  }
}, 60);
