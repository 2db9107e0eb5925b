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
        const known = new Set(); // the commands whose output came over this stream: a new one begins with all of it
        return line.follow(
          () => {
            known.clear();
            return `${api}/members/${enc(member)}/session?after=${last}`;
          },
          {
            entry: (data, id) => {
              if (id) last = Number(id);
              const e = JSON.parse(data);
              if (e.kind === "output") {
                e.whole = !known.has(e.id);
                known.add(e.id);
              }
              entry(e);
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
const patience = 10_000; // until a connection must have brought something

// Line is the connection for all streams of the page. It is open while the page is visible and follows something. It is
// a WebSocket, or server-sent events where a proxy passes none: a connection that brings nothing is tried the other way.
class Line {
  constructor() {
    this.way = null; // a Socket or Events
    this.plain = false; // whether the next one is Events
    this.all = new Set(); // what is followed
    this.asked = new Map(); // the same by the number of its stream, as far as it is asked for
    this.count = 0;
    this.failed = 0; // connections that brought nothing, since one brought something
    this.wait = pace.first;
    this.timer = 0;
    document.addEventListener("visibilitychange", () => (document.visibilityState === "visible" ? this.begin() : this.end()));
  }

  begin() {
    clearTimeout(this.timer);
    if (this.way || !this.all.size || document.visibilityState !== "visible") return;
    let heard = false;
    const is = new (this.plain ? Events : Socket)((text) => {
      if (this.way !== is) return;
      heard = true;
      clearTimeout(this.timer);
      this.failed = 0;
      this.wait = pace.first;
      this.hear(text);
    }, () => this.way === is && this.lost(heard));
    this.way = is;
    this.timer = setTimeout(() => this.lost(false), patience);
    for (const one of this.all) this.ask(one);
  }

  end() {
    clearTimeout(this.timer);
    for (const one of this.all) clearTimeout(one.timer);
    const is = this.way;
    this.way = null;
    this.asked.clear();
    if (is) is.end();
  }

  // lost tries again, since the connection has ended.
  lost(heard) {
    this.end();
    if (!heard) {
      this.plain = !this.plain;
      if (this.failed++ % 2 === 0) return this.begin(); // at once, the other way
    }
    for (const one of this.all) one.broken(new Problem(0, {}));
    this.timer = setTimeout(() => this.begin(), this.wait);
    this.wait = Math.min(2 * this.wait, pace.longest);
  }

  // ask opens the stream of what is followed.
  ask(one) {
    if (!this.way) return;
    one.n = ++this.count;
    this.asked.set(one.n, one);
    this.way.open(one.n, one.address);
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
      if (this.asked.delete(one.n)) this.way.close(one.n);
    };
    one.event = (e) => {
      if (e.name === "problem") one.broken(new Problem(0, JSON.parse(e.data)));
      else if (handlers[e.name]) handlers[e.name](e.data, e.id, stop);
    };
    this.all.add(one);
    if (this.way) this.ask(one);
    else this.begin();
    return stop;
  }
}

// Socket has the streams of a page come over a WebSocket. A browser opens six connections to a host for all its pages,
// and does not count WebSockets among them. It calls hear with each part of a stream, and gone when it is lost.
class Socket {
  constructor(hear, gone) {
    this.due = []; // what is sent once it is open
    this.socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/board/streams`);
    this.socket.onopen = () => this.due.splice(0).forEach((ask) => this.send(ask));
    this.socket.onmessage = (e) => hear(e.data);
    this.socket.onclose = gone;
  }

  send(ask) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(ask));
    else this.due.push(ask);
  }

  open = (n, address) => this.send({ open: n, at: address() });
  close = (n) => this.send({ close: n });
  end = () => this.socket.close();
}

// Events has the same streams come as server-sent events, all in one answer, since it takes one of the six connections.
// The request names the streams. So for others it asks again, from the cursors that the page has come to.
class Events {
  constructor(hear, gone) {
    this.hear = hear;
    this.gone = gone;
    this.streams = new Map(); // the addresses, by the numbers of the streams
    this.source = null;
    this.timer = 0;
  }

  open(n, address) {
    this.streams.set(n, address);
    this.again();
  }

  close(n) {
    if (this.streams.delete(n)) this.again();
  }

  end() {
    clearTimeout(this.timer);
    if (this.source) this.source.close();
    this.source = null;
  }

  // again asks for the streams once for all changes of a moment.
  again() {
    this.end();
    if (this.streams.size) this.timer = setTimeout(() => this.begin());
  }

  begin() {
    const numbers = [...this.streams.keys()];
    const at = numbers.map((n) => "at=" + enc(this.streams.get(n)()));
    const is = new EventSource("/board/events?" + at.join("&"));
    this.source = is;
    is.addEventListener("part", (e) => {
      if (this.source !== is) return;
      const [, i, rest] = /^(\d+)(.*)$/s.exec(JSON.parse(e.data)); // the server counts the streams of this request
      const n = numbers[i - 1];
      if (!rest.startsWith(" events\n")) this.streams.delete(n); // it has ended
      if (!this.streams.size) this.end();
      this.hear(n + rest);
    });
    is.onerror = () => this.source === is && this.gone(); // which ends it: it would ask again from the old cursors
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
