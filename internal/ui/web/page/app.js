// The page: which view is shown, what lies above all views, and the keys.
import { html, render, Icon, cx } from "./core.js";
import { Live, Still } from "./source.js";
import { app, start, go, onChange, dismiss, shown, open, waits } from "./store.js";
import { Teams } from "./teams.js";
import { Team, tabs, toTab } from "./team.js";
import { step, leap } from "./past.js";
import { Dialog } from "./dialog.js";
import { search } from "./search.js";

function Page() {
  if (!app.source) return null;
  const view = app.login ? html`<${Login} />` : app.where.team ? html`<${Team} />` : html`<${Teams} />`;
  return html`${view}
    <div class="notes" role="status" aria-live="polite">
      ${app.said.map((one) => html`<p class=${cx("note", one.bad && "bad")}>${one.text}<button class="plain" aria-label="Close"
        onClick=${() => dismiss(one)}><${Icon} name="cross" /></button></p>`)}
    </div>
    ${app.dialog && html`<${Opened} key=${app.opened} draw=${app.dialog} />`}`;
}

// Opened is a dialog. Its key is its own, so that no dialog takes over the element of one that is closed.
const Opened = ({ draw }) => draw();

const Login = () => html`<main class="login">
  <h1>cadre</h1>
  <p>This browser is not logged in, or the server was restarted since.</p>
  <p>On the machine of the server, run:</p>
  <pre>cadre board</pre>
</main>`;

const help = [
  ["1 … 7", "board, graph, timeline, messages, costs, history, notes"],
  ["[ and ]", "one record back, one forward"],
  ["{ and }", "the previous or next failure, wait or commit"],
  ["0", "return to the present"],
  ["a", "go to what waits for you"],
  ["S", "search what members wrote"],
  ["/", "narrow the list: m:ann s:blocked #12 words, - for anything but"],
  ["← ↑ ↓ →", "move among the tasks; Home, End, Page up and Page down go far"],
  ["Esc", "close what is open, or go back to all teams"],
  ["?", "show these keys"],
];

const showHelp = () => open(() => html`<${Dialog} title="Keys"><table class="keys"><tbody>
  ${help.map(([k, does]) => html`<tr><th scope="row"><kbd>${k}</kbd></th><td>${does}</td></tr>`)}</tbody></table></${Dialog}>`);

const keys = {
  "[": () => step(-1), "]": () => step(1), "{": () => leap(-1), "}": () => leap(1), 0: () => go({ seq: 0 }),
  a: () => {
    const first = document.querySelector(".wait button, .wait a");
    if (first) first.focus();
  },
  "/": () => {
    const find = document.querySelector("input[type=search]");
    if (find) find.focus();
  },
  S: search,
  "?": showHelp,
  Escape: () => {
    const w = app.where;
    if (w.task || w.member) go({ task: "", member: "" });
    else if (w.with) go({ with: 0 });
    else if (w.team && app.source.live) go({ team: "" });
  },
};
tabs.forEach((t, i) => (keys[i + 1] = () => go(toTab(t.id))));

function onKey(e) {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  if (app.dialog) {
    if (e.key === "Escape" && !document.querySelector("dialog[open]")) open(null); // it is not drawn yet
    return;
  }
  const types = e.target.closest("input, textarea, select");
  if (types) {
    if (e.key === "Escape") e.target.blur();
    return;
  }
  const does = keys[e.key];
  const inTeam = !["?", "a", "/", "S"].includes(e.key);
  if (!does || (inTeam && !app.where.team)) return;
  e.preventDefault();
  does();
}

document.addEventListener("keydown", onKey);
const draw = () => render(html`<${Page} />`, document.getElementById("board"));
onChange(draw);
const data = document.getElementById("data");
start(data ? new Still(await unpacked(data.textContent)) : new Live());

// unpacked returns the data of an exported file: JSON, compressed, in base64.
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}
