// What the page shows now, and how that changes. Views read app, and call these functions.
import { project } from "./film.js";

export const app = {
  source: null,
  where: { team: "", tab: "", seq: 0, with: 0, task: "", member: "", find: "", open: "" },
  list: null, // all teams, in sections
  caller: { user: true, role: "observe" },
  team: null, // the open team; see enter
  login: false,
  broken: "",
  said: [], // short notes, the newest last
  dialog: null, // a function that draws it
  opened: 0, // number of dialogs until now
};

const listeners = new Set();
let due = false;

// changed draws the page again, once for all changes of a moment.
export function changed() {
  if (due) return;
  due = true;
  const draw = () => {
    if (!due) return;
    due = false;
    listeners.forEach((f) => f());
  };
  if (document.visibilityState === "hidden") setTimeout(draw, 200);
  else requestAnimationFrame(draw);
}

export const onChange = (f) => listeners.add(f);

// say shows a note for a while.
export function say(text, bad = false) {
  const one = { text, bad };
  app.said = [...app.said.slice(-3), one];
  changed();
  setTimeout(() => dismiss(one), bad ? 12_000 : 5_000);
}

export function dismiss(one) {
  app.said = app.said.filter((s) => s !== one);
  changed();
}

// The address carries what is shown, so that it can be kept and sent.

const kept = ["team", "tab", "seq", "with", "task", "member", "find", "open"];

function readAddress() {
  const from = new URLSearchParams(location.hash.slice(1));
  const where = {};
  for (const k of kept) where[k] = from.get(k) || "";
  where.seq = Number(where.seq) || 0;
  where.with = Number(where.with) || 0;
  return where;
}

const address = (where) => {
  const query = new URLSearchParams();
  for (const k of kept) if (where[k]) query.set(k, where[k]);
  return "#" + query;
};

// A slider that is dragged, or a filter that is typed, changes the address many times a second, and browsers allow
// that less often. So the address follows after a while.
let late = 0;

function keepAddress() {
  clearTimeout(late);
  late = 0;
  const hash = address(app.where);
  if (hash !== (location.hash || "#")) history.replaceState(null, "", hash);
}
addEventListener("pagehide", keepAddress);

// go shows something else. Other fields stay, but for another team.
export function go(to, replace = false) {
  const where = to.team !== undefined && to.team !== app.where.team
    ? { tab: "", seq: 0, with: 0, task: "", member: "", find: "", open: "", ...to }
    : { ...app.where, ...to };
  if (address(where) === address(app.where)) return;
  if (replace) {
    late ||= setTimeout(keepAddress, 200);
  } else {
    keepAddress();
    history.pushState(null, "", address(where));
  }
  arrive(where);
}

// arrive shows what the address says.
function arrive(where) {
  const before = app.where;
  app.where = where;
  if (app.where.team !== before.team || !app.team !== !app.where.team) enter(app.where.team);
  else if (app.where.seq !== before.seq && app.team) travel();
  changed();
}

// arrived is called when the browser goes to another address.
function arrived() {
  clearTimeout(late);
  late = 0;
  arrive(readAddress());
}

// failed notes an error of a request.
export function failed(err) {
  if (err.status === 401) {
    app.login = true;
    changed();
    return;
  }
  say(err.message, true);
}

// enter opens a team, or none for "".
function enter(ref) {
  if (app.team) app.team.leave();
  app.team = null;
  if (!ref) {
    document.title = "cadre";
    return;
  }
  const source = app.source.open(ref);
  const team = {
    ref, source, doc: null, now: null, shown: null, last: 0, looked: 0, since: null, marks: null, problem: "",
    leave: () => {},
  };
  app.team = team;
  document.title = `${ref} · cadre`;
  begin(team);
}

async function begin(team) {
  const here = () => app.team === team;
  try {
    const [is, now, marks] = await Promise.all([team.source.present(), team.source.now(), team.source.marks(0)]);
    if (!here()) return;
    team.doc = is.base;
    team.last = is.last;
    team.now = now;
    team.looked = now ? now.looked : 0;
    team.marks = marks.marks;
    team.marked = marks.seq;
    document.title = `${team.doc.team.name} · cadre`;
    const stop = team.source.follow(() => team.doc.seq, () => refresh(team), lost(team));
    const leaves = () => document.visibilityState === "hidden" && look(team);
    document.addEventListener("visibilitychange", leaves);
    team.leave = () => {
      stop();
      look(team);
      document.removeEventListener("visibilitychange", leaves);
    };
    if (team.looked && team.looked < team.doc.seq && app.source.live) {
      team.source.since(team.looked).then((since) => {
        if (since.lines.length) team.since = since;
        changed();
      }, () => {});
    }
    travel();
  } catch (err) {
    if (!here()) return;
    if (err.status === 401) failed(err);
    team.problem = err.message;
  }
  changed();
}

// look keeps that a person saw the team as it is shown.
function look(team) {
  if (app.source.live && team.doc && team.doc.seq > team.looked) {
    team.looked = team.doc.seq;
    team.source.saw(team.looked).catch(() => {});
  }
}

// gather calls f after a while, and once for all calls until then; and again if there were calls while it ran.
export function gather(f, pace) {
  let running = false;
  let again = false;
  const run = async (...args) => {
    if (running) {
      again = true;
      return;
    }
    running = true;
    do {
      await new Promise((done) => setTimeout(done, pace));
      again = false;
      await f(...args);
    } while (again);
    running = false;
  };
  return run;
}

// moreMarks takes the marks of the records after the last one whose marks are known, up to the record marked. They may
// be of other records than the states are.
function moreMarks(team, marks, marked) {
  const more = marks.filter((m) => m.seq > team.marked);
  if (more.length) team.marks = [...team.marks, ...more];
  team.marked = Math.max(team.marked, marked);
}

