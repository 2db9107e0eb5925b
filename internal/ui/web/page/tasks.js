// Tasks: the columns of their states, and the panel of one of them.
import { html, Age, Icon, Memo, called, count, cx, span, used, useState, useMemo, when, words, workerOf } from "./core.js";
import { app, act, go, may } from "./store.js";
import { ask } from "./dialog.js";
import { Name, State, toneOf } from "./parts.js";
import { reassign } from "./waits.js";
import { Diff } from "./diff.js";
import { Account } from "./plans.js";
import { Rows } from "./rows.js";
import { Find, Wrong, useFilter } from "./find.js";
import { match, taskItem } from "./filter.js";

const columns = ["pending", "blocked", "in_progress", "verifying", "completed", "failed"];

let last = null; // the tasks that were sorted last, and the result
let sorted = [];

// byState returns the tasks by their states, in the order of the columns.
export function byState(tasks) {
  if (tasks === last) return sorted;
  const of = Object.fromEntries(columns.map((c) => [c, []]));
  for (const id in tasks) {
    const t = tasks[id];
    (of[t.state === "skipped" ? "completed" : t.state] || of.pending).push(t); // a skipped task counts as done
  }
  of.completed.sort((a, b) => (b.completedAt || 0) - (a.completedAt || 0));
  of.in_progress.sort((a, b) => (b.startedAt || 0) - (a.startedAt || 0));
  last = tasks;
  sorted = columns.map((c) => [c, of[c]]);
  return sorted;
}

// narrowed returns the columns with the tasks that the terms select. Without terms, the tasks that groups made are
// folded under their groups, unless made is true.
function narrowed(of, doc, terms, made) {
  if (!terms.length && made) return of;
  const fits = terms.length ? (t) => match(terms, taskItem(doc.team.name, t)) : (t) => !doc.tasks[t.of];
  return of.map(([state, tasks]) => [state, tasks.filter(fits)]);
}

// madeBy returns the tasks that a group made.
const madeBy = (doc, t) => (t.expanded ? (t.blockedBy || []).map((id) => doc.tasks[id]).filter((one) => one && one.of === t.id) : []);

// progressOf says how many of the tasks that a group made are done; "" for a task that made none.
function progressOf(doc, t) {
  const made = madeBy(doc, t);
  const failed = made.filter((one) => one.state === "failed").length;
  return made.length ? `${made.filter((one) => one.status === "completed").length} of ${made.length} done${failed ? `, ${failed} failed` : ""}` : "";
}

// The rows of the columns, so that the arrow keys can move among them.
const columnRows = {};

// onArrow moves the focus among the tasks.
function onArrow(e) {
  const column = e.target.closest(".column");
  if (!column || e.ctrlKey || e.metaKey || e.altKey) return;
  const rows = columnRows[column.dataset.state];
  const row = e.target.closest("[data-i]");
  const at = row ? Number(row.dataset.i) : rows.active;
  const n = rows.props.all.length;
  const beside = (by) => {
    const all = [...column.parentElement.children].map((c) => c.dataset.state).filter((s) => columnRows[s].props.all.length);
    const next = columnRows[all[all.indexOf(column.dataset.state) + by]];
    if (next) next.show(next.beside((row || column).getBoundingClientRect().top));
  };
  const moves = {
    ArrowDown: () => at < n - 1 && rows.show(at + 1), ArrowUp: () => at > 0 && rows.show(at - 1), Home: () => rows.show(0), End: () => rows.show(n - 1),
    PageDown: () => rows.show(at + rows.page), PageUp: () => rows.show(at - rows.page), ArrowRight: () => beside(1), ArrowLeft: () => beside(-1),
  };
  if (!moves[e.key]) return;
  e.preventDefault();
  moves[e.key]();
}

