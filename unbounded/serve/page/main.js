// The page: what is written is scored as it is typed, learned when asked, forgotten when asked.

import { NotText, Refused, events, get, memoryPath, post, remove, setKey } from "./api.js";
import * as curve from "./curve.js";
import * as documents from "./documents.js";
import { $, element, latest, number, percent, perplexity, share, size } from "./dom.js";
import * as editor from "./editor.js";
import * as why from "./why.js";

const CHOSEN = "unbounded-memory";
const FIRST = "notes"; // The name of the first memory, unless another is written.
const draft = $("draft");
const busy = new Set();

let memory = null;
let entries = 0;

function say(text) {
  $("status").textContent = text;
}

function failed(error) {
  const box = $("message");
  if (error instanceof Refused && error.status === 401) {
    $("key-form").hidden = false;
    $("key").focus();
  }
  const told = error instanceof Refused || error instanceof NotText;
  box.textContent = told ? error.message : "The service cannot be reached.";
  box.hidden = false;
}

const calm = () => ($("message").hidden = true);

// What the text is worth now: its tint, and the words that would come next.

const rescore = latest(async (signal) => {
  if (memory === null) return;
  const text = editor.text();
  try {
    if (editor.isEmpty()) {
      editor.show({ text, words: [] });
      $("score").textContent = "";
    } else {
      const found = await post(memoryPath(memory, "score"), { text }, signal);
      if (editor.text() !== text) return;
      editor.show({ ...found, text });
      $("score").textContent =
        `This text: ${perplexity(found.static_perplexity)} alone, ` +
        `${perplexity(found.perplexity)} with memory`;
    }
    document.body.dataset.scored = `${memory}:${text}`;
  } catch (error) {
    if (error.name !== "AbortError") failed(error);
  }
}, 120);

const predict = latest(async (signal) => {
  if (memory === null) return;
  try {
    const text = draft.value.slice(0, draft.selectionStart);
    const ask = (body) => post(memoryPath(memory, "predict"), { n: 7, sources: 1, ...body }, signal);
    // A word that is not there yet as a whole is gone on with; after one that is, the next comes.
    const [begun] = /[\p{L}\p{N}]+$/u.exec(text) ?? [""];
    const prefix = begun.toLowerCase();
    const whole = text.slice(0, text.length - begun.length);
    const longer = begun ? await ask({ text: whole, prefix }) : null;
    if (longer?.words.length && longer.words.every((one) => one.word !== prefix)) {
      offer(longer.words.map((one) => ({ ...one, word: written(one), begun })), longer.weights);
      weigh(longer.weights);
      return;
    }
    let found = await ask({ text });
    // Where a sentence is at its end, the next one begins.
    const ended = found.words[0]?.word === "</s>" && text.trim();
    if (ended) found = await ask({ text: `${text}\n` });
    const capital = ended || !text.trim() || text.endsWith("\n");
    offer(found.words.filter((one) => one.word !== "</s>")
      .map((one) => ({ ...one, word: capital ? capitalized(written(one)) : written(one) })), found.weights);
    weigh(found.weights);
  } catch (error) {
    if (error.name !== "AbortError") failed(error);
  }
}, 160);

// As it was written where it was read; a piece that goes on with a word says so.
const written = (one) => (one.word.startsWith("…") ? one.word : one.written);

const capitalized = (word) => word.charAt(0).toUpperCase() + word.slice(1);

// Whoever has moved to a word stays on it when the words are drawn again, or on the first.
function offer(guesses, weights) {
  const held = document.activeElement.closest("#chips button")?.value;
  const chips = guesses.map((one) => chip(one, weights));
  $("chips").replaceChildren(...chips);
  if (held !== undefined) (chips.find((one) => one.value === held) ?? chips[0] ?? draft).focus();
}