const broken = new Set(); // the streams that are broken, by what they follow

// lost returns what notes that the stream of what is broken, or back. The warning stays while any is broken.
const lost = (what) => (err) => {
  if (err) broken.add(what);
  else broken.delete(what);
  app.broken = broken.size ? "The connection is lost. It is tried again." : "";
  changed();
};

// refresh reads what was recorded since, and what was found of the processes.
const refresh = (team) => {
  team.refresh ||= gather(async () => {
    if (app.team !== team || !team.doc) return;
    try {
      const [is, now] = await Promise.all([team.source.after(team.doc.seq, team.marked), team.source.now()]);
      if (app.team !== team) return;
      let doc = project(team.doc, is.patches);
      if (doc.seq < is.last && !is.patches.length) doc = (await team.source.present()).base; // records between are lost
      team.doc = doc;
      team.last = Math.max(is.last, doc.seq);
      team.now = now;
      moreMarks(team, is.marks, is.marked);
    } catch (err) {
      failed(err);
    }
    changed();
  }, 60);
  return team.refresh();
};

// refreshed reads the open team again, after it was changed here.
export const refreshed = () => app.team && refresh(app.team);

// travel shows the team after the record of the address, or after the nearest one whose state is known until
// that is fetched.
function travel() {
  const team = app.team;
  const seq = app.where.seq;
  if (!team || !team.doc) return;
  changed();
  if (!seq || seq >= team.last) {
    team.shown = null;
    return;
  }
  const is = team.source.film.near(seq);
  if (is) team.shown = is;
  if (is && is.seq === seq) return;
  prepare();
  team.settle ||= settler(team);
  team.settle();
}

// settler fetches the state after the record of the address. A slider that moves passes many, so it waits until it
// rests, but not for ever.
function settler(team) {
  let before = 0;
  let moves = 0;
  const settle = gather(async () => {
    const seq = app.where.seq;
    if (app.team !== team || !seq || seq >= team.last) return;
    if (seq !== before && ++moves < 6) {
      before = seq;
      settle();
      return;
    }
    moves = 0;
    try {
      await team.source.film.fetch(seq);
    } catch (err) {
      if (app.team === team) failed(err);
      return;
    }
    if (app.team !== team) return;
    if (app.where.seq === seq && !team.source.film.at(seq)) say(`Record ${seq} cannot be shown: it is lost to damage.`, true);
    else travel();
  }, 60);
  return settle;
}

// prepare fetches an overview of the history, through which the slider moves. It draws what is known so far.
export async function prepare() {
  const team = app.team;
  if (!team || !team.doc || team.preparing || !app.source.live) return;
  team.preparing = true;
  try {
    await team.source.film.overview(team.last, () => {
      if (app.team === team && app.where.seq) travel();
      changed();
    });
  } catch {
    // a moment that is asked for says why it cannot be shown
  }
  team.preparing = false;
}

// shown returns the state of the open team that is shown, and what goes with it.
export function shown() {
  const team = app.team;
  if (!team || !team.doc) return null;
  const past = !!team.shown && !!app.where.seq;
  const doc = past ? team.shown : team.doc;
  return { team, doc, past, now: past ? null : team.now, at: past || !app.source.live ? doc.at : 0 };
}

// waits returns what waits in the team that is shown.
export function waits(v) {
  if (v.now) return v.now.items;
  return v.doc.waiting.map((key) => ({ team: v.team.ref, key, ...v.doc.items[key] }));
}

// readList reads the list of teams again.
const readList = gather(async () => {
  try {
    app.list = await app.source.teams();
    app.login = false;
  } catch (err) {
    failed(err);
  }
  const { team } = app;
  for (const t of team && team.doc && app.list ? app.list.sections.flatMap((s) => s.teams) : []) {
    if (t.ref !== team.ref && t.id !== team.doc.team.id) continue;
    const found = JSON.stringify({ ...t, lookedAt: 0 });
    if (found !== team.found) refresh(team);
    team.found = found;
  }
  changed();
}, 120);

// start begins to show what the address says.
export async function start(source) {
  app.source = source;
  if (!source.live && !readAddress().team) history.replaceState(null, "", "#team=" + encodeURIComponent(source.data.ref));
  addEventListener("popstate", arrived);
  addEventListener("hashchange", arrived);
  arrived();
  try {
    app.caller = await source.caller();
  } catch (err) {
    failed(err);
    if (err.status === 401) return;
  }
  changed();
  if (!source.live) return;
  await readList();
  source.watch(readList, lost("teams"));
}

const ranks = ["none", "observe", "answer", "steer", "admin"];

// may reports whether the browser's role allows what needs another one.
export const may = (role) => app.source.live && ranks.indexOf(app.caller.role) >= ranks.indexOf(role);

// act changes the team. It says what was done, or why it was refused.
export async function act(ref, method, path, body, done) {
  try {
    const answer = await app.source.act(method, ref, path, body);
    if (done) say(typeof done === "function" ? done(answer) : done);
    refreshed();
    return answer || true;
  } catch (err) {
    await refuse(ref, err);
    refreshed();
    return null;
  }
}

// refuse shows why a change was refused, and what would help.
async function refuse(ref, err) {
  if (err.status === 401) return failed(err);
  let text = err.message;
  if (err.hints && err.hints.length) {
    try {
      const lines = (await app.source.commands(err.hints.map((h) => ({ ...h, team: h.team || ref })))).filter(Boolean);
      if (lines.length) text += " What helps: " + lines.join("; ");
    } catch {
      // the words of the refusal are enough
    }
  }
  return say(text, true);
}

export function open(dialog) {
  app.dialog = dialog;
  app.opened++;
  changed();
}
