// What members did over time, and what it cost: in the columns of the server, which are those of the screen.
import { html, clock, cx, money, short, span, useEffect, useRef, useState, useWidth, when } from "./core.js";
import { app, go, failed } from "./store.js";
import { Empty, Name } from "./parts.js";

const kinds = [
  ["working", "works"], ["tool", "runs a tool"], ["person", "waits for a person"], ["limit", "tries again later"],
  ["dependency", "waits for other tasks"], ["idle", "is idle"], ["starting", "has no session"], ["quiet", "long time without work"],
];

const marks = { failure: ["✗", "failed"], plan: ["◆", "submitted a plan"], retry: ["↺", "was tried again"] };

// useLanes reads the lanes again when the team has changed, or another time is shown. While a slider moves, it
// asks for the newest moment as soon as it has the one before.
function useLanes(v, from, to, columns) {
  const [lanes, set] = useState(null);
  const ask = useRef({});
  const end = v.past ? v.doc.at : 0;
  const until = () => (to ? (end ? Math.min(to, end) : to) : end || (app.source.live && !over(v) ? Date.now() : 0));
  useEffect(() => () => (ask.current.gone = true), []);
  useEffect(() => {
    if (!columns) return;
    const is = ask.current;
    is.next = () => v.team.source.lanes(from, until(), columns, v.past ? v.doc.seq : 0);
    if (is.busy) return;
    is.busy = true;
    (async () => {
      while (is.next && !is.gone) {
        const { next } = is;
        is.next = null;
        try {
          const got = await next();
          if (!is.gone) set(got);
        } catch (err) {
          failed(err);
        }
      }
      is.busy = false;
    })();
  }, [v.team, v.doc.seq, from, to, columns]);
  return lanes;
}

const over = (v) => ["complete", "aborted"].includes(v.doc.team.status);

// column returns where a time stands, in columns.
function column(edges, at) {
  let [a, b] = [0, edges.length - 1];
  while (b - a > 1) {
    const m = (a + b) >> 1;
    if (edges[m] <= at) a = m;
    else b = m;
  }
  const length = edges[a + 1] - edges[a];
  return a + (length > 0 ? Math.min(1, Math.max(0, (at - edges[a]) / length)) : 0);
}

