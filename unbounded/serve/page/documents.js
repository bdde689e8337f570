// What a memory has read: grouped, searched, forgotten, and kept after all if that is asked in time.

import { get, memoryPath, post } from "./api.js";
import { $, element, latest, number } from "./dom.js";

const WAIT = 6; // Seconds in which forgetting can be undone: until then nothing was asked for.
const SHOWN = 300;
const SEARCHED = 6;

// What is about to be forgotten: "memory/name" and how to do it now.
const waiting = new Map();

let memory = null;
let tell = {};

// Parts of one file, which blank lines part, are NAME, NAME#2, NAME#3: one document.
function documentsOf(parts) {
  const found = new Map();
  for (const { name, words } of parts) {
    const whole = name.replace(/#\d+$/, "");
    found.set(whole, (found.get(whole) ?? 0) + words);
  }
  return [...found].map(([name, words]) => ({ name, words })).reverse();
}

function groupOf(name) {
  if (/^note \d+$/.test(name)) return "written here";
  const folder = /^(.+)\/[^/]+$/.exec(name);
  return folder ? folder[1] : "others";
}

function row({ name, words }) {
  const shown = groupOf(name) === "others" ? name : name.replace(/^.*\//, "");
  const id = `${memory}/${name}`;
  const title = element("b", { title: name }, shown);
  if (waiting.has(id)) {
    const undo = element("button", { type: "button" }, "Undo");
    undo.setAttribute("aria-label", `Keep ${name}`);
    undo.addEventListener("click", () => keep(id, name));
    return element("li", { class: "going" }, title, element("span", {}, "is being forgotten"), undo);
  }
  const button = element("button", { type: "button", class: "quiet" }, "Forget");
  button.setAttribute("aria-label", `Forget ${name}`);
  button.addEventListener("click", () => forget(id, name));
  return element("li", {}, title, element("span", {}, `${number(words)} words`), button);
}

function render(documents, searching) {
  const groups = Map.groupBy(documents.slice(0, SHOWN), (one) => groupOf(one.name));
  const lists = [...groups].map(([name, some]) => {
    const list = element("ul", {}, ...some.map(row));
    if (groups.size === 1) return list;
    const words = some.reduce((sum, one) => sum + one.words, 0);
    const head = element("summary", {}, element("b", {}, name),
      element("span", {}, ` ${number(some.length)} with ${number(words)} words`));
    return element("details", { open: searching || some.length <= 12 }, head, list);
  });
  if (documents.length > SHOWN) {
    lists.push(element("p", { class: "faint" }, `and ${number(documents.length - SHOWN)} more: find them by name`));
  }
  const none = element("p", { class: "faint" }, searching ? "None of that name." : "Nothing yet.");
  $("documents").replaceChildren(...(lists.length ? lists : [none]));
}

export async function show(name) {
  if (name !== memory) $("find").value = "";
  memory = name;
  const search = $("find").value.trim();
  const path = memoryPath(memory, "documents");
  const asked = search ? `${path}?search=${encodeURIComponent(search)}` : path;
  const { documents: parts } = await get(asked);
  if (name !== memory) return;
  const documents = documentsOf(parts);
  $("find").hidden = !search && documents.length < SEARCHED;
  render(documents, search !== "");
}

function forget(id, name) {
  const path = memoryPath(memory, "forget");
  const now = async (leaving = false) => {
    clearTimeout(timer);
    waiting.delete(id);
    try {
      const { forgotten } = await post(path, { document: name }, undefined, leaving);
      await tell.forgotten(name, forgotten);
    } catch (error) {
      tell.failed(error);
    }
  };
  const timer = setTimeout(now, WAIT * 1000);
  waiting.set(id, { now, timer });
  tell.say(`${name} is forgotten in ${WAIT} seconds, unless you undo it`);
  redraw(`Keep ${name}`);
}

function keep(id, name) {
  clearTimeout(waiting.get(id)?.timer);
  waiting.delete(id);
  tell.say(`${name} is kept`);
  redraw(`Forget ${name}`);
}

async function redraw(focus) {
  await show(memory).catch(tell.failed);
  [...$("documents").querySelectorAll("button")]
    .find((one) => one.getAttribute("aria-label") === focus)?.focus();
}

export function listen(told) {
  tell = told;
  $("find").addEventListener("input", latest(() => show(memory).catch(tell.failed), 150));
  // Who leaves has not undone it.
  window.addEventListener("pagehide", () => waiting.forEach(({ now }) => now(true)));
}
