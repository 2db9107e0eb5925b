// What was planned and tried: the plans of members, and the attempts at a task.
import { html, clock, count, cx, span, useEffect, useState, when } from "./core.js";
import { failed, go } from "./store.js";
import { Name, State } from "./parts.js";

// asOf returns a plan as it was at a time; null if it was not submitted yet.
const asOf = (p, at) => (p.askedAt > at ? null : p.answeredAt > at ? { ...p, state: "submitted", feedback: "", answeredAt: 0, answeredBy: "" } : p);

// usePlans returns the plans up to the moment that is shown, the oldest first.
function usePlans(v) {
  const { team } = v;
  const [all, set] = useState([]);
  const state = team.doc.order.map((m) => team.doc.members[m].plan).map((p) => p && p.request + p.state).join();
  useEffect(() => {
    let gone = false;
    team.source.plans().then((plans) => gone || set(plans), failed);
    return () => (gone = true);
  }, [team, state]);
  return all.map((p) => asOf(p, v.doc.at)).filter(Boolean);
}

// Plans shows the plans that select returns, the newest first.
export function Plans({ v, select, of }) {
  const plans = select(usePlans(v)).toReversed();
  if (!plans.length) return null;
  return html`<section class="plans" aria-label=${"Plans of " + of}><h3>Plans <span class="n">${plans.length}</span></h3>
    ${plans.map((p, i) => html`<details key=${p.request} class="plan" open=${i === 0}><summary><${State} of=${p.state} /><span class="grow" /><span class="dim" title=${when(p.askedAt)}>${clock(p.askedAt)}</span></summary>
      <div class="long">${p.plan}</div>
      ${p.answeredAt > 0 && html`<p class=${cx("verdict", p.state)}>${p.state === "approved" ? "Approved" : "Rejected"}${p.answeredBy ? html` by <${Name} of=${p.answeredBy} doc=${v.doc} plain />` : ": the time was up"} <span class="dim">${clock(p.answeredAt)}</span>
        ${p.feedback && html`<span class="long">${p.feedback}</span>`}</p>`}</details>`)}
  </section>`;
}

// under returns the plans that attempts followed: those that were submitted during one, the last one that was approved
// before it, and those that were rejected on the way to that.
function under(plans, attempts) {
  const found = new Set();
  for (const a of attempts) {
    const own = plans.filter((p) => p.member === a.member && p.askedAt <= (a.ended || Infinity));
    const before = own.filter((p) => p.askedAt < a.began);
    const last = before.findLastIndex((p) => p.state === "approved");
    const first = before.slice(0, Math.max(0, last)).findLastIndex((p) => p.state === "approved") + 1;
    for (const p of [...before.slice(first, last + 1), ...own.slice(before.length)]) found.add(p);
  }
  return plans.filter((p) => found.has(p));
}

// useAccount returns what happened to a task up to the moment that is shown.
function useAccount(v, id) {
  const [is, set] = useState({ id: "", attempts: [], mentions: [] });
  const now = v.team.doc.tasks[id];
  useEffect(() => {
    let gone = false;
    v.team.source.account(id).then((a) => gone || set({ id, ...a }), failed);
    return () => (gone = true);
  }, [v.team, id, now && now.updatedAt, now && now.attempts, v.team.doc.messages]);
  if (is.id !== id) return { attempts: [], mentions: [] };
  const { seq } = v.doc;
  const attempts = is.attempts.filter((a) => a.seq <= seq).map((a) => ({
    ...(a.endSeq > seq ? { ...a, endSeq: 0, ended: 0, how: "", reason: "" } : a), rejections: (a.rejections || []).filter((r) => r.seq <= seq),
  }));
  return { attempts, mentions: is.mentions.filter((m) => m.seq <= seq) };
}

// Account shows the attempts at a task, the plans they followed, and the messages that name it.
export function Account({ v, id }) {
  const { attempts, mentions } = useAccount(v, id);
  const { failure } = v.doc.tasks[id]; // the panel shows it already
  const at = (seq, time) => html`<button class="link dim" title=${`${when(time)}; show the team after record ${seq}`} onClick=${() => go({ seq })}>${clock(time)}</button>`;
  return html`${attempts.length > 0 && html`<h3>Attempts <span class="n">${attempts.length}</span></h3>
    <ul class="attempts">${attempts.toReversed().map((a) => html`<li key=${a.seq}><p class="row"><${Name} of=${a.member} doc=${v.doc} /><span>${a.how || "works"}</span><span class="grow" />
        ${at(a.seq, a.began)}<span class="dim">${span((a.ended || v.at || Date.now()) - a.began)}</span></p>
      ${a.reason && a.reason !== failure && html`<p class="why">${a.reason}</p>`}
      ${a.rejections.map((r) => html`<p class="hot">${r.hook ? `${r.hook} rejected it` : "Sent back"} at ${clock(r.at)}: ${r.feedback}</p>`)}</li>`)}</ul>`}
    ${attempts.length > 0 && html`<${Plans} v=${v} of=${"task " + id} select=${(plans) => under(plans, attempts)} />`}
    ${mentions.length > 0 && html`<details class="mentions"><summary>${count(mentions.length, "message")} about it</summary>
      <ul>${mentions.toReversed().map((m) => html`<li key=${m.seq}><p class="row"><${Name} of=${m.from} doc=${v.doc} plain /><span class="dim">→</span><${Name} of=${m.to === "*" ? "everyone" : m.to} doc=${v.doc} plain /><span class="grow" />${at(m.seq, m.at)}</p>
        <p class="long">${m.text}</p></li>`)}</ul></details>`}`;
}