export function Kanban({ v }) {
  const { terms, wrong } = useFilter();
  const all = byState(v.doc.tasks);
  const [unfolded, unfold] = useState(false);
  const some = useMemo(() => narrowed(all, v.doc, terms, unfolded), [all, terms, unfolded]);
  const made = useMemo(() => Object.values(v.doc.tasks).filter((t) => v.doc.tasks[t.of]).length, [all]);
  const drawn = some.filter(([state], i) => state !== "verifying" || all[i][1].length); // most teams have none
  const size = (of) => of.reduce((n, [, tasks]) => n + tasks.length, 0);
  const add = () => ask({
    title: "Add a task", does: "Add",
    fields: [{ name: "subject", label: "What is to be done", needed: true }, { name: "description", label: "Details", kind: "long" },
      { name: "owner", label: "For", kind: "choice", choices: [{ value: "", label: "any member" }, ...v.doc.order.filter((m) => m !== v.doc.team.lead)] },
      { name: "priority", label: "Priority", kind: "choice", choices: ["medium", "low", "high", "critical"], value: "medium" }],
    onDo: (f) => act(v.team.ref, "POST", "/tasks", { subject: f.subject, description: f.description || undefined, owner: f.owner || undefined, priority: f.priority }, (t) => `Task #${t.id} was added.`),
  });
  return html`<section class="tasks" aria-label="Tasks">
    <div class="line head"><h2>Tasks <span class="n">${terms.length ? `${size(some)} of ${size(all)}` : size(all)}</span></h2>
      <${Find} what="Narrow the tasks" placeholder="m:ann  s:blocked  words" wrong=${wrong} />
      ${made > 0 && !terms.length && html`<button aria-pressed=${unfolded} onClick=${() => unfold(!unfolded)}>${unfolded ? "Fold" : "Show"} ${count(made, "made task")}</button>`}
      ${!v.past && may("steer") && html`<button onClick=${add}>Add task …</button>`}</div>
    <${Wrong} text=${wrong} />
    <div class="kanban" onKeyDown=${onArrow}>${drawn.map(([state, tasks]) => html`<section class=${cx("column", state, !tasks.length && "bare")} key=${state} data-state=${state} aria-label=${words(state)}>
        <h3><span class=${cx("mark", toneOf(state))} />${words(state)} <span class="n">${tasks.length}</span></h3>
        <${Rows} all=${tasks} keyOf=${(t) => t.id} even gap=${6} scroller=".view" ref=${(r) => r && (columnRows[state] = r)}
          each=${(t, i, stop) => html`<${Memo} key=${t.id} by=${[t, i, stop, tasks.length, v.doc.order, t.id === app.where.task, t.state === "in_progress" && v.at, progressOf(v.doc, t)]}
            draw=${() => html`<${Card} t=${t} i=${i} of=${tasks.length} stop=${stop} doc=${v.doc} now=${v.at} chosen=${t.id === app.where.task} />`} />`} />
      </section>`)}</div>
  </section>`;
}

function Card({ t, i, of, stop, doc, now, chosen }) {
  const owner = workerOf(t);
  return html`<li data-i=${i} aria-posinset=${i + 1} aria-setsize=${of}><button class=${cx("task", t.state, chosen && "chosen")} aria-pressed=${chosen} tabindex=${stop ? 0 : -1} onClick=${() => go({ task: chosen ? "" : t.id, member: "" })}>
    <span class="row"><span class="id">${called(t)}</span>${(t.priority === "high" || t.priority === "critical") && html`<span class=${cx("chip", "hot")}>${t.priority}</span>`}
      ${t.attempts > 1 && html`<span class="chip" title=${count(t.attempts, "attempt")}><${Icon} name="retry" />${t.attempts}</span>`}
      <span class="grow" />${t.state === "in_progress" && html`<span class="dim"><${Age} at=${t.startedAt} now=${now} /></span>`}
      ${t.state === "completed" && t.completedAt && t.startedAt && html`<span class="dim">${span(t.completedAt - t.startedAt)}</span>`}</span>
    <span class="subject">${t.subject}</span>
    ${t.state === "failed" && t.failure && html`<span class="why">${t.failure}</span>`}
    ${t.expanded && html`<span class="dim">${progressOf(doc, t)}</span>`}
    ${(owner || (t.blocked && !t.expanded) || t.role) && html`<span class="row meta">${owner && html`<${Name} of=${owner} doc=${doc} />`}${!owner && t.role && html`<span class="dim">${t.role}</span>`}
      ${t.state === "verifying" && html`<span class="dim after">round ${t.submission.round} of ${t.verify ? t.verify.rounds : 3}</span>`}
      ${t.blocked && !t.expanded && t.state !== "verifying" && html`<span class="dim after">after ${t.blocked.slice(0, 3).map((id) => (doc.tasks[id] ? called(doc.tasks[id]) : "#" + id)).join(", ")}${t.blocked.length > 3 && ` +${t.blocked.length - 3}`}${t.waitsForPath && ` for ${t.waitsForPath}`}</span>`}</span>`}
  </button></li>`;
}

const enc = encodeURIComponent;

// verifiers says who verifies a task, in a few words.
const verifiers = (by) => `${by.count > 1 ? `${by.count} of ` : ""}${by.by}${by.rule === "majority" ? ", by majority" : ""}, in at most ${count(by.rounds, "round")}`;