export function Timeline({ v }) {
  const box = useRef(null);
  const width = useWidth(box);
  const [zoom, set] = useState([0, 0]);
  const [drag, pull] = useState(null);
  const lanes = useLanes(v, zoom[0], zoom[1], Math.min(1200, Math.round(width / 2)));
  const draw = () => {
    if (!lanes) return html`<p class="dim pad">Reading the history …</p>`;
    const { edges } = lanes;
    const columns = edges.length - 1;
    const quiet = new Set(lanes.quiet);
    const place = (at) => (100 * column(edges, at)) / columns;
    const timeAt = (share) => {
      const x = Math.min(columns - 1, Math.max(0, Math.floor(share * columns)));
      return edges[x];
    };
    const share = (e) => {
      const r = e.currentTarget.getBoundingClientRect();
      return Math.min(1, Math.max(0, (e.clientX - r.left) / r.width));
    };
    const down = (e) => {
      if (e.target.closest("button") || e.button) return;
      e.currentTarget.setPointerCapture(e.pointerId);
      pull([share(e), share(e)]);
    };
    const move = (e) => drag && pull([drag[0], share(e)]);
    const up = () => {
      if (!drag) return;
      const [a, b] = [Math.min(...drag), Math.max(...drag)];
      pull(null);
      if (b - a > 0.01) set([timeAt(a), timeAt(b)]);
    };
    const seen = lanes.rows.filter((r) => v.doc.members[r.member]);
    const ticks = Math.max(2, Math.min(10, Math.floor(width / 110)));
    const step = (by) => {
      const [a, b] = [edges[0], edges[columns]];
      const length = b - a;
      if (by === 0) set([0, 0]);
      else if (by === "in") set([a + length / 4, b - length / 4].map(Math.round));
      else set([Math.max(lanes.first, a + by * length), b + by * length].map(Math.round));
    };
    return html`
      <div class="line head"><p class="dim">${when(edges[0])} – ${when(edges[columns])}, ${span(edges[columns] - edges[0])}. Drag to select a time.</p><span class="grow" />
        <span class="buttons" role="group" aria-label="The time that is shown"><button onClick=${() => step(-0.5)} disabled=${edges[0] <= lanes.first}>Earlier</button>
        <button onClick=${() => step("in")}>Zoom in</button><button onClick=${() => step(0.5)} disabled=${!zoom[1]}>Later</button>
        <button onClick=${() => step(0)} disabled=${!zoom[0] && !zoom[1]}>Everything</button></span></div>
      <div class="lanes">
        <div class="lane axis" aria-hidden="true"><span class="name" /><span class="track">${Array.from({ length: ticks }, (_, i) => html`<span class="tick" style=${{ left: (100 * i) / ticks + "%" }}>${clock(edges[Math.floor((i * columns) / ticks)], edges[columns] - edges[0] < 600_000)}</span>`)}</span></div>
        ${seen.map((r) => {
          let x = 0;
          return html`<div class="lane" key=${r.member}>
            <span class="name"><button class="link" onClick=${() => go({ member: r.member, task: "" })}><${Name} of=${r.member} doc=${v.doc} /></button></span>
            <span class="track" role="img" aria-label=${spoken(r)} onPointerDown=${down} onPointerMove=${move} onPointerUp=${up}>
              ${r.runs.map((one) => {
                const begin = x;
                x += one.n;
                return html`<i class=${cx("run", one.kind)} style=${{ flexGrow: one.n }} title=${`${name(one.kind)}, ${clock(edges[begin])} – ${clock(edges[x])}`} />`;
              })}
              ${lanes.quiet.map((q) => html`<i class="gap" style=${{ left: (100 * q) / columns + "%", width: Math.max(0.6, 100 / columns) + "%" }} title=${`${span(edges[q + 1] - edges[q])} without work`} />`)}
            </span>
            <span class="signs">${r.marks.filter((m) => m.at >= edges[0] && m.at <= edges[columns] && m.seq <= v.doc.seq).map((m) => html`<button class=${cx("sign", m.kind)} style=${{ left: place(m.at) + "%" }} onClick=${() => go({ seq: m.seq })}
              title=${`${marks[m.kind][1]} at ${clock(m.at)}; go there`} aria-label=${`${r.member} ${marks[m.kind][1]} at ${clock(m.at)}: go to record ${m.seq}`}>${marks[m.kind][0]}</button>`)}</span>
          </div>`;
        })}
        ${drag && html`<div class="chosen-time"><i style=${{ left: 100 * Math.min(...drag) + "%", width: 100 * Math.abs(drag[1] - drag[0]) + "%" }} /></div>`}
      </div>
      <p class="legend">${kinds.map(([kind, text]) => html`<span><i class=${kind === "quiet" ? "gap" : cx("run", kind)} />${text}</span>`)}
        ${Object.entries(marks).map(([kind, [sign, text]]) => html`<span><b class=${cx("sign", kind)}>${sign}</b>${text}</span>`)}</p>
      ${lanes.gaps > 0 && html`<p class="why">Part of the history is lost to damage.</p>`}`;
  };
  return html`<section class="timeline" ref=${box} aria-label="What happened when">${draw()}</section>`;
}

const name = (kind) => (kinds.find(([k]) => k === kind) || [0, kind])[1];

// spoken says a lane in words: the share of each kind.
function spoken(r) {
  const sum = {};
  let all = 0;
  for (const one of r.runs) {
    if (one.kind === "absent" || one.kind === "ended") continue;
    sum[one.kind] = (sum[one.kind] || 0) + one.n;
    all += one.n;
  }
  return `${r.member}: ${Object.entries(sum).sort((a, b) => b[1] - a[1]).map(([kind, n]) => `${name(kind)} ${Math.round((100 * n) / all)} %`).join(", ") || "nothing yet"}`;
}