function chip(guess, weights) {
  const known = entries > 0 && why.owed(guess, weights);
  const made = element("button", { type: "button", class: known ? "known" : "" }, guess.word,
    element("small", {}, percent(guess.prob)));
  made.value = guess.word;
  made.setAttribute("aria-label", `${guess.word}, ${percent(guess.prob)}`);
  made.addEventListener("click", () => insert(guess.word, guess.begun));
  return made;
}

function insert(word, begun = "") {
  const at = draft.selectionStart;
  if (begun) {
    draft.setRangeText(word, at - begun.length, draft.selectionEnd, "end");
    draft.focus();
    changed();
    return;
  }
  const before = draft.value.slice(0, at);
  // A piece that goes on with a word is shown so, and not written so.
  const goesOn = word.startsWith("…") && word.length > 1;
  if (goesOn) word = word.slice(1);
  const joint = goesOn || !before || /\s$/.test(before) || /^[.,;:!?%)\]}'’”]/.test(word) ? "" : " ";
  draft.setRangeText(joint + word, at, draft.selectionEnd, "end");
  draft.focus();
  changed();
}

function changed() {
  editor.plain();
  rescore();
  predict();
}

function weigh(weights) {
  const rows = Object.entries(weights).sort((one, other) => other[1] - one[1]);
  $("weights").replaceChildren(...rows.map(([name, weight]) => {
    const bar = element("progress", { max: 1, value: weight });
    bar.setAttribute("aria-label", why.nameOf(name));
    return element("div", { title: why.meaning(name) }, element("span", {}, why.nameOf(name)), bar,
      element("span", {}, share(weight)));
  }));
  $("experts").replaceChildren(...rows.flatMap(([name]) =>
    [element("dt", {}, why.nameOf(name)), element("dd", {}, why.meaning(name))]));
  $("weights").hidden = $("who").hidden = !entries;
  $("nobody").hidden = entries > 0;
}

// What the memory holds.

async function look() {
  const [stats] = await Promise.all([get(memoryPath(memory)), documents.show(memory)]);
  entries = stats.entries;
  $("entries").textContent = number(stats.entries);
  $("oov").textContent = number(stats.oov);
  $("bytes").textContent = size(stats.bytes);
}

async function forgotten(name, words) {
  say(`${name} is forgotten, ${words} words`);
  why.clear();
  await look();
  if (!entries) curve.open(memory, 0);
  rescore();
  predict();
}

async function guarded(work) {
  try {
    calm();
    await work();
  } catch (error) {
    failed(error);
  }
}

// Reading.

async function nextName() {
  const { documents } = await get(memoryPath(memory, "documents"));
  const numbers = documents.map((one) => Number(/^note (\d+)$/.exec(one.name)?.[1] ?? 0));
  return `note ${Math.max(0, ...numbers) + 1}`;
}

async function learn() {
  if (editor.isEmpty() || busy.size) return;
  $("learn").disabled = true;
  busy.add("learn");
  await guarded(async () => {
    if (memory === null) await make();
    const body = { text: editor.text(), document: await nextName(), per_word: true };
    const found = await post(memoryPath(memory, "read"), body);
    found.nats.forEach((nats, i) => curve.add(1, nats, found.static_nats[i]));
    curve.draw();
    say(`Learned ${found.words} words, ${found.new_words} of them new`);
    await look();
    rescore();
    predict();
  });
  busy.delete("learn");
  $("learn").disabled = false;
}

