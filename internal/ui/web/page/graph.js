// Which task blocks which: at most 200 tasks around the selected one.
import { html, called, count, cx, useEffect, useMemo, useState } from "./core.js";
import { app, go } from "./store.js";
import { layout, size } from "./layout.js";
import { Empty, Name, toneOf } from "./parts.js";

const most = 200;

// pick returns the tasks of the graph: those nearest to the selected one along the edges; without one, those
// that are not completed first.
export function pick(tasks, chosen) {
  const all = Object.values(tasks);
  if (all.length <= most) return all;
  const begin = chosen && tasks[chosen] ? [tasks[chosen]] : [];
  const rank = { in_progress: 0, failed: 1, verifying: 2, blocked: 3, pending: 4, skipped: 5, completed: 5 };
  const seen = new Set(begin.map((t) => t.id));
  const out = [...begin];
  const near = (from) => {
    for (let i = from; i < out.length && out.length < most; i++) {
      for (const id of [...(out[i].blockedBy || []), ...(out[i].blocks || [])]) {
        if (tasks[id] && !seen.has(id) && out.length < most) {
          seen.add(id);
          out.push(tasks[id]);
        }
      }
    }
  };
  near(0);
  for (const t of all.sort((a, b) => rank[a.state] - rank[b.state] || Number(b.id) - Number(a.id))) {
    if (out.length >= most) break;
    if (seen.has(t.id)) continue;
    seen.add(t.id);
    out.push(t);
    near(out.length - 1);
  }
  return out;
}

let worker = null;
let asked = 0;

// place lays out the nodes in a worker; in an exported file, which can have none, here.
function place(nodes) {
  if (!app.source.live) return Promise.resolve(layout(nodes));
  worker ||= new Worker("/assets/worker.js", { type: "module" });
  const id = ++asked;
  return new Promise((done) => {
    const hear = (e) => {
      if (e.data.id !== id) return;
      worker.removeEventListener("message", hear);
      done(e.data.graph);
    };
    worker.addEventListener("message", hear);
    worker.postMessage({ id, nodes });
  });
}

export function Graph({ v }) {
  const tasks = v.doc.tasks;
  const some = useMemo(() => pick(tasks, app.where.task), [tasks, Object.keys(tasks).length > most ? app.where.task : ""]);
  const shape = some.map((t) => `${t.id}:${(t.blockedBy || []).join()}`).join(";");
  const [graph, set] = useState(null);
  useEffect(() => {
    let gone = false;
    place(some.map((t) => ({ id: t.id, from: t.blockedBy || [] }))).then((g) => gone || set(g));
    return () => (gone = true);
  }, [shape]);
  const total = Object.keys(tasks).length;
  if (!total) return html`<${Empty}>The team has no tasks.</${Empty}>`;
  if (!graph) return html`<p class="dim pad">Drawing …</p>`;
  const chosen = tasks[app.where.task];
  const near = new Set(chosen ? [chosen.id, ...(chosen.blockedBy || []), ...(chosen.blocks || [])] : []);
  const { width, height } = size;
  const curve = ([a, b]) => {
    const [x1, y1] = [graph.at[a][0] + width, graph.at[a][1] + height / 2];
    const [x2, y2] = [graph.at[b][0], graph.at[b][1] + height / 2];
    const bend = Math.max(24, (x2 - x1) / 2);
    return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2 - 5} ${y2}`;
  };
  return html`<section class="graph" aria-label="Which task blocks which">
    ${total > some.length && html`<p class="dim">${some.length} of ${count(total, "task")}${chosen ? ` around ${called(chosen)}` : ""}. Select a task to see those around it.</p>`}
    <div class="canvas" style=${{ width: graph.width + "px", height: graph.height + "px" }}>
      <svg width=${graph.width} height=${graph.height} aria-hidden="true">
        <defs><marker id="arrow" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 1L7 4L0 7z" /></marker></defs>
        ${graph.edges.map((e) => tasks[e[0]] && tasks[e[1]] && html`<path key=${e.join()} class=${cx("edge", tasks[e[0]].state === "completed" && "done", chosen && near.has(e[0]) && near.has(e[1]) && e.includes(chosen.id) && "near")} d=${curve(e)} marker-end="url(#arrow)" />`)}
      </svg>
      ${some.map((t) => graph.at[t.id] && html`<button key=${t.id} class=${cx("node", t.state, t.id === app.where.task && "chosen", chosen && !near.has(t.id) && "far")}
        style=${{ left: graph.at[t.id][0] + "px", top: graph.at[t.id][1] + "px", width: width + "px", height: height + "px" }}
        aria-pressed=${t.id === app.where.task} onClick=${() => go({ task: t.id === app.where.task ? "" : t.id, member: "" })}>
        <span class="row"><span class=${cx("mark", toneOf(t.state))} /><span class="id">${called(t)}</span><span class="grow" />${t.owner && html`<${Name} of=${t.owner} doc=${v.doc} />`}</span>
        <span class="subject">${t.subject}</span></button>`)}
    </div>
    <p class="legend">${["pending", "blocked", "in_progress", "verifying", "completed", "skipped", "failed"].map((s) => html`<span><span class=${cx("mark", toneOf(s))} />${s.replace("_", " ")}</span>`)}</p>
  </section>`;
}
