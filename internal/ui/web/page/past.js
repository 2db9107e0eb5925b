// The slider over the records, what changed since the last look, and two moments beside each other.
import { html, Icon, Memo, called, count, cx, useEffect, useState, when, money, short, tokensOf, words } from "./core.js";
import { app, changed, go, prepare, shown } from "./store.js";
import { Name, State, Empty } from "./parts.js";
import { Rows } from "./rows.js";

const here = (v) => app.where.seq || v.team.last;

// step shows the team one record earlier or later.
export function step(by) {
  const v = shown();
  if (!v) return;
  const to = Math.min(v.team.last, Math.max(1, here(v) + by));
  go({ seq: to === v.team.last ? 0 : to }, true);
}

// leap goes to the next mark, or the previous one.
export function leap(by) {
  const v = shown();
  if (!v || !v.team.marks) return;
  const at = here(v);
  const to = by > 0 ? v.team.marks.find((m) => m.seq > at) : v.team.marks.findLast((m) => m.seq < at);
  if (to) go({ seq: to.seq }, true);
}

export function Slider({ v }) {
  const { team } = v;
  const at = here(v);
  const move = (e) => {
    const to = Number(e.target.value);
    go({ seq: to >= team.last ? 0 : Math.max(1, to) }, true);
  };
  const compare = () => go({ with: app.where.with ? 0 : team.looked && team.looked < at ? team.looked : Math.max(1, Math.floor(at / 2)) });
  return html`<footer class=${cx("slider", v.past && "away")} onPointerEnter=${prepare} onFocusIn=${prepare}>
    <span class="buttons" role="group" aria-label="Records">
      <button class="plain" aria-label="Previous mark" title="Previous failure, wait or commit  {" onClick=${() => leap(-1)}><${Icon} name="first" /></button>
      <button class="plain" aria-label="One record back" title="One record back  [" onClick=${() => step(-1)}><${Icon} name="back" /></button>
      <button class="plain" aria-label="One record forward" title="One record forward  ]" onClick=${() => step(1)}><${Icon} name="next" /></button>
      <button class="plain" aria-label="Next mark" title="Next failure, wait or commit  }" onClick=${() => leap(1)}><${Icon} name="last" /></button>
    </span>
    <span class="rail"><${Memo} by=${[team.marks, team.last]} draw=${() => html`<${Marks} all=${team.marks || []} last=${team.last} />`} />
      <input type="range" min="1" max=${team.last} step="1" value=${at} aria-label="Record that is shown" aria-valuetext=${`record ${at} of ${team.last}, ${when(v.doc.at)}`} onInput=${move} /></span>
    <span class="place">${v.past ? html`<b>${when(v.doc.at)}</b> <span class="dim">record ${v.doc.seq} of ${team.last}</span>` : html`<span class="dim">${count(team.last, "record")}</span>`}</span>
    <button class=${cx(app.where.with > 0 && "chosen")} aria-pressed=${app.where.with > 0} onClick=${compare}>Compare</button>
    ${v.past ? html`<button class="main" onClick=${() => go({ seq: 0 })}>${app.source.live ? "Now" : "End"}</button>` : app.source.live && html`<span class="now" title="the present"><i />live</span>`}
  </footer>`;
}

// Marks shows where the marks are. Closer ones cannot be told apart.
function Marks({ all, last }) {
  const seen = new Set();
  const some = all.filter((m) => {
    const x = m.kind + Math.round((400 * m.seq) / last);
    if (seen.has(x)) return false;
    seen.add(x);
    return true;
  });
  return html`<span class="marks" aria-hidden="true">${some.map((m) => html`<i key=${m.seq + m.kind} class=${m.kind}
    style=${{ left: (100 * (m.seq - 1)) / Math.max(1, last - 1) + "%" }} />`)}</span>`;
}

export function Since({ v }) {
  const { team } = v;
  if (!team.since) return null;
  const close = () => {
    team.since = null;
    changed();
  };
  const { from, to, lines } = team.since;
  return html`<section class="since" aria-label="Since you last looked"><div class="line"><h2>Since you last looked <span class="n">${count(to - from + 1, "record")}</span></h2><span class="grow" />
    <button onClick=${() => { close(); go({ with: Math.max(1, from - 1) }); }}>Compare</button><button class="plain" aria-label="Close" onClick=${close}><${Icon} name="cross" /></button></div>
    <ul>${lines.slice(0, 6).map((l) => html`<li>${l}</li>`)}</ul>${lines.length > 6 && html`<p class="dim">and ${lines.length - 6} more</p>`}</section>`;
}

