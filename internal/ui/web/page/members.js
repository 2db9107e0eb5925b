// Members: the list with what each does, and the panel of one with its session.
import { html, Age, Icon, called, cx, count, money, used, useEffect, useRef, useState, short, tokensOf, clock } from "./core.js";
import { app, act, go, may } from "./store.js";
import { ask } from "./dialog.js";
import { Face, State, TeamLink } from "./parts.js";
import { Plans } from "./plans.js";
import { readable } from "./waits.js";

const over = (m) => ["stopped", "failed"].includes(m.status);

// rank sorts the lead first, and members that have ended last.
const rank = (doc, name) => (name === doc.team.lead ? 0 : over(doc.members[name]) ? 2 : 1);

const phaseOf = (v, name) => (v.now && v.now.phases[name]) || v.doc.phases[name];

export function Members({ v }) {
  const { doc } = v;
  const work = {};
  for (const id in doc.tasks) {
    const t = doc.tasks[id];
    if (t.status === "in_progress") work[t.owner] = t;
  }
  const children = {};
  for (const c of doc.team.children || []) if (!c.over) children[c.member] = c;
  const names = [...doc.order].sort((a, b) => rank(doc, a) - rank(doc, b));
  return html`<section class="members" aria-label="Members">
    <div class="line head"><h2>Members <span class="n">${names.length}</span></h2></div>
    <ul>${names.map((name) => {
      const m = doc.members[name];
      const t = work[name];
      const chosen = app.where.member === name;
      const phase = phaseOf(v, name);
      return html`<li key=${name}><button class=${cx("member", chosen && "chosen", over(m) && "over")} aria-pressed=${chosen} onClick=${() => go({ member: chosen ? "" : name, task: "" })}>
        <${Face} of=${name} doc=${doc} />
        <span class="about"><span class="row"><strong>${name}</strong>${name === doc.team.lead && html`<span class="chip">lead</span>`}<span class="grow" /><${State} of=${phase} /></span>
          <span class="does">${t ? html`<span class="id">${called(t)}</span> ${t.subject}` : m.summary || html`<span class="dim">${[m.agent === "external" ? "you or another program" : m.agent, m.role].filter(Boolean).join(", ")}</span>`}</span>
          <span class="row facts">${m.inbox && html`<span title="messages that were not delivered yet"><${Icon} name="mail" />${m.inbox.length}</span>`}
            ${m.context > 0 && html`<span title="of its context is full">${m.context}% context</span>`}${m.usage && html`<span title=${used(m.usage)}>${m.usage.costMicroUSD ? money(m.usage.costMicroUSD) : short(tokensOf(m.usage)) + " tokens"}</span>`}
            ${!over(m) && m.since && html`<span class="end"><${Age} at=${t ? Math.max(m.since, t.startedAt || 0) : m.since} now=${v.at} /></span>`}</span></span>
      </button>${children[name] && html`<div class="dim child">Its team: <${TeamLink} of=${children[name].team} name=${children[name].name} /></div>`}</li>`;
    })}</ul>
  </section>`;
}

// sparing does something that interrupts a member. It asks first if that ends the member's command.
const sparing = (v, name, does) => {
  const about = v.now && v.now.endings[name];
  if (!about) return does();
  ask({ title: `Interrupt ${name}`, about, does: "End it", danger: true, onDo: does });
};

const modes = ["default", "acceptEdits", "auto", "dontAsk", "plan", "bypassPermissions"];
const enc = encodeURIComponent;

export function MemberPanel({ v, name }) {
  const m = v.doc.members[name];
  const ref = v.team.ref;
  const path = `/members/${enc(name)}`;
  const open = !v.past && app.source.live && !over(m);
  const teammate = name !== v.doc.team.lead;
  const interrupt = () => act(ref, "POST", path + "/interrupt", {}, `${name} is interrupted.`);
  const mode = () => ask({
    title: `What ${name} may do without asking`, does: "Change",
    fields: [{ name: "mode", label: "Mode", kind: "choice", choices: modes, value: m.permissionMode || "default" }],
    onDo: (f) => act(ref, "PUT", path + "/mode", { mode: f.mode }, `${name} works in the mode ${f.mode}.`),
  });
  const shutdown = () => ask({
    title: `Shut down ${name}`, about: "It is asked to finish. After 30 seconds it is ended.", does: "Shut down", danger: true,
    fields: [{ name: "reason", label: "Reason, for the member", kind: "text" }],
    onDo: (f) => act(ref, "POST", path + "/shutdown", { reason: f.reason || undefined }, `${name} was asked to shut down.`),
  });
  return html`<aside class="panel member-panel" aria-label=${"Member " + name}>
    <header><${Face} of=${name} doc=${v.doc} /><strong>${name}</strong><${State} of=${phaseOf(v, name)} /><span class="grow" />
      <button class="plain" aria-label="Close" onClick=${() => go({ member: "" })}><${Icon} name="cross" /></button></header>
    <div class="sub dim">${[m.agent, m.model, m.role, m.permissionMode && m.permissionMode !== "default" && m.permissionMode, m.context > 0 && `${m.context}% of its context`, used(m.usage)].filter(Boolean).join(" · ")}</div>
    ${open && html`<div class="answers">
      <button disabled=${!may("steer")} onClick=${() => sparing(v, name, interrupt)}>Interrupt</button>
      <button disabled=${!may("steer")} onClick=${mode}>Mode …</button>
      ${teammate && html`<button disabled=${!may("steer")} onClick=${shutdown}>Shut down …</button>`}
    </div>`}
    <${Plans} v=${v} of=${name} select=${(plans) => plans.filter((p) => p.member === name)} />
    ${app.source.live ? html`<${Session} key=${name} v=${v} name=${name} />` : html`<p class="dim pad">The session is not in the exported file.</p>`}
    ${open && html`<${Line} v=${v} name=${name} />`}
  </aside>`;
}

