// An open team: its heading, its tabs, the panel of what is selected, and the slider.
import { html, Icon, cx, useEffect, used, when } from "./core.js";
import { app, go, shown, waits } from "./store.js";
import { Waits } from "./waits.js";
import { Bar, State, TeamLink } from "./parts.js";
import { Kanban, TaskPanel, byState } from "./tasks.js";
import { Members, MemberPanel } from "./members.js";
import { Graph } from "./graph.js";
import { Timeline, Costs } from "./timeline.js";
import { Talk } from "./talk.js";
import { Log } from "./log.js";
import { Notes } from "./notes.js";
import { SearchButton } from "./search.js";
import { Slider, Since, Compare } from "./past.js";
import { TeamMenu } from "./steer.js";
import { Broken } from "./teams.js";

export const tabs = [
  { id: "board", name: "Board" }, { id: "graph", name: "Graph" }, { id: "timeline", name: "Timeline" },
  { id: "messages", name: "Messages" }, { id: "costs", name: "Costs" }, { id: "history", name: "History" },
  { id: "notes", name: "Notes" },
];

export function Team() {
  const v = shown();
  const team = app.team;
  if (!v) {
    return html`<${Top} /><main class="pad">${team && team.problem ? html`<p>${team.problem}</p>` : html`<p class="dim">Reading …</p>`}</main>`;
  }
  const tab = tabs.find((t) => t.id === app.where.tab) || tabs[0];
  const items = waits(v);
  const panel = app.where.task && v.doc.tasks[app.where.task] ? html`<${TaskPanel} v=${v} id=${app.where.task} />`
    : app.where.member && v.doc.members[app.where.member] ? html`<${MemberPanel} v=${v} name=${app.where.member} />` : null;
  return html`<${Top} v=${v} items=${items} />
    <${Tabs} tab=${tab} v=${v} />
    ${v.past && html`<p class="past" role="status"><${Icon} name="clock" /><span>The team as it was at <b>${when(v.doc.at)}</b>, after record ${v.doc.seq}. It cannot be changed from here.</span>
      <button onClick=${() => go({ seq: 0 })}>Back to the present</button></p>`}
    <div class=${cx("room", panel && "split")}>
      <main class=${cx("view", "in-" + tab.id)}>
        ${!v.past && html`<${Since} v=${v} />`}
        ${tab.id === "board" && !app.where.with && items.length > 0 && html`<section class="block attention" aria-labelledby="waits">
          <h2 id="waits" class=${cx(items.some((i) => i.waitsFor === "user") && "hot")}>${v.past ? "Waited for you" : "Waits for you"} <span class="n">${items.filter((i) => i.waitsFor === "user").length}</span></h2>
          <${Waits} items=${items} v=${v} /></section>`}
        ${app.where.with > 0 ? html`<${Compare} v=${v} />` : html`<${View} tab=${tab.id} v=${v} />`}
      </main>
      ${panel}
    </div>
    <${Slider} v=${v} />`;
}

function Tabs({ tab, v }) {
  useEffect(() => { // on a narrow page they scroll
    const chosen = document.querySelector(".tabs [aria-current]");
    if (chosen) chosen.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [tab.id]);
  return html`<nav class="tabs" aria-label="Views">${tabs.map((t) => html`<a href=${address(toTab(t.id))}
      aria-current=${t === tab ? "page" : null} onClick=${(e) => follow(e, toTab(t.id))}>${t.name}${number(t.id, v.doc) > 0 && html` <span class="n">${number(t.id, v.doc)}</span>`}</a>`)}</nav>`;
}

// number returns how many things the view has, for its tab; 0 to show none.
const number = (id, doc) => (id === "messages" ? doc.messages : id === "notes" ? Object.keys(doc.notes).length : 0);

// toTab changes the address to another view. A filter is for the list that it narrows.
export const toTab = (id) => ({ tab: id === "board" ? "" : id, find: "" });

// address returns the address with some fields changed; follow goes there without loading the page again.
const address = (to) => {
  const query = new URLSearchParams();
  for (const [k, value] of Object.entries({ ...app.where, ...to })) if (value) query.set(k, value);
  return "#" + query;
};

function follow(e, to) {
  if (e.metaKey || e.ctrlKey || e.shiftKey) return;
  e.preventDefault();
  go(to);
}

function View({ tab, v }) {
  switch (tab) {
    case "graph": return html`<${Graph} v=${v} />`;
    case "timeline": return html`<${Timeline} v=${v} />`;
    case "messages": return html`<${Talk} v=${v} />`;
    case "costs": return html`<${Costs} v=${v} />`;
    case "history": return html`<${Log} v=${v} />`;
    case "notes": return html`<${Notes} v=${v} />`;
    default: return html`<div class="board"><${Members} v=${v} /><${Kanban} v=${v} /></div>`;
  }
}

function Top({ v }) {
  const doc = v && v.doc;
  const parts = doc && byState(doc.tasks);
  const all = doc && parts.reduce((n, [, tasks]) => n + tasks.length, 0);
  const done = doc && parts.find(([s]) => s === "completed")[1].length;
  const state = doc && (v.now ? v.now.state : doc.team.status);
  return html`<header class="top">
    <div class="line">
      ${app.source.live && html`<a class="up" href="#" aria-label="All teams" title="All teams" onClick=${(e) => { e.preventDefault(); go({ team: "" }); }}><${Icon} name="back" /></a>`}
      <h1>${doc ? doc.team.name : app.where.team}</h1>
      ${doc && html`<${State} of=${state} />`}
      ${doc && doc.team.parent && html`<span class="chip parent">for <${TeamLink} of=${doc.team.parent.team} name=${doc.team.parent.name} /></span>`}
      ${doc && doc.team.delegate && html`<span class="chip" title="the lead may only coordinate">delegate</span>`}
      ${v && v.now && v.now.needs > 0 && html`<a class="needs" href=${address({ tab: "" })} onClick=${(e) => follow(e, { tab: "" })} title="items that wait for you">${v.now.needs}<span class="sr"> wait for you</span></a>`}
      <${Broken} />
      <span class="grow" />
      ${doc && html`<span class="facts wide"><span>${done}/${all} tasks</span>${used(doc.team.usage) && html`<span>${used(doc.team.usage)}</span>`}
        ${doc.budget.map((b) => html`<span class=${cx(b.used >= 0.8 * b.limit && "hot")}>${Math.round((100 * b.used) / b.limit)}% of the ${b.what} budget</span>`)}</span>`}
      <${SearchButton} />
      ${v && !v.past && app.source.live && html`<${TeamMenu} v=${v} />`}
    </div>
    ${doc && html`<div class="line second">${doc.team.goal && html`<p class="goal">${doc.team.goal}</p>`}
      <${Bar} parts=${["completed", "in_progress", "verifying", "pending", "blocked", "failed"].map((s) => [s, parts.find(([name]) => name === s)[1].length])} all=${all} /></div>`}
  </header>`;
}
