// Messages, as threads: what two members wrote to each other, and what was written to all.
import { html, Age, Icon, clock, cx, useEffect, useMemo, useRef, useState, when } from "./core.js";
import { app, act, failed, go, may } from "./store.js";
import { Empty, Face, Name } from "./parts.js";
import { Rows } from "./rows.js";

// useMessages reads the messages that came since.
function useMessages(v) {
  const team = v.team;
  const [, drawn] = useState(0);
  useEffect(() => {
    let gone = false;
    const read = async () => {
      team.messages ||= { all: [], seq: 0 }; // and the last record that was read
      for (let left = true; left; ) {
        const from = team.messages.seq;
        const more = await team.source.messages(from);
        left = more.seq < more.last;
        if (more.seq <= from && team.read) return;
        // It is kept although newer messages came meanwhile: the next read continues from it. Another view may have read
        // the same records.
        if (team.messages.seq === from) team.messages = { all: team.messages.all.concat(more.messages), seq: more.seq };
        team.read = true;
        if (gone) return;
        drawn((n) => n + 1);
      }
    };
    read().catch(failed);
    return () => (gone = true);
  }, [team, team.doc.messages]);
  return team.read ? team.messages.all : null;
}

const threadOf = (l) => (l.to === "*" ? "everyone" : [l.from || "the team", l.to].sort().join(" and "));

const system = (l) => !l.from || ["system", "task_update", "idle"].includes(l.type);

export function Talk({ v }) {
  const all = useMessages(v);
  const [from, only] = useState("");
  const [hide, mute] = useState(true);
  const [reply, type] = useState("");
  const before = useRef("");
  const at = /^#\d+$/.test(app.where.open) ? Number(app.where.open.slice(1)) : 0; // the message that a search led to
  const place = useRef({ rows: null, i: -1 });
  useEffect(() => {
    const { rows, i } = place.current;
    if (at && rows && i >= 0) rows.show(i);
  }, [at, !all]);
  const shown = useMemo(() => (all || []).filter((l) => (!v.past || l.seq <= v.doc.lastMessage) && !(hide && system(l) && l.seq !== at)), [all, v.past ? v.doc.seq : 0, hide, at]);
  if (!all) return html`<p class="dim pad">Reading …</p>`;
  const threads = new Map();
  for (const l of shown) {
    const key = threadOf(l);
    if (!threads.has(key)) threads.set(key, []);
    threads.get(key).push(l);
  }
  const sorted = [...threads].sort((a, b) => b[1][b[1].length - 1].seq - a[1][a[1].length - 1].seq);
  const chosen = (at && sorted.find((t) => t[1].some((l) => l.seq === at)))
    || [app.where.open, before.current].map((key) => sorted.find((t) => t[0] === key)).find(Boolean) || sorted[0];
  place.current.i = at && chosen ? chosen[1].findIndex((l) => l.seq === at) : -1;
  before.current = chosen && chosen[0]; // it stays when another thread becomes the newest one
  const partner = chosen && chosen[0] !== "everyone" ? chosen[1].map((l) => [l.from, l.to]).flat().find((n) => v.doc.members[n] && n !== v.doc.team.lead) || v.doc.team.lead : "";
  const send = async (e) => {
    e.preventDefault();
    if (!reply.trim()) return;
    const sent = partner ? await act(v.team.ref, "POST", "/messages", { to: partner, body: reply }, `Sent to ${partner}.`)
      : await act(v.team.ref, "POST", "/broadcasts", { body: reply }, "Sent to all members.");
    if (sent) type("");
  };
  return html`<section class="talk" aria-label="Messages">
    <div class="threads"><div class="line head"><h2>Threads <span class="n">${sorted.length}</span></h2><span class="grow" />
      <label class="check"><input type="checkbox" checked=${!hide} onChange=${(e) => mute(!e.target.checked)} /><span>system messages</span></label></div>
      <ul>${sorted.map(([key, messages]) => {
        const l = messages[messages.length - 1];
        return html`<li key=${key}><button class=${cx("thread", chosen && key === chosen[0] && "chosen")} aria-pressed=${chosen && key === chosen[0]} onClick=${() => go({ open: key }, true)}>
          <span class="row"><strong>${key.replaceAll("@user", "you")}</strong><span class="n">${messages.length}</span><span class="grow" /><span class="dim"><${Age} at=${l.sentAt} now=${v.at} /></span></span>
          <span class="preview dim">${l.body}</span></button></li>`;
      })}</ul>
      ${!sorted.length && html`<${Empty}>No messages yet.</${Empty}>`}
    </div>
    ${chosen && html`<div class="messages"><div class="scroll" tabindex="0" role="log" aria-label=${"Messages between " + chosen[0]}>
      <${Rows} key=${chosen[0]} ref=${(r) => (place.current.rows = r)} end all=${chosen[1]} keyOf=${(l) => l.seq} gap=${14} guess=${80} scroller=".scroll" each=${(l, i) => html`<li key=${l.seq} data-i=${i} tabindex="-1" class=${cx(l.seq === at && "sought")}><${Message} l=${l} doc=${v.doc} /></li>`} /></div>
      ${!v.past && app.source.live && html`<form class="write" onSubmit=${send}><label class="sr" for="reply">Message to ${partner || "all members"}</label>
        <textarea id="reply" rows="2" value=${reply} placeholder=${"Write to " + (partner || "all members")} disabled=${!may("answer")} onInput=${(e) => type(e.target.value)} onKeyDown=${(e) => e.key === "Enter" && !e.shiftKey && send(e)} />
        <button class="main" type="submit" aria-label="Send" disabled=${!may("answer") || !reply.trim()}><${Icon} name="send" /></button></form>`}
    </div>`}
  </section>`;
}

function Message({ l, doc }) {
  return html`<article class=${cx("message", system(l) && "system", l.priority === "urgent" && "urgent")}>
    ${doc.members[l.from] ? html`<${Face} of=${l.from} doc=${doc} small />` : html`<${Icon} name="mail" />`}
    <div><p class="row by"><${Name} of=${l.from || "the team"} doc=${doc} plain /><span class="dim">→</span><${Name} of=${l.to === "*" ? "everyone" : l.to} doc=${doc} plain />
      ${l.intent && l.intent !== "info" && html`<span class="chip">${l.intent}</span>`}${l.priority === "urgent" && html`<span class="chip hot">urgent</span>`}
      <span class="dim end" title=${when(l.sentAt)}>${clock(l.sentAt)}</span></p>
    <p class="long">${l.body}</p></div>
  </article>`;
}
