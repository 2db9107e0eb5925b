// Where the page gets its data: from the server, or from the file that it is in.
import { Film } from "./film.js";
import { lanesOf } from "./lanes.js";

// Problem is an answer that a request failed, with the server's words.
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || "The server does not answer.");
    this.status = status;
    this.code = body.code || "";
    this.hints = body.hints || [];
    this.note = body.note || null; // a note as it is, where somebody changed it first
  }
}

// key returns an id for a request, so that it is carried out once even if it is sent twice.
function key() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return "board-" + Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}

async function ask(method, path, body, headers) {
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers: body === undefined ? headers : { "Content-Type": "application/json", ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
    });
  } catch {
    throw new Problem(0, { detail: "The server does not answer. Is cadre serve running?" });
  }
  if (answer.status === 204) return null;
  const text = await answer.text();
  let value = null;
  try {
    value = text ? JSON.parse(text) : null;
  } catch {
    value = { detail: `The server answers ${answer.status}.` };
  }
  if (!answer.ok) throw new Problem(answer.status, value || {});
  return value;
}

const enc = encodeURIComponent;

// Live reads from the server and sends it what is changed.
export class Live {
  live = true;
  line = new Line();

  caller = () => ask("GET", "/v1/caller");
  teams = () => ask("GET", "/board/teams");

  // act changes a team. It returns the answer, and throws a Problem with the words of the refusal.
  act = (method, ref, path, body) =>
    ask(method, `/v1/teams/${enc(ref)}${path}`, method === "DELETE" ? undefined : body || {}, { "Idempotency-Key": key() });

  commands = (hints) => ask("POST", "/board/commands", hints);
  search = (words, team) => ask("GET", `/board/search?q=${enc(words)}${team ? `&team=${enc(team)}` : ""}`);

  // detail returns the request or the plan of an item that waits.
  detail = async (i) => {
    const of = `/v1/teams/${enc(i.team)}`;
    if (i.kind === "plan") return ask("GET", `${of}/plans/${enc(i.request)}`);
    return (await ask("GET", `${of}/permissions`)).find((p) => p.request === i.request);
  };

  // watch calls changed whenever something may have changed in any team. It pauses while the page is hidden.
  watch = (changed, broken) => this.line.follow(() => "/v1/watch", { teams: changed }, broken);

  open(ref) {
    const base = `/board/teams/${enc(ref)}`;
    const api = `/v1/teams/${enc(ref)}`;
    const { line } = this;
    return {
      ref,
      film: new Film((after, to, every, whole) => ask("GET", `${base}/states?after=${after}&to=${to}&every=${every}${whole ? "&base=true" : ""}`)),
      present: () => ask("GET", `${base}/states`),
      // after returns the patches after the record seq, with the marks after the record marked
      after: (seq, marked) => ask("GET", `${base}/states?after=${seq}&marks=${marked}`),
      now: () => ask("GET", `${base}/now`),
      saw: (seq) => ask("POST", `${base}/saw`, { seq }),
      lanes: (from, to, columns, seq) => ask("GET", `${base}/lanes?columns=${columns}&from=${from || 0}&to=${to || 0}&seq=${seq || 0}`),
      log: (after, to) => ask("GET", `${base}/log?after=${after}&to=${to}`),
      marks: (after) => ask("GET", `${base}/marks?after=${after}`),
      account: (task) => ask("GET", `${base}/tasks/${enc(task)}`),
      plans: () => ask("GET", `${api}/plans`),
      since: (seq) => ask("GET", `${api}/since?after=${seq}`),
      messages: (after) => ask("GET", `${base}/messages?after=${after}`),
      diff: (task) => ask("GET", `${api}/tasks/${enc(task)}/diff`),
      note: async (key, seq) => (await ask("GET", `${api}/notes/${enc(key)}?seq=${seq}`)).text,
      noteChanges: (key) => ask("GET", `${api}/notes/${enc(key)}/changes`),
      follow: (seq, record, broken) => line.follow(() => `${api}/events?after=${seq()}`, { record }, broken),
      session: (member, entry, end) => {
        let last = 0;
        return line.follow(
          () => `${api}/members/${enc(member)}/session?after=${last}`,
          {
            entry: (data, id) => {
              if (id) last = Number(id);
              entry(JSON.parse(data));
            },
            end: (_, __, stop) => {
              stop();
              end();
            },
          },
          end,
        );
      },
    };
  }
}

const pace = { first: 500, longest: 10_000 }; // between the tries after a break, in milliseconds

// Line is the connection for all streams of the page. A browser opens six connections to a host for all its pages, and
// does not count WebSockets among them. It is open while the page is visible and follows something.
class Line {
  constructor() {
    this.socket = null;
    this.all = new Set(); // what is followed
    this.asked = new Map(); // the same by the number of its stream, as far as it is asked for
    this.count = 0;
    this.wait = pace.first;
    this.timer = 0;
    document.addEventListener("visibilitychange", () => (document.visibilityState === "visible" ? this.begin() : this.end()));
  }