const mostEntries = 400; // that are on the page
const mostKept = 5000; // for the past

function Session({ v, name }) {
  const [entries, set] = useState([]);
  const [ended, end] = useState(false);
  const box = useRef(null);
  const low = useRef(true);
  useEffect(() => {
    let all = [];
    let due = 0;
    const stop = v.team.source.session(name, (e) => {
      all = grown(all, e);
      due ||= requestAnimationFrame(() => {
        due = 0;
        set(all);
      });
    }, (err) => err !== null && end(true));
    return () => {
      stop();
      cancelAnimationFrame(due);
    };
  }, [name]);
  useEffect(() => {
    if (low.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [entries]);
  const onScroll = (e) => (low.current = e.target.scrollHeight - e.target.scrollTop - e.target.clientHeight < 40);
  const shown = (v.past ? entries.filter((e) => e.at <= v.doc.at) : entries).slice(-mostEntries);
  return html`<div class="scroll session" ref=${box} onScroll=${onScroll} tabindex="0" role="log" aria-label=${"Session of " + name}>
    ${shown.map((e) => html`<${Entry} key=${e.k} e=${e} />`)}
    ${entries.length > 0 && !shown.length && html`<p class="dim">Nothing that is kept was shown before this moment.</p>`}
    ${!entries.length && html`<p class="dim">${ended ? "The member has ended, or has no session." : "Nothing was shown yet."}</p>`}
  </div>`;
}

let n = 0;

// grown returns the entries with one more. The parts of a text are joined until the whole text comes.
function grown(all, e) {
  if (e.whole) all = all.filter((one) => one.kind !== "output" || one.id !== e.id);
  const before = all[all.length - 1];
  if (e.kind === "part" && before && before.kind === "part") return [...all.slice(0, -1), { ...before, text: before.text + e.text }];
  if (e.kind === "text" && before && before.kind === "part") return [...all.slice(0, -1), { ...e, k: before.k }];
  if (e.kind === "output" && before && before.kind === "output" && before.id === e.id) return [...all.slice(0, -1), { ...before, text: (before.text + e.text).slice(-4000) }];
  if (e.kind === "result" && before && before.kind === "output") return [...all.slice(0, -1), { ...e, k: before.k }];
  if (e.kind === "usage") return all;
  return [...all, { ...e, k: ++n }].slice(-mostKept);
}

function Entry({ e }) {
  switch (e.kind) {
    case "started": return html`<p class="rule"><span>session started ${clock(e.at)}</span></p>`;
    case "prompt": return html`<div class="prompt"><span class="tag">prompt</span>${e.text}</div>`;
    case "turn": return html`<p class="rule"><span>turn ${clock(e.at)}</span></p>`;
    case "part": case "text": return html`<div class="say">${e.text}</div>`;
    case "tool": return html`<div class="use"><span class="tool">${e.tool}</span><pre>${readable(e.tool, e.text || "")}</pre></div>`;
    case "output": case "result": return e.text ? html`<pre class=${cx("out", e.failed && "why")}>${e.count > 0 && `… ${e.count} more before\n`}${e.text}</pre>` : null;
    case "question": return html`<div class="use asks"><span class="tool">asks: ${e.tool}</span><pre>${readable(e.tool, e.text || "")}</pre></div>`;
    case "plan": return html`<div class="use asks"><span class="tool">plan</span><div class="long">${e.text}</div></div>`;
    case "answer": return html`<p class=${cx("dim", e.failed && "why")}>${e.failed ? "refused" : "allowed"}${e.text && ": " + e.text}</p>`;
    case "retry": return html`<p class="why">tries again: ${e.text}</p>`;
    case "compacted": return html`<p class="rule"><span>context shortened</span></p>`;
    case "turn_ended": return html`<p class=${cx("rule", e.failed && "why")}><span>${e.interrupted ? "interrupted" : e.failed ? "turn failed: " + e.text : "waits"} ${clock(e.at)}</span></p>`;
    case "ended": return html`<p class=${cx("rule", e.failed && "why")}><span>session ended${e.text ? ": " + e.text : ""}</span></p>`;
    case "lost": return html`<p class="dim">${count(e.count, "earlier entry", "earlier entries")} not kept</p>`;
    default: return null;
  }
}

function Line({ v, name }) {
  const [text, set] = useState("");
  const send = async (priority) => {
    if (!text.trim()) return;
    const sent = await act(v.team.ref, "POST", "/messages", { to: name, body: text, priority }, priority === "urgent" ? `Sent to ${name} at once.` : `Sent to ${name}.`);
    if (sent) set("");
  };
  return html`<form class="write" onSubmit=${(e) => { e.preventDefault(); send(); }}>
    <label class="sr" for="line">Message to ${name}</label>
    <textarea id="line" rows="2" placeholder=${"Write to " + name} value=${text} disabled=${!may("answer")} onInput=${(e) => set(e.target.value)}
      onKeyDown=${(e) => { if (e.key === "Enter" && !e.shiftKey) { e.preventDefault(); e.ctrlKey || e.metaKey ? sparing(v, name, () => send("urgent")) : send(); } }} />
    <button type="submit" class="main" disabled=${!may("answer") || !text.trim()} aria-label="Send" title="Enter sends; Ctrl+Enter sends as urgent and interrupts the turn"><${Icon} name="send" /></button>
  </form>`;
}
