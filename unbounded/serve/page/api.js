// Talking to the service: JSON, and events that come in pieces. No other host is ever asked.

const KEY = "unbounded-key";

export class Refused extends Error {
  constructor(status, error) {
    super(error?.message ?? "The service gave no answer.");
    this.status = status;
    this.code = error?.code;
  }
}

// A file that is no text: found before it is sent.
export class NotText extends Error {}

export const setKey = (key) => sessionStorage.setItem(KEY, key);

function headers(body) {
  const key = sessionStorage.getItem(KEY);
  return {
    ...(body === undefined ? {} : { "Content-Type": "application/json" }),
    ...(key ? { Authorization: `Bearer ${key}` } : {}),
  };
}

async function send(method, path, body, signal, leaving = false) {
  const answer = await fetch(path, {
    method,
    headers: headers(body),
    body: body === undefined ? undefined : JSON.stringify(body),
    signal,
    keepalive: leaving,
  });
  if (!answer.ok) {
    const said = await answer.json().catch(() => null);
    throw new Refused(answer.status, said?.error);
  }
  return answer;
}

export const get = async (path) => (await send("GET", path)).json();
export const post = async (path, body, signal, leaving) =>
  (await send("POST", path, body, signal, leaving)).json();
export const remove = async (path) => (await send("DELETE", path)).json();

export const memoryPath = (name, verb = "") =>
  `/v1/memories/${encodeURIComponent(name)}${verb ? `/${verb}` : ""}`;

// Events as they come; the last one may be an error.
export async function* events(path, body) {
  const answer = await send("POST", path, { ...body, stream: true });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const event = JSON.parse(part.replace(/^data: /, ""));
      if (event.error) throw new Refused(0, event.error);
      yield event;
    }
  }
}