// sentBack says why a task's last result was sent back; "" if none was, or if there is another result since.
function sentBack(t) {
  const r = t.rejected;
  if (!r || t.status === "completed" || t.submission) return "";
  const of = (n, limit) => (n ? `, ${n} of ${limit}` : "");
  if (r.by === "result") return "the result does not fit its schema" + of(r.results, 3);
  if (r.by === "check") return "the check failed" + of(r.checks, (t.check && t.check.rounds) || 10);
  return `not accepted by ${r.by || "half of those who verified it"}${of(r.verifications, t.verify ? t.verify.rounds : 3)}`;
}

// checked says how a completed task was checked; "" for a task that was not.
const checked = (t) => t.state === "completed" && !t.forEach && [t.schema && "its result fits its schema", t.check && "its check passed",
  t.verified && `accepted by ${t.verified.map((who) => (who === "@user" ? "you" : who)).join(", ")}`].filter(Boolean).join("; ");

// Verdicts shows who verifies a task and in which round, and what each said.
function Verdicts({ v, t }) {
  if (!t.verify && !t.submission) return null;
  const all = Object.values(v.doc.tasks).filter((one) => one.verifies === t.id).sort((a, b) => a.id - b.id);
  const here = t.submission ? all.filter((one) => t.submission.tasks.includes(one.id)) : [];
  if (!all.length) return null;
  return html`<h3>Verdicts</h3>
    ${t.submission && html`<p class="dim">Round ${t.submission.round} of ${t.verify ? t.verify.rounds : 3}: ${here.filter((one) => one.verdict === "accepted").length} of ${here.length} accepted</p>`}
    <ul class="attempts">${all.map((one) => html`<li key=${one.id}><p class="row"><${Name} of=${workerOf(one) || one.role} doc=${v.doc} /><span class=${cx(one.verdict === "rejected" && "hot")}>${one.verdict ? one.verdict + " it" : one.state === "in_progress" ? "verifies it" : "is to verify it"}</span><span class="grow" />
      <button class="link dim" onClick=${() => go({ task: one.id, member: "" })}>${called(one)}</button></p>
      ${one.verdict && one.result && html`<p class=${cx("long", one.verdict === "rejected" && "why")}>${one.result}</p>`}</li>`)}</ul>`;
}

// sameWork reports whether the changes of a task are those of the moment that is shown: in the present, and after the
// task was completed for the last time.
function sameWork(v, t) {
  const now = v.team.doc.tasks[t.id];
  return !v.past || (!!now && t.state === "completed" && now.state === "completed" && now.completedAt === t.completedAt);
}

