// The search for words in what members wrote: in the open team, or in all teams with the archived runs.
import { html, Icon, count, useRef, useState, when } from "./core.js";
import { app, go, open } from "./store.js";
import { Dialog } from "./dialog.js";

let before = { words: "", all: false, is: null }; // the last search and what it found

export const search = () => app.source.live && open(() => html`<${Search} />`);

export const SearchButton = () => app.source.live && html`<button class="plain" title="Search what members wrote (S)" onClick=${search}><${Icon} name="search" /> Search …</button>`;

function Search() {
  const here = app.where.team;
  const [words, type] = useState(before.words);
  const [all, widen] = useState(before.all || !here);
  const [is, set] = useState(before.here === here ? before.is : null);
  const [busy, work] = useState(false);
  const [wrong, blame] = useState("");
  const asked = useRef(0); // how often; an answer that is overtaken by a later question is not shown
  const find = async (e) => {
    e.preventDefault();
    const turn = ++asked.current;
    work(true);
    let found = null;
    let problem = "";
    try {
      found = await app.source.search(words, all ? "" : here);
    } catch (err) {
      problem = err.message;
    }
    if (turn !== asked.current) return;
    if (found) before = { words, all, here, is: found };
    set(found);
    blame(problem);
    work(false);
  };
  return html`<${Dialog} title="Search" wide>
    <form onSubmit=${find}>
      <div class="row"><label class="find"><${Icon} name="search" /><span class="sr">Words</span>
        <input type="search" id="words" autofocus value=${words} placeholder=${'words  "words that follow each other"'} onInput=${(e) => type(e.target.value)} /></label>
        ${here && html`<label class="check"><input type="checkbox" checked=${all} onChange=${(e) => widen(e.target.checked)} /><span>all teams</span></label>`}
        <button class="main" type="submit" disabled=${busy || !words.trim()}>Search</button></div>
    </form>
    ${wrong && html`<p class="why" role="alert">${wrong}</p>`}
    ${busy ? html`<p class="dim" role="status">Searching …</p>` : is && html`<${Found} is=${is} here=${here} />`}
  </${Dialog}>`;
}

function Found({ is, here }) {
  const says = !is.found.length ? "Nothing was found." : is.more ? `The newest ${is.found.length} texts.` : count(is.found.length, "text") + ".";
  return html`<p class="dim" role="status">${says}${is.problem && ` Not every team was searched: ${is.problem}`}</p>
    <ul class="hits">${is.found.map((f) => html`<li key=${`${f.team} ${f.record} ${f.title}`}><button class="thread" onClick=${() => lead(f)}>
      <span class="row">${f.team !== here && html`<strong>${f.team}</strong>`}<span>${f.title}</span><span class="grow" /><span class="dim">${when(f.at)}</span></span>
      <span class="dim">${f.parts.map((p) => (p.found ? html`<mark>${p.text}</mark>` : p.text))}</span></button></li>`)}</ul>`;
}

// lead goes to what was found: as it is now, or else as it was after the record that has the text.
function lead(f) {
  open(null);
  const doc = app.team && app.team.ref === f.team ? app.team.doc : null;
  const note = doc && doc.notes[f.note];
  const to = {
    task: { task: f.task, tab: "", seq: !doc || doc.tasks[f.task] ? 0 : f.record },
    note: { tab: "notes", open: f.note, seq: note && note.seq === f.seq ? 0 : f.record },
    message: { tab: "messages", open: `#${f.seq}`, seq: 0 },
    report: { tab: "history", seq: f.record },
  };
  go({ team: f.team, task: "", member: "", find: "", with: 0, ...to[f.to] });
}
