// All teams, in sections, after everything that waits for a person.
import { html, Age, count, cx, money, short, tokensOf } from "./core.js";
import { app } from "./store.js";
import { Waits } from "./waits.js";
import { Bar, State } from "./parts.js";
import { Find, Wrong, useFilter } from "./find.js";
import { match, teamItem } from "./filter.js";
import { SearchButton } from "./search.js";

const empty = {
  "Needs you": "Nothing waits for you.",
  Working: "No team is running. Start one in a terminal: cadre run FILE",
  Finished: "No team has ended.",
};

export function Teams() {
  const list = app.list;
  const { terms, wrong } = useFilter();
  const waiting = (t) => list.attention.filter((i) => i.team === t.ref && i.member).map((i) => i.member);
  const fits = (t) => !terms.length || match(terms, teamItem(t, waiting(t)));
  return html`<header class="top">
      <h1 class="brand"><img src="/assets/icon.svg" alt="" width="20" height="20" />cadre</h1>
      <${Find} what="Narrow the list" placeholder="Find a team" wrong=${wrong} />
      <${SearchButton} />
      <${Broken} />
    </header>
    <main class="teams">
      <${Wrong} text=${wrong} />
      ${!list && html`<p class="dim pad">Reading …</p>`}
      ${list && list.attention.length > 0 && html`<section class="block" aria-labelledby="waits">
        <h2 id="waits">Waits for you <span class="n">${list.attention.filter((i) => i.waitsFor === "user").length}</span></h2>
        <${Waits} items=${list.attention} teams=${list} /></section>`}
      ${list && list.sections.map((s) => {
        const all = s.teams.filter(fits);
        return html`<section class="block" key=${s.name}>
          <h2 class=${cx(s.name === "Needs you" && all.length > 0 && "hot")}>${s.name} <span class="n">${all.length}</span></h2>
          ${all.length ? html`<ul class="cards">${all.map((t) => html`<${Card} key=${t.ref} t=${t} />`)}</ul>`
            : html`<p class="dim">${terms.length ? "No team of this section matches." : empty[s.name]}</p>`}
        </section>`;
      })}
      ${list && list.problem && html`<p class="dim">${list.problem}</p>`}
    </main>`;
}

function Card({ t }) {
  const n = t.tasks || {};
  const all = (n.pending || 0) + (n.in_progress || 0) + (n.completed || 0);
  return html`<li><a class="card" href=${"#team=" + encodeURIComponent(t.ref)}>
    <span class="row"><strong class="name">${t.name}</strong><${State} of=${t.state} />
      ${t.needs > 0 && html`<span class="needs" title="items that wait for you">${t.needs}</span>`}</span>
    ${t.goal ? html`<span class="goal">${t.goal}</span>` : html`<span class="goal dim">no goal was given</span>`}
    <${Bar} parts=${[["completed", n.completed], ["in_progress", n.in_progress], ["pending", n.pending]]} all=${all} />
    <span class="row facts"><span>${n.completed || 0}/${all} tasks</span>
      ${t.teammates > 0 && html`<span>${count(t.teammates, "member")}</span>`}
      ${tokensOf(t.usage) > 0 && html`<span>${short(tokensOf(t.usage))} tokens</span>`}
      ${t.usage && t.usage.costMicroUSD > 0 && html`<span>${money(t.usage.costMicroUSD)}</span>`}
      <span class="end"><${Age} at=${t.updatedAt} /> ago</span></span>
  </a></li>`;
}

export const Broken = () => app.broken && html`<span class="broken" role="status">${app.broken}</span>`;
