// The notes that a team shares: a list, and of one its text, its versions, and a form to change it.
import { html, Age, clock, count, cx, useEffect, useState, when } from "./core.js";
import { app, act, failed, go, may, refreshed, say } from "./store.js";
import { ask } from "./dialog.js";
import { Empty, Name } from "./parts.js";

const at = (key) => `/notes/${encodeURIComponent(key)}`;

// useText returns the text of a note after one of its changes; null until it is read. A version never changes.
function useText(team, key, seq) {
  const [, drawn] = useState(0);
  const id = `${seq} ${key}`;
  team.texts ||= new Map();
  useEffect(() => {
    if (team.texts.has(id)) return undefined;
    let gone = false;
    team.source.note(key, seq).then((text) => {
      team.texts.set(id, text);
      if (!gone) drawn((n) => n + 1);
    }, (err) => gone || failed(err));
    return () => (gone = true);
  }, [team, id]);
  return team.texts.has(id) ? team.texts.get(id) : null;
}

export function Notes({ v }) {
  const notes = Object.values(v.doc.notes).sort((a, b) => (a.key < b.key ? -1 : 1));
  const latest = notes.reduce((last, n) => (last && last.seq > n.seq ? last : n), null);
  const chosen = v.doc.notes[app.where.open] || latest;
  return html`<section class="talk" aria-label="Notes">
    <div class="threads"><div class="line head"><h2>Notes <span class="n">${notes.length}</span></h2><span class="grow" />
      ${open(v) && html`<button disabled=${!may("steer")} title=${lacks()} onClick=${() => add(v)}>New note …</button>`}</div>
      <ul>${notes.map((n) => html`<li key=${n.key}><button class=${cx("thread", n === chosen && "chosen")} aria-pressed=${n === chosen} onClick=${() => go({ open: n.key }, true)}>
        <span class="row"><strong>${n.key}</strong><span class="grow" /><span class="dim"><${Age} at=${n.updatedAt} now=${v.at} /></span></span>
        <span class="preview dim">${n.begin}</span></button></li>`)}</ul>
      ${!notes.length && html`<${Empty}>No notes. They hold what all members must know: decisions, agreed interfaces, who works where, what was tried and failed.</${Empty}>`}
    </div>
    ${chosen && html`<${Sheet} key=${chosen.key} v=${v} n=${chosen} />`}
  </section>`;
}

// open reports whether the team takes notes: it is shown as it is now, and has not ended.
const open = (v) => app.source.live && !v.past && !["complete", "aborted"].includes(v.doc.team.status);

const lacks = () => (may("steer") ? null : "needs the role steer");

const add = (v) => ask({
  title: "New note", does: "Set", about: "All members see it. They are told with their next messages.",
  fields: [{ name: "key", label: "Key, such as decisions/api", needed: true }, { name: "text", label: "Text", kind: "long", needed: true }],
  onDo: async (f) => {
    if (await act(v.team.ref, "PUT", at(f.key.trim()), { text: f.text, ifSeq: 0 }, "The note is set.")) go({ open: f.key.trim() }, true);
  },
});

