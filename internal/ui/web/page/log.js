// The history as a table, the newest record first.
import { html, clock, cx, useEffect, useMemo, useState, when } from "./core.js";
import { app, changed, failed, go } from "./store.js";
import { Empty, Name } from "./parts.js";
import { Find, Wrong, useFilter } from "./find.js";
import { Lines, upTo } from "./lines.js";
import { match } from "./filter.js";
import { Rows } from "./rows.js";

const groups = [["", "everything"], ["task", "tasks"], ["member", "members"], ["message", "messages"], ["note", "notes"], ["permission", "permissions"], ["plan", "plans"], ["usage", "usage"]];

// useLines reads the history, beginning with the record that is shown.
function useLines(v) {
  const { team } = v;
  team.lines ||= new Lines(team.source.log);
  useEffect(() => {
    const here = () => app.team === team && app.where.tab === "history";
    team.lines.fill(() => (here() ? app.where.seq || team.last : 0), () => team.last, changed).catch(failed);
  }, [team, v.doc.seq, team.last]);
  return team.lines.before(v.doc.seq);
}

// itemOf returns what a filter sees of a line: who did it, and the members and the task that it names.
function itemOf(l, doc) {
  const t = doc.tasks[l.task];
  const named = doc.order.filter((m) => m === l.actor || (l.text.includes(m) && l.text.split(/[^\w-]+/).includes(m)));
  return { team: doc.team.name, number: l.task || "", name: (t && t.name) || "", members: named, states: [l.kind], words: [l.text, l.actor, l.kind] };
}

export function Log({ v }) {
  const { doc, team } = v;
  const { lines, from } = useLines(v);
  const { terms, wrong } = useFilter();
  const [who, only] = useState("");
  const [kind, about] = useState("");
  const some = useMemo(() => {
    if (!who && !kind && !terms.length) return lines;
    const byWho = who ? [{ key: "m", value: who.toLowerCase(), whole: true, not: false }] : [];
    return lines.filter((l) => (!kind || l.kind.startsWith(kind)) && (!(who || terms.length) || match([...terms, ...byWho], itemOf(l, team.doc))));
  }, [lines, who, kind, terms, team.doc.order]);
  const shown = useMemo(() => some.slice(upTo(some, doc.seq)), [some, doc.seq]);
  const known = team.lines.known(doc.seq);
  return html`<section class="log" aria-label="History">
    <div class="line head filters"><${Find} what="Narrow the history" placeholder="m:ann  #12  words" wrong=${wrong} />
      <label><span class="sr">Member</span><select value=${who} onChange=${(e) => only(e.target.value)}><option value="">all members</option>${doc.order.map((m) => html`<option value=${m}>${m}</option>`)}</select></label>
      <label><span class="sr">Kind</span><select value=${kind} onChange=${(e) => about(e.target.value)}>${groups.map(([k, name]) => html`<option value=${k}>${name}</option>`)}</select></label>
      <span class="dim" role="status">${shown.length === 1 ? "1 line" : shown.length + " lines"} of records ${Math.min(doc.seq, from + 1)} to ${doc.seq}${from > 0 && ", reading the earlier ones …"}</span></div>
    <${Wrong} text=${wrong} />
    <div class="table" tabindex="0" role="region" aria-label="The records"><table aria-rowcount=${shown.length + 1}>
      <thead><tr aria-rowindex="1"><th scope="col" class="num">Record</th><th scope="col" class="at">Time</th><th scope="col" class="narrow">By</th><th scope="col">What happened</th></tr></thead>
      <${Rows} table all=${shown} keyOf=${(l) => l.key} guess=${30} scroller=".table" each=${(l, i) => html`<tr key=${l.key} data-i=${i} aria-rowindex=${i + 2} class=${cx(l.seq === app.where.seq && "chosen")}>
        <td class="num"><button class="link" title="show the team after this record" onClick=${() => go({ seq: l.seq })}>${l.seq}</button></td>
        <td class="dim at" title=${when(l.at)}>${clock(l.at)}</td><td class="narrow"><${Name} of=${l.actor} doc=${doc} /></td><td class="what">${l.text}</td></tr>`} />
    </table></div>
    ${!shown.length && html`<${Empty}>${known && !from ? "No record matches." : "Reading …"}</${Empty}>`}
  </section>`;
}
