// Small things about elements. Text goes in as text and never as markup.

export const $ = (id) => document.getElementById(id);

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") made.className = value;
    else if (key in made && typeof value !== "string") made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

export const number = (value) => Math.round(value).toLocaleString("en");

export function percent(prob) {
  if (prob >= 0.1) return `${(100 * prob).toFixed(0)} %`;
  if (prob >= 0.001) return `${(100 * prob).toFixed(1)} %`;
  return prob > 0 ? `1 in ${number(1 / prob)}` : "0";
}

export const share = (part) => (part >= 0.001 ? percent(part) : "< 0.1 %");

export function perplexity(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  return value < 100 ? value.toFixed(1) : number(value);
}

export function size(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const step = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), units.length - 1);
  return `${(bytes / 1000 ** step).toFixed(step ? 1 : 0)} ${units[step]}`;
}

// Calls that come faster than they can be served: only the last one counts.
export function latest(work, wait = 0) {
  let timer = 0;
  let control = null;
  return (...given) => {
    clearTimeout(timer);
    control?.abort();
    control = new AbortController();
    const { signal } = control;
    timer = setTimeout(() => work(signal, ...given), wait);
  };
}
