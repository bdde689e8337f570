// The page: what is written is scored as it is typed, learned when asked, forgotten when asked.

import { Refused, events, get, memoryPath, post, remove, setKey } from "./api.js";
import * as curve from "./curve.js";
import { $, element, latest, number, percent, perplexity, share, size } from "./dom.js";
import * as editor from "./editor.js";
import * as why from "./why.js";

const CHOSEN = "unbounded-memory";
const draft = $("draft");
const busy = new Set();

let memory = null;

function say(text) {
  $("status").textContent = text;
}

function failed(error) {
  const box = $("message");
  if (error instanceof Refused && error.status === 401) {
    $("key-form").hidden = false;
    $("key").focus();
  }
  box.textContent = error instanceof Refused ? error.message : "The service cannot be reached.";
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
    const ask = (body) => post(memoryPath(memory, "predict"), { n: 7, sources: 0, ...body }, signal);
    // A word that is not there yet as a whole is gone on with; after one that is, the next comes.
    const [begun] = /[\p{L}\p{N}]+$/u.exec(text) ?? [""];
    const prefix = begun.toLowerCase();
    const whole = text.slice(0, text.length - begun.length);
    const longer = begun ? await ask({ text: whole, prefix }) : null;
    if (longer?.words.length && longer.words.every((one) => one.word !== prefix)) {
      offer(longer.words.map((one) => ({ ...one, begun })));
      weigh(longer.weights);
      return;
    }
    const found = await ask({ text });
    offer(found.words.filter((one) => one.word !== "</s>"));
    weigh(found.weights);
  } catch (error) {
    if (error.name !== "AbortError") failed(error);
  }
}, 160);

// Whoever has moved to a word stays on it when the words are drawn again, or on the first.
function offer(guesses) {
  const held = document.activeElement.closest("#chips button")?.value;
  const chips = guesses.map(chip);
  $("chips").replaceChildren(...chips);
  if (held !== undefined) (chips.find((one) => one.value === held) ?? chips[0] ?? draft).focus();
}

function chip(guess) {
  const shares = Object.entries(guess.shares);
  const learned = shares.filter(([name]) => !["static", "uniform"].includes(name));
  const known = learned.reduce((sum, [, share]) => sum + share, 0) > 0.5;
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
  const joint = !before || /\s$/.test(before) || /^[.,;:!?%)\]}'’”]/.test(word) ? "" : " ";
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
    return element("div", {}, element("span", {}, why.nameOf(name)), bar,
      element("span", {}, share(weight)));
  }));
}

// What the memory holds.

async function look() {
  const [stats, { documents }] = await Promise.all([
    get(memoryPath(memory)), get(memoryPath(memory, "documents")),
  ]);
  $("entries").textContent = number(stats.entries);
  $("oov").textContent = number(stats.oov);
  $("bytes").textContent = size(stats.bytes);
  const items = documents.reverse().slice(0, 200).map((one) => {
    const button = element("button", { type: "button", class: "quiet" }, "Forget");
    button.setAttribute("aria-label", `Forget ${one.name}`);
    button.addEventListener("click", () => forget(one.name, button));
    return element("li", {}, element("b", {}, one.name),
      element("span", {}, `${number(one.words)} words`), button);
  });
  $("documents").replaceChildren(...(items.length ? items : [element("li", { class: "faint" }, "Nothing yet.")]));
  return documents;
}

async function forget(name, button) {
  button.disabled = true;
  await guarded(async () => {
    const { forgotten } = await post(memoryPath(memory, "forget"), { document: name });
    say(`${name} is forgotten, ${forgotten} words`);
    why.clear();
    await look();
    rescore();
    predict();
    $("draft").focus();
  });
  button.disabled = false;
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
  if (editor.isEmpty() || memory === null || busy.size) return;
  $("learn").disabled = true;
  busy.add("learn");
  await guarded(async () => {
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
  if (memory === null || busy.size) return;
  busy.add("file");
  const name = file.name.replace(/[\x00-\x1f\x7f-\x9f\u2028\u2029]/g, " ").slice(0, 200) || "file";
  $("progress-box").hidden = false;
  $("progress-label").textContent = `Reading ${name}`;
  $("progress").value = 0;
  $("progress-text").textContent = "";
  await guarded(async () => {
    const text = (await file.text()).replaceAll("\0", "\ufffd");
    const body = { text, document: name };
    let began = performance.now();
    for await (const event of events(memoryPath(memory, "read"), body)) {
      if (event.event === "accepted") began = performance.now();
      if (event.event === "progress") {
        curve.add(event.block, event.nats, event.static_nats);
        curve.draw();
        weigh(event.weights);
        $("progress").value = event.characters / Math.max(text.length, 1);
        $("entries").textContent = number(event.entries);
        const speed = event.words / ((performance.now() - began) / 1000);
        $("progress-text").textContent = `${number(event.words)} words, ${number(speed)} a second`;
      }
      if (event.event === "done") {
        $("progress").value = 1;
        $("progress-label").textContent = `Read ${name}`;
        say(`Read ${name}: ${event.words} words, perplexity ${perplexity(event.perplexity)}`);
      }
    }
    await look();
    rescore();
    predict();
  });
  busy.delete("file");
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
  curve.reset();
  why.clear();
  $("chips").replaceChildren();
  $("delete").disabled = $("learn").disabled = name === null;
  if (name === null) {
    say("Make a memory to begin");
    return;
  }
  localStorage.setItem(CHOSEN, name);
  $("memory").value = name;
  document.title = `${name} · unbounded`;
  await look();
  rescore();
  predict();
}

async function make(name) {
  await post("/v1/memories", { name });
  $("new-name").value = "";
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
        await list();
      });
    }
  });
  $("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    setKey($("key").value.trim());
    $("key").value = "";
    $("key-form").hidden = true;
    guarded(start);
  });
}

async function start() {
  await list();
  if (memory === null) {
    await make("notes");
  }
}

listen();
guarded(start);