// useMoment returns the state after a record, or after one nearby until that is fetched; null if none is known.
function useMoment(team, seq) {
  const [, drawn] = useState(0);
  const is = team.source.film.near(seq);
  const exact = !!is && is.seq === seq;
  useEffect(() => {
    if (exact) return undefined;
    let gone = false;
    const draw = () => gone || drawn((n) => n + 1);
    const timer = setTimeout(() => team.source.film.fetch(seq).then(draw, () => {}), 80); // once the slider rests
    prepare();
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [team, seq, exact]);
  return is;
}

// Compare shows what differs between the record of the address and the one that is shown.
export function Compare({ v }) {
  const { team } = v;
  const other = app.where.with;
  const before = useMoment(team, other);
  const move = (e) => go({ with: Number(e.target.value) }, true);
  const pair = before && (before.seq <= v.doc.seq ? [before, v.doc] : [v.doc, before]);
  return html`<section class="compare" aria-label="Two moments">
    <div class="line head"><h2>Two moments</h2><span class="grow" /><button onClick=${() => go({ with: 0 })}>Close</button></div>
    <label class="moment"><span>From record ${other}${before && html` <span class="dim">${when(before.at)}</span>`}</span>
      <input type="range" min="1" max=${team.last} value=${other} onInput=${move} /></label>
    <p class="moment"><span>to record ${v.doc.seq} <span class="dim">${when(v.doc.at)}; move the slider below to change it</span></span></p>
    ${pair ? html`<${Changes} a=${pair[0]} b=${pair[1]} />` : html`<p class="dim">Reading …</p>`}
  </section>`;
}

function Changes({ a, b }) {
  const tasks = [];
  for (const id in b.tasks) {
    const [was, is] = [a.tasks[id], b.tasks[id]];
    if (was === is) continue;
    if (!was || was.state !== is.state || was.owner !== is.owner || was.attempts !== is.attempts) tasks.push([was, is]);
  }
  for (const id in a.tasks) if (!b.tasks[id]) tasks.push([a.tasks[id], null]);
  const members = [];
  for (const name of b.order) {
    const [was, is] = [a.phases[name], b.phases[name]];
    if (was !== is) members.push([name, was, is]);
  }
  const number = (title, was, is, text = String) => was !== is && html`<tr><th scope="row">${title}</th><td>${text(was)}</td><td>→</td><td><b>${text(is)}</b></td></tr>`;
  const done = (d) => Object.values(d.tasks).filter((t) => t.state === "completed").length;
  const any = tasks.length || members.length || a.messages !== b.messages || tokensOf(a.team.usage) !== tokensOf(b.team.usage);
  if (!any) return html`<${Empty}>Nothing differs.</${Empty}>`;
  const micro = (d) => (d.team.usage && d.team.usage.costMicroUSD) || 0;
  return html`<table class="plain-table"><tbody>
      ${number("Team", words(a.team.status), words(b.team.status))}
      ${number("Tasks", Object.keys(a.tasks).length, Object.keys(b.tasks).length)}
      ${number("Completed", done(a), done(b))}
      ${number("Messages", a.messages, b.messages)}
      ${number("Tokens", tokensOf(a.team.usage), tokensOf(b.team.usage), short)}
      ${number("Cost", micro(a), micro(b), money)}
      ${number("Waited for a person", a.waiting.length, b.waiting.length)}
    </tbody></table>
    ${members.length > 0 && html`<h3>Members</h3><ul class="changes">${members.map(([name, was, is]) => html`<li><${Name} of=${name} doc=${b} /> ${was ? html`<${State} of=${was} />` : html`<span class="dim">joined</span>`} → <${State} of=${is} /></li>`)}</ul>`}
    ${tasks.length > 0 && html`<h3>Tasks <span class="n">${tasks.length}</span></h3><${Rows} name="changes" all=${tasks} keyOf=${([was, is]) => (is || was).id} guess=${32} scroller=".view" each=${([was, is], i) => html`<li key=${(is || was).id} data-i=${i}>${is ? html`<button class="link" onClick=${() => go({ task: is.id })}><span class="id">${called(is)}</span> ${is.subject}</button>` : html`<span class="id">${called(was)}</span> ${was.subject}`}
      ${was ? html`<${State} of=${was.state} />` : html`<span class="dim">added</span>`} → ${is ? html`<${State} of=${is.state} />` : html`<span class="dim">removed</span>`}
      ${is && is.owner !== (was && was.owner) && is.owner && html`<${Name} of=${is.owner} doc=${b} />`}</li>`} />`}`;
}
