// What was changed for a task.
import { html, cx, count, useEffect, useState } from "./core.js";
import { gather } from "./store.js";

// filesOf splits a patch, as git writes it, into its files.
export function filesOf(patch) {
  const files = [];
  let file = null;
  for (const line of patch.split("\n")) {
    if (line.startsWith("diff --git ")) {
      file = { name: line.slice(11).replace(/^a\/(.*) b\/\1$/, "$1"), lines: [], plus: 0, minus: 0 };
      files.push(file);
      continue;
    }
    if (!file) continue;
    if (/^(index |--- |\+\+\+ |old mode|new mode|similarity|rename )/.test(line) && !file.lines.length) {
      if (line.startsWith("rename to ")) file.name = line.slice(10);
      continue;
    }
    const kind = line[0] === "+" ? "plus" : line[0] === "-" ? "minus" : line.startsWith("@@") ? "hunk" : "";
    if (kind === "plus") file.plus++;
    if (kind === "minus") file.minus++;
    file.lines.push([kind, line]);
  }
  return files;
}

const mostLines = 400;
const longestWait = 16_000; // in milliseconds

// readerOf returns what reads the changes of a task, with one request at a time. Work is recorded soon after its task is
// completed, so a request that fails is sent again a few times.
function readerOf(team, task, set, fail) {
  let gone = false;
  let timer = 0;
  let wait = 0;
  const ask = gather(async () => {
    if (gone) return;
    try {
      const is = await team.source.diff(task);
      if (gone) return;
      set(is);
      fail("");
    } catch (err) {
      if (gone) return;
      fail(err.message);
      wait *= 2;
      clearTimeout(timer);
      if (wait <= longestWait) timer = setTimeout(ask, wait);
    }
  }, 0);
  return {
    read: () => {
      clearTimeout(timer);
      wait = 500;
      ask();
    },
    stop: () => {
      gone = true;
      clearTimeout(timer);
    },
  };
}

export function Diff({ team, task }) {
  const [is, set] = useState(null);
  const [why, fail] = useState("");
  const t = team.doc.tasks[task] || {};
  const [reader] = useState(() => readerOf(team, task, set, fail)); // one, whose requests follow one another
  useEffect(() => reader.read(), [t.state, t.attempts, t.completedAt]);
  useEffect(() => reader.stop, []);
  if (why) return html`<p class="dim">${why}</p>`;
  if (!is) return html`<p class="dim">Reading …</p>`;
  const files = filesOf(is.patch);
  return html`<div class="diff">
    <p class="dim">${is.working ? "In the worktree now" : "As it was recorded"}: ${count(files.length, "file")}. Likely secrets are replaced.</p>
    ${files.map((f) => html`<details open=${files.length < 8}><summary><span class="file">${f.name}</span>
      <span class="plus">+${f.plus}</span> <span class="minus">−${f.minus}</span></summary>
      <pre tabindex="0" aria-label=${"changes of " + f.name}>${f.lines.slice(0, mostLines).map(([kind, text]) => html`<span class=${cx("l", kind)}>${text + "\n"}</span>`)}${f.lines.length > mostLines && `… ${f.lines.length - mostLines} more lines`}</pre></details>`)}
    ${is.leftOut && html`<p class="dim">Left out: ${is.leftOut.join(", ")}</p>`}
  </div>`;
}