export function TaskPanel({ v, id }) {
  const t = v.doc.tasks[id];
  const [diff, show] = useState("");
  const links = (ids) => (ids || []).filter((i) => v.doc.tasks[i]).map((i) => html`<button class="link" onClick=${() => go({ task: i, member: "" })}>
    <span class=${cx("mark", toneOf(v.doc.tasks[i].state))} />${called(v.doc.tasks[i])} <span class="dim">${v.doc.tasks[i].subject}</span></button>`);
  const before = (t.blockedBy || []).filter((i) => v.doc.tasks[i] && v.doc.tasks[i].of !== id && v.doc.tasks[i].verifies !== id);
  const result = (t.submission && t.submission.result && ["Result that is being verified", t.submission.result]) || (t.result && ["Result", t.result])
    || (t.lastWords && ["Last words, without a result", t.lastWords]);
  const open = !v.past && app.source.live;
  const path = `/tasks/${enc(id)}`;
  const ref = v.team.ref;
  return html`<aside class="panel" aria-label=${"Task " + called(t)}>
    <header><span class="id">${called(t)}</span><${State} of=${t.state} /><span class="grow" />
      <button class="plain" aria-label="Close" onClick=${() => go({ task: "" })}><${Icon} name="cross" /></button></header>
    <div class="scroll">
      <h2>${t.subject}</h2>
      ${t.description && html`<p class="long">${t.description}</p>`}
      ${t.run && html`<pre class="detail">${t.run}</pre>`}
      <dl>
        ${workerOf(t) && html`<dt>Owner</dt><dd><button class="link" onClick=${() => go({ member: workerOf(t), task: "" })}><${Name} of=${workerOf(t)} doc=${v.doc} /></button></dd>`}
        ${t.role && html`<dt>Role</dt><dd>${t.role}</dd>`}
        ${t.paths && html`<dt>Paths</dt><dd>${t.paths.join(", ")}</dd>`}
        ${t.holds && t.holds.join() !== (t.paths || []).join() && html`<dt>Has now</dt><dd>${t.holds.join(", ")}</dd>`}
        ${t.forEach && html`<dt>Its tasks</dt><dd>${progressOf(v.doc, t) || "not made yet"}</dd>`}
        ${t.of && v.doc.tasks[t.of] && html`<dt>Made by</dt><dd>${links([t.of])}</dd><dt>Item</dt><dd>${typeof t.item === "string" ? t.item : JSON.stringify(t.item)}</dd>`}
        ${t.verify && html`<dt>Verified by</dt><dd>${verifiers(t.verify)}</dd>`}
        ${t.verifies && v.doc.tasks[t.verifies] && html`<dt>Verifies</dt><dd>${links([t.verifies])}</dd>`}
        ${t.verdict && html`<dt>Verdict</dt><dd>${t.verdict}</dd>`}
        ${t.check && html`<dt>Check</dt><dd><code>${t.check.run}</code>${t.check.rounds > 0 && `, at most ${t.check.rounds} rounds`}</dd>`}
        ${t.when && html`<dt>Runs</dt><dd>${t.when === "always" ? "also" : "only"} if a task that it depends on has failed</dd>`}
        ${t.skipped && html`<dt>Skipped</dt><dd>${t.skipped}</dd>`}
        <dt>Priority</dt><dd>${t.priority || "medium"}</dd>
        ${t.attempts > 0 && html`<dt>Attempts</dt><dd>${t.attempts}${t.failures > 0 && `, ${t.failures} failed`}${t.retries > 0 && ` of ${t.retries + 1}`}</dd>`}
        ${used(t.usage) && html`<dt>Used</dt><dd>${used(t.usage)}</dd>`}
        <dt>Added</dt><dd>${when(t.createdAt)} by <${Name} of=${t.createdBy} doc=${v.doc} plain /></dd>
        ${t.startedAt && html`<dt>Started</dt><dd>${when(t.startedAt)}</dd>`}
        ${t.completedAt && html`<dt>Completed</dt><dd>${when(t.completedAt)}${t.startedAt && `, after ${span(t.completedAt - t.startedAt)}`}</dd>`}
        ${checked(t) && html`<dt>Checked</dt><dd>${checked(t)}</dd>`}
      </dl>
      ${before.length > 0 && html`<h3>Waits for</h3><div class="links">${links(before)}</div>`}
      ${t.expanded && html`<h3>Its tasks</h3><div class="links">${links(madeBy(v.doc, t).map((one) => one.id))}</div>`}
      ${t.waitsForPath && html`<h3>Waits for ${t.waitsForPath}, which belongs to</h3><div class="links">${links(t.blocked)}</div>`}
      ${t.blocks && html`<h3>Blocks</h3><div class="links">${links(t.blocks)}</div>`}
      ${t.schema && html`<h3>Schema of its result</h3><pre class="detail" tabindex="0">${JSON.stringify(t.schema, null, 2)}</pre>`}
      ${sentBack(t) && html`<h3>Sent back: ${sentBack(t)}</h3><pre class="detail why" tabindex="0">${t.rejected.feedback}</pre>`}
      <${Verdicts} v=${v} t=${t} />
      ${t.failure && html`<h3>Why it failed</h3><p class="long why">${t.failure}</p>`}
      ${result && html`<h3>${result[0]}</h3><pre class="detail" tabindex="0">${result[1]}</pre>`}
      ${t.work && t.work.files && html`<h3>Files changed</h3><ul class="files">${t.work.files.map((file) => html`<li>${file}</li>`)}</ul>
        ${t.work.others && html`<p class="dim">${t.work.others.join(", ")} worked there at the same time, so some may be theirs.</p>`}`}
      <${Account} v=${v} id=${id} />
      <div class="answers">
        ${open && t.state === "failed" && html`<button class="main" disabled=${!may("steer")} onClick=${() => act(ref, "POST", path + "/release", {}, "The task is back in the queue.")}><${Icon} name="retry" />Retry</button>`}
        ${open && t.state === "in_progress" && html`<button disabled=${!may("steer")} onClick=${() => ask({
          title: `Take ${called(t)} from ${t.owner}`, about: "The task returns to the queue. Its work so far is saved.", does: "Release",
          fields: [{ name: "reason", label: "Reason", kind: "text" }],
          onDo: (f) => act(ref, "POST", path + "/release", { reason: f.reason || undefined }, "The task is back in the queue."),
        })}>Release …</button>`}
        ${open && t.state !== "completed" && html`<button disabled=${!may("steer")} onClick=${() => reassign(v, id)}>Reassign …</button>`}
        ${t.attempts > 0 && html`<button aria-expanded=${diff === id} onClick=${() => show(diff === id ? "" : id)}>${diff === id ? "Hide changes" : "Show changes"}</button>`}
      </div>
      ${diff === id && (sameWork(v, t) ? html`<${Diff} key=${id} team=${v.team} task=${id} />`
        : html`<p class="dim">What was changed by this moment is not kept. <button class="link" onClick=${() => go({ seq: 0 })}>Show the present</button></p>`)}
    </div>
  </aside>`;
}
