// Why a word was expected, or was not: probabilities, shares, passages; and who the experts are.

import { memoryPath, post } from "./api.js";
import { $, element, latest, percent } from "./dom.js";

const EXPERTS = {
  static: ["network", "The trained network, which never changes."],
  adapted: ["network, adapting", "The network with an output layer that learns as it reads."],
  dynamic_head: ["network, learning", "The network with an output layer that goes on training as it reads."],
  dynamic: ["network, all learning", "The network with all of its weights learning as it reads."],
  ngrams: ["same words before", "What followed the same last words in what it has read, and then in the training text too."],
  train_ngram: ["training text and since", "What followed the same last words in the training text, and in what it has read since."],
  spelling: ["spelling", "Words never seen before, by how they are spelled."],
  uniform: ["any word", "Every word alike: a little for those nobody expects."],
  unigram: ["how often", "How often each word came in what it has read."],
  ngram: ["same words before", "What followed the same last words in what it has read."],
  cache_128: ["last 128 words", "What followed similar places among the last 128 words."],
  cache_1024: ["last 1,024 words", "What followed similar places among the last 1,024 words."],
  local: ["last words", "What followed similar places among the last words."],
  unbounded: ["all it read", "What followed similar places in all that it has ever read."],
};

// Those that know nothing but what was read; `ngrams` know the training text too.
const READ = ["unigram", "ngram", "cache_128", "cache_1024", "local", "unbounded"];

export const nameOf = (expert) => EXPERTS[expert]?.[0] ?? expert;
export const meaning = (expert) => EXPERTS[expert]?.[1] ?? "";

// Whether a guess is owed to what was read: that says it with half of its probability or more, and
// the network alone with less.
export function owed({ prob, shares }, weights) {
  const own = (name) => (weights[name] ? (shares[name] * prob) / weights[name] : 0);
  return own("static") < prob / 2 && Math.max(...READ.map(own)) >= prob / 2;
}

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
      meter.style.width = `calc(${share.toFixed(3)} * min(10rem, 30vw))`;
      return element("tr", { title: meaning(name) }, element("th", { scope: "row" }, nameOf(name)),
        element("td", {}, meter), element("td", {}, percent(share)));
    }))),
  );
}

function passages(sources) {
  if (!sources.length) return element("p", { class: "faint" }, "No passage speaks for it.");
  const marked = (one) => {
    const letters = [...one.text];
    const part = (from, to) => letters.slice(from, to).join("");
    return [part(0, one.start), element("mark", {}, part(one.start, one.end)), part(one.end)];
  };
  return element("ul", { class: "passages" }, ...sources.map((one) =>
    element("li", {}, ...marked(one),
      element("small", {}, `${one.document}, line ${one.line} · ${one.time.slice(0, 10)} · adds ${percent(one.weight)}`))));
}

export function clear() {
  $("why-title").textContent = "Why?";
  $("why-body").replaceChildren(element("p", { class: "faint" }, "Choose a word of your text."));
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