export function Costs({ v }) {
  const box = useRef(null);
  const width = useWidth(box);
  const lanes = useLanes(v, 0, 0, Math.min(300, Math.round(width / 3)));
  const [unit, choose] = useState("");
  const draw = () => {
    if (!lanes) return html`<p class="dim pad">Reading the history …</p>`;
    if (!lanes.costs.length) return html`<${Empty}>No agent has reported what it used.</${Empty}>`;
    const of = unit || (lanes.money ? "microUsd" : "tokens");
    const text = of === "tokens" ? short : money;
    const all = lanes.costs[0][of];
    const columns = all.length;
    const members = lanes.costs.slice(1);
    // each member's area stands on those before it
    let under = new Array(columns).fill(0);
    const top = Math.max(1, ...members.reduce((sum, m) => sum.map((s, i) => s + m[of][i]), under), ...all);
    const H = 200;
    const y = (n) => H - (H * n) / top;
    const areas = members.map((m) => {
      const over = under.map((n, i) => n + m[of][i]);
      const up = over.map((n, i) => `${i} ${y(n).toFixed(1)}`);
      const down = under.map((n, i) => `${i} ${y(n).toFixed(1)}`).reverse();
      under = over;
      return [m.member, `M${up.join("L")}L${down.join("L")}Z`];
    });
    const sum = (m, unit) => m[unit][columns - 1];
    const most = Math.max(1, ...members.map((m) => sum(m, of)));
    const budget = v.doc.budget.find((b) => b.what === (of === "tokens" ? "tokens" : "cost"));
    return html`
      <div class="line head"><p class="figure"><b>${text(sum(lanes.costs[0], of))}</b> <span class="dim">${of === "tokens" ? "tokens" : ""} up to ${when(lanes.edges[columns])}${budget ? `, ${Math.round((100 * budget.used) / budget.limit)}% of the budget of ${text(budget.limit)}` : ""}</span></p><span class="grow" />
        ${lanes.money && html`<span class="buttons" role="group" aria-label="Unit"><button aria-pressed=${of === "microUsd"} onClick=${() => choose("microUsd")}>Dollars</button><button aria-pressed=${of === "tokens"} onClick=${() => choose("tokens")}>Tokens</button></span>`}</div>
      <div class="chart" role="img" aria-label=${members.map((m) => `${m.member} ${text(sum(m, of))}`).join(", ")}>
        <svg viewBox=${`0 0 ${Math.max(1, columns - 1)} ${H}`} preserveAspectRatio="none">
          ${[0.25, 0.5, 0.75].map((f) => html`<line x1="0" x2=${columns} y1=${H * f} y2=${H * f} class="grid" />`)}
          ${areas.map(([who, d]) => html`<path key=${who} d=${d} class="area" style=${{ "--c": `var(--m${Math.max(0, v.doc.order.indexOf(who)) % 8})` }} />`)}
        </svg>
        ${[1, 0.75, 0.5, 0.25].map((f) => html`<span class="scale" style=${{ top: 100 * (1 - f) + "%" }} aria-hidden="true">${text(top * f)}</span>`)}
      </div>
      <div class="chart-axis" aria-hidden="true">${[0, 1, 2, 3].map((i) => html`<span>${clock(lanes.edges[Math.floor((i * columns) / 4)])}</span>`)}<span>${clock(lanes.edges[columns])}</span></div>
      <div class="table"><table><thead><tr><th scope="col">Member</th><th scope="col" class="wide">Share</th><th scope="col" class="num">Tokens</th>${lanes.money && html`<th scope="col" class="num">Cost</th>`}</tr></thead>
      <tbody>${members.map((m) => html`<tr key=${m.member}><td><button class="link" onClick=${() => go({ member: m.member, task: "" })}><${Name} of=${m.member} doc=${v.doc} /></button></td>
        <td class="wide"><span class="share"><i style=${{ width: (100 * sum(m, of)) / most + "%", "--c": `var(--m${Math.max(0, v.doc.order.indexOf(m.member)) % 8})` }} /></span></td>
        <td class="num">${short(sum(m, "tokens"))}</td>${lanes.money && html`<td class="num">${money(sum(m, "microUsd"))}</td>`}</tr>`)}
        <tr class="total"><td>all</td><td class="wide" /><td class="num">${short(sum(lanes.costs[0], "tokens"))}</td>${lanes.money && html`<td class="num">${money(sum(lanes.costs[0], "microUsd"))}</td>`}</tr></tbody></table></div>`;
  };
  return html`<section class="costs" ref=${box} aria-label="What was used">${draw()}</section>`;
}