async function readFile(file) {
  if (busy.size) return;
  busy.add("file");
  const name = file.name.replace(/[\x00-\x1f\x7f-\x9f\u2028\u2029]/g, " ").slice(0, 200) || "file";
  $("progress-box").hidden = false;
  $("progress-label").textContent = `Reading ${name}`;
  $("progress").value = 0;
  $("progress-text").textContent = "";
  await guarded(async () => {
    const text = await textOf(file, name);
    if (memory === null) await make();
    const body = { text, document: name };
    let began = performance.now();
    for await (const event of events(memoryPath(memory, "read"), body)) {
      if (event.event === "accepted") began = performance.now();
      if (event.event === "progress") {
        curve.add(event.block, event.nats, event.static_nats);
        curve.draw();
        entries = event.entries;
        weigh(event.weights);
        $("progress").value = event.characters / Math.max(text.length, 1);
        $("entries").textContent = number(event.entries);
        const speed = event.words / ((performance.now() - began) / 1000);
        $("progress-text").textContent = `${number(event.words)} words, ${number(speed)} a second`;
      }
      if (event.event === "done") {
        $("progress").value = 1;
        $("progress-label").textContent = event.words ? `Read ${name}` : `Nothing new in ${name}`;
        say(event.words
          ? `Read ${name}: ${event.words} words, perplexity ${perplexity(event.perplexity)}`
          : `Nothing new in ${name}: it was read before`);
      }
    }
    await look();
    rescore();
    predict();
  });
  if ($("progress").value < 1) $("progress-box").hidden = true;
  busy.delete("file");
}

// Only bytes tell what is text; the service looks at it again.
async function textOf(file, name) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (bytes.includes(0)) {
    throw new NotText(`${name} is not text (it has NUL bytes) and was not read; UTF-8 is needed`);
  }
  return new TextDecoder().decode(bytes);
}

// The shelf.

let lists = 0;

async function list(wanted) {
  lists += 1;
  const mine = lists;
  const { memories } = await get("/v1/memories");
  // Somebody was faster than the page could begin: what was asked for last counts.
  if (mine !== lists) return;
  const names = memories.map((one) => one.name);
  $("memory").replaceChildren(...names.map((name) => element("option", { value: name }, name)));
  const remembered = wanted ?? localStorage.getItem(CHOSEN);
  await choose(names.includes(remembered) ? remembered : names[0] ?? null);
}

async function choose(name) {
  memory = name;
  entries = 0;
  why.clear();
  $("chips").replaceChildren();
  for (const one of document.querySelectorAll(".some")) one.hidden = name === null;
  $("none").hidden = name !== null;
  $("new-name").value = name === null ? FIRST : "";
  if (name === null) {
    $("documents").replaceChildren();
    curve.open(name, 0);
    return;
  }
  localStorage.setItem(CHOSEN, name);
  $("memory").value = name;
  document.title = `${name} · unbounded`;
  await look();
  curve.open(name, entries);
  rescore();
  predict();
}

async function make(name = $("new-name").value.trim() || FIRST) {
  await post("/v1/memories", { name });
  curve.drop(name);
  await list(name);
  say(`${name} is made`);
  draft.focus();
}

function listen() {
  draft.addEventListener("input", changed);
  draft.addEventListener("click", predict);
  draft.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      learn();
    }
  });
  $("learn").addEventListener("click", learn);
  $("clear").addEventListener("click", () => {
    editor.setText("");
    changed();
    draft.focus();
  });
  $("views").addEventListener("change", (event) => editor.setView(event.target.value));
  $("file").addEventListener("change", (event) => {
    const [file] = event.target.files;
    if (file) readFile(file);
    event.target.value = "";
  });
  for (const kind of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      event.preventDefault();
      $("editor").classList.toggle("dropping", kind === "dragover");
      const file = kind === "drop" ? event.dataTransfer?.files[0] : null;
      if (file) readFile(file);
    });
  }
  editor.onPick((word, before) => memory && why.explain(memory, word, before, failed));
  $("memory").addEventListener("change", () => guarded(() => choose($("memory").value)));
  $("shelf").addEventListener("submit", (event) => {
    event.preventDefault();
    const name = $("new-name").value.trim();
    if (name) guarded(() => make(name));
  });
  $("delete").addEventListener("click", () => {
    if (memory && confirm(`Delete the memory ${memory}, and all it has read?`)) {
      guarded(async () => {
        await remove(memoryPath(memory));
        curve.drop(memory);
        await list();
      });
    }
  });
  $("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    setKey($("key").value.trim());
    $("key").value = "";
    $("key-form").hidden = true;
    guarded(list);
  });
  documents.listen({ forgotten, failed, say });
}

listen();
guarded(list);