// Sheet is one note: its text now or after an earlier change, and what can be done to it.
function Sheet({ v, n }) {
  const [version, look] = useState(0);
  const [edits, edit] = useState(null); // the text and the change that is edited
  const [more, type] = useState("");
  const seq = version && version < n.seq ? version : n.seq;
  const text = useText(v.team, n.key, seq);
  const append = async (e) => {
    e.preventDefault();
    if (more.trim() && (await act(v.team.ref, "POST", at(n.key) + "/append", { text: more }, "Added."))) type("");
  };
  const remove = () => ask({
    title: `Delete the note ${n.key}`, about: "Its versions stay in the history.", does: "Delete", danger: true,
    onDo: () => act(v.team.ref, "DELETE", `${at(n.key)}?ifSeq=${n.seq}`, null, "The note is deleted."),
  });
  if (edits && open(v)) return html`<${Editor} v=${v} n=${n} from=${edits} done=${() => edit(null)} />`;
  return html`<article class="sheet" aria-label=${"Note " + n.key}>
    <h2>${n.key}</h2>
    <p class="row by dim"><span>change ${n.seq}</span><span>·</span><${Name} of=${n.updatedBy} doc=${v.doc} /><span title=${when(n.updatedAt)}>${clock(n.updatedAt)}</span>
      ${n.setAt !== n.updatedAt && html`<span>· set first by</span><${Name} of=${n.setBy} doc=${v.doc} /><span title=${when(n.setAt)}>${clock(n.setAt)}</span>`}<span>· ${count(n.bytes, "byte")}</span></p>
    ${seq !== n.seq && html`<p class="row" role="status"><span>As it was after change ${seq}.</span><button onClick=${() => look(0)}>Show it as it is ${v.past ? "then" : "now"}</button></p>`}
    ${text === null ? html`<p class="dim">Reading …</p>` : html`<div class="long text" tabindex="0" role="region" aria-label="Text">${text}</div>`}
    ${open(v) && html`<p class="row"><button disabled=${!may("steer") || text === null || seq !== n.seq} title=${lacks()} onClick=${() => edit({ text, seq: n.seq })}>Edit</button>
      <button disabled=${!may("steer")} title=${lacks()} onClick=${remove}>Delete …</button></p>
    <form onSubmit=${append}><label class="sr" for="addition">Add to ${n.key}</label>
      <textarea id="addition" rows="2" value=${more} placeholder="Add a line" disabled=${!may("steer")} onInput=${(e) => type(e.target.value)} />
      <p class="row"><button type="submit" disabled=${!may("steer") || !more.trim()}>Add</button></p></form>`}
    <${Versions} v=${v} n=${n} seq=${seq} look=${look} />
  </article>`;
}

// Versions lists the changes of a note up to the moment that is shown.
function Versions({ v, n, seq, look }) {
  const [all, set] = useState(null);
  useEffect(() => {
    let gone = false;
    v.team.source.noteChanges(n.key).then((is) => gone || set(is), (err) => gone || failed(err));
    return () => (gone = true);
  }, [v.team, n.key, v.past ? 0 : n.seq]);
  if (!all) return null;
  const changes = all.filter((c) => c.record <= v.doc.seq).toReversed();
  return html`<div><h3>Versions <span class="n">${changes.length}</span></h3>
    <table class="plain-table"><thead class="sr"><tr><th scope="col">Change</th><th scope="col">Time</th><th scope="col">By</th><th scope="col">How</th></tr></thead>
    <tbody>${changes.map((c) => html`<tr key=${c.seq} class=${cx(c.seq === seq && "chosen")}>
      <td>${c.how === "deleted" ? c.seq : html`<button class="link" aria-label=${"Show change " + c.seq} aria-pressed=${c.seq === seq} onClick=${() => look(c.seq === n.seq ? 0 : c.seq)}>${c.seq}</button>`}</td>
      <td class="dim" title=${when(c.at)}>${clock(c.at)}</td><td><${Name} of=${c.by} doc=${v.doc} /></td><td class="dim">${c.how}, ${count(c.bytes, "byte")}</td></tr>`)}</tbody></table></div>`;
}

// Editor changes the text of a note. If somebody was faster, it shows their text beside what was written here.
function Editor({ v, n, from, done }) {
  const [text, type] = useState(from.text);
  const [seq, seen] = useState(from.seq);
  const [theirs, meet] = useState(null);
  const [busy, work] = useState(false);
  const save = async (e) => {
    e.preventDefault();
    work(true);
    try {
      await app.source.act("PUT", v.team.ref, at(n.key), { text, ifSeq: seq });
      say("The note is set.");
      done();
    } catch (err) {
      work(false);
      if (err.note) {
        meet(err.note);
        seen(err.note.seq);
      } else failed(err);
    }
    refreshed();
  };
  return html`<article class="sheet" aria-label=${"Note " + n.key}>
    <h2>${n.key}</h2>
    ${theirs && html`<p class="why" role="alert"><${Name} of=${theirs.updatedBy} doc=${v.doc} /> changed it meanwhile. This is the note now; take over what is new, then save.</p>
      <div class="long text" tabindex="0" role="region" aria-label="The note now">${theirs.text}</div>`}
    <form onSubmit=${save}><label class="sr" for="note-text">Text of ${n.key}</label>
      <textarea id="note-text" rows="14" value=${text} onInput=${(e) => type(e.target.value)} />
      <p class="row"><button type="button" onClick=${done}>Cancel</button><button class="main" type="submit" disabled=${busy || !text.trim()}>Save</button></p></form>
  </article>`;
}