  begin() {
    clearTimeout(this.timer);
    if (this.socket || !this.all.size || document.visibilityState !== "visible") return;
    const is = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/board/streams`);
    this.socket = is;
    is.onopen = () => {
      this.wait = pace.first;
      for (const one of this.all) this.ask(one);
    };
    is.onmessage = (e) => this.socket === is && this.hear(e.data);
    is.onclose = () => {
      if (this.socket !== is) return;
      this.end();
      for (const one of this.all) one.broken(new Problem(0, {}));
      this.timer = setTimeout(() => this.begin(), this.wait);
      this.wait = Math.min(2 * this.wait, pace.longest);
    };
  }

  end() {
    clearTimeout(this.timer);
    for (const one of this.all) clearTimeout(one.timer);
    const is = this.socket;
    this.socket = null;
    this.asked.clear();
    if (is) is.close();
  }

  // ask opens the stream of what is followed.
  ask(one) {
    if (!this.socket || this.socket.readyState !== WebSocket.OPEN) return;
    one.n = ++this.count;
    this.asked.set(one.n, one);
    this.socket.send(JSON.stringify({ open: one.n, at: one.address() }));
  }

  // hear takes a part of a stream: its number with a word, and on the next lines what belongs to it.
  hear(text) {
    const end = text.indexOf("\n");
    const [n, what] = text.slice(0, end).split(" ");
    const one = this.asked.get(Number(n));
    if (!one) return; // it was stopped
    if (what === "events") {
      one.wait = pace.first;
      one.broken(null);
      for (const e of eventsOf(text.slice(end + 1))) {
        if (this.asked.get(one.n) === one) one.event(e);
      }
      return;
    }
    this.asked.delete(one.n);
    one.broken(new Problem(0, what === "refused" ? JSON.parse(text.slice(end + 1)) : {}));
    one.timer = setTimeout(() => this.ask(one), one.wait);
    one.wait = Math.min(2 * one.wait, pace.longest);
  }

  // follow calls the handlers of events, by their names, and broken with a Problem when the stream breaks and with
  // null when it is back. Each time that it opens the stream it asks for the address, which has the cursor. It returns
  // how to stop.
  follow(address, handlers, broken) {
    const one = { n: 0, address, wait: pace.first, timer: 0 };
    let is = false; // whether it is broken
    one.broken = (err) => {
      if (!err && !is) return;
      is = !!err;
      if (broken) broken(err);
    };
    const stop = () => {
      clearTimeout(one.timer);
      one.broken(null); // what is not followed has no warning
      this.all.delete(one);
      if (this.asked.delete(one.n)) this.socket.send(JSON.stringify({ close: one.n }));
    };
    one.event = (e) => {
      if (e.name === "problem") one.broken(new Problem(0, JSON.parse(e.data)));
      else if (handlers[e.name]) handlers[e.name](e.data, e.id, stop);
    };
    this.all.add(one);
    this.begin();
    this.ask(one);
    return stop;
  }
}

// eventsOf returns the server-sent events of a text. It has whole events.
function eventsOf(text) {
  const all = [];
  for (const block of text.split("\n\n")) {
    const e = { name: "", data: "", id: "" };
    for (const line of block.split("\n")) {
      const at = line.indexOf(": ");
      const field = line.slice(0, at);
      if (field === "event") e.name = line.slice(at + 2);
      else if (field === "data" || field === "id") e[field] = line.slice(at + 2);
    }
    if (e.name) all.push(e);
  }
  return all;
}

// Still reads a team that was exported, with its whole history, from the file that the page is in.
export class Still {
  live = false;

  constructor(data) {
    this.data = data;
  }

  caller = async () => ({ user: false, role: "none" });
  teams = async () => ({ sections: [], attention: [] });
  commands = async (hints) => hints.map(() => "");
  watch = () => () => {};

  open() {
    const d = this.data;
    const none = async () => {
      throw new Problem(0, { detail: "This is not in the exported file." });
    };
    const film = new Film(async (after, to) => ({ base: {}, patches: d.patches.slice(after, to) }));
    return {
      ref: d.ref,
      film,
      present: async () => {
        await film.all(d.patches.length);
        return { base: film.at(d.patches.length), patches: [], last: d.patches.length };
      },
      after: async () => ({ patches: [], last: d.patches.length, marks: [], marked: d.patches.length }),
      now: async () => null,
      saw: async () => null,
      lanes: async (from, to, columns, seq) => lanesOf(d.lanes, from, to, columns, seq),
      log: async (after, to) => d.log.filter((l) => l.seq > after && l.seq <= to),
      marks: async (after) => ({ marks: after ? [] : d.marks, seq: d.patches.length }),
      account: async (task) => d.tasks[task] || { attempts: [], mentions: [] },
      plans: async () => d.plans,
      since: none,
      messages: async () => ({ messages: d.messages, seq: d.patches.length, last: d.patches.length }),
      diff: async (task) => d.diffs[task] || none(),
      note: async (key, seq) => textAfter(d.notes[key] || [], seq),
      noteChanges: async (key) => d.notes[key] || [],
      follow: () => () => {},
      session: (_, __, end) => {
        end();
        return () => {};
      },
    };
  }
}

// textAfter returns the text of a note after the change seq, from its changes.
export function textAfter(changes, seq) {
  let text = "";
  for (const c of changes) {
    if (c.seq > seq) break;
    if (c.how !== "appended") text = c.text || "";
    else text += (text && !text.endsWith("\n") ? "\n" : "") + c.text;
  }
  return text;
}
