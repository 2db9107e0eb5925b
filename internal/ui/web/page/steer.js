// What can be done to a team, in the words of the command line.
import { html, Icon, useEffect, useRef, useState } from "./core.js";
import { app, act, may, open, refreshed, say } from "./store.js";
import { Dialog, ask } from "./dialog.js";

export function TeamMenu({ v }) {
  const [shown, show] = useState(false);
  const box = useRef(null);
  useEffect(() => {
    if (!shown) return undefined;
    const out = (e) => {
      if (e.type === "keydown" && e.key === "Escape") {
        e.stopPropagation();
        show(false);
        box.current.querySelector("button").focus();
      } else if (e.type === "pointerdown" && !box.current.contains(e.target)) show(false);
    };
    document.addEventListener("pointerdown", out);
    document.addEventListener("keydown", out, true);
    return () => {
      document.removeEventListener("pointerdown", out);
      document.removeEventListener("keydown", out, true);
    };
  }, [shown]);
  const of = v.doc.team;
  const ref = v.team.ref;
  const ended = ["complete", "aborted"].includes(of.status);
  const actions = [
    ["Write to all members …", "answer", !ended, () => ask({
      title: "Write to all members", does: "Send", fields: [{ name: "body", label: "Message", kind: "long", needed: true }],
      onDo: (f) => act(ref, "POST", "/broadcasts", { body: f.body }, "Sent to all members."),
    })],
    ["Add a member …", "steer", !ended, () => ask({
      title: "Add a member", does: "Spawn",
      fields: [{ name: "name", label: "Name", needed: true }, { name: "agent", label: "Agent", kind: "choice", choices: ["claude", "codex", "gemini", "opencode", "shell", "external"] },
        { name: "role", label: "Role" }, { name: "prompt", label: "Prompt", kind: "long" }, { name: "planApproval", label: "It changes nothing before its plan is approved", kind: "check" }],
      onDo: (f) => act(ref, "POST", "/members", { name: f.name, agent: f.agent, role: f.role || undefined, prompt: f.prompt || undefined, planApproval: f.planApproval || undefined }, `${f.name} has joined.`),
    })],
    [of.delegate ? "Leave delegate mode" : "Delegate: the lead only coordinates", "steer", !ended, () => act(ref, "POST", "/delegate", { on: !of.delegate }, of.delegate ? "The lead may do tasks again." : "The lead only coordinates.")],
    ["Budget …", "steer", !ended, () => ask({
      title: "Budget of the team", about: "0 removes a limit; an empty field leaves it as it is.", does: "Change",
      fields: [{ name: "usd", label: "Dollars", kind: "number", value: of.budget && of.budget.costMicroUSD ? String(of.budget.costMicroUSD / 1e6) : "" },
        { name: "tokens", label: "Tokens", kind: "number", value: of.budget && of.budget.tokens ? String(of.budget.tokens) : "" },
        { name: "minutes", label: "Minutes since the team was created", kind: "number", value: of.budget && of.budget.millis ? String(of.budget.millis / 60_000) : "" }],
      onDo: (f) => {
        const number = (text, unit) => (text.trim() === "" ? undefined : Math.round(Number(text.replace(",", ".")) * unit));
        act(ref, "PATCH", "/budget", { costMicroUSD: number(f.usd, 1e6), tokens: number(f.tokens, 1), millis: number(f.minutes, 60_000) }, "The budget is changed.");
      },
    })],
    ["Checkpoint", "steer", true, () => act(ref, "POST", "/checkpoints", {}, (c) => (c.written ? `The checkpoint is on ${c.place}.` : "Nothing has changed since the last checkpoint."))],
    ["Pause: end all sessions until it is resumed", "steer", !ended, () => act(ref, "POST", "/pause", {}, "The team is paused.")],
    ["Resume on this server", "steer", !ended && !(v.now && v.now.hosted), () => act(ref, "POST", "/resume", {}, "The server runs the team from now on.")],
    ["Wind down: finish the tasks in progress", "steer", of.status === "active", () => act(ref, "POST", "/wind-down", {}, "The team winds down.")],
    ["Consolidate …", "observe", true, () => open(() => html`<${Consolidate} v=${v} />`)],
    ["Abort …", "admin", !ended, () => ask({
      title: `Abort ${of.name}`, about: "All sessions end at once. The record and the work stay.", does: "Abort", danger: true,
      fields: [{ name: "reason", label: "Reason", kind: "text" }],
      onDo: (f) => act(ref, "POST", "/abort", { reason: f.reason || undefined }, "The team is aborted."),
    })],
  ];
  return html`<span class="menu" ref=${box}><button class="plain" aria-haspopup="true" aria-expanded=${shown} aria-label="Actions" title="Actions" onClick=${() => show(!shown)}><${Icon} name="menu" /></button>
    ${shown && html`<ul class="list">${actions.filter((a) => a[2]).map(([name, role, , does]) => html`<li><button disabled=${!may(role)} title=${may(role) ? null : `needs the role ${role}`} onClick=${() => { show(false); does(); }}>${name}</button></li>`)}</ul>`}</span>`;
}

const changes = { A: "added", M: "changed", D: "deleted", T: "changed" };

// about says what happens to a path, where the change comes from, and why it is not simply committed.
const about = (p) => [changes[p.change], (p.from || []).join(", "), p.branch, p.why].filter(Boolean).join(" · ");

// Consolidate shows what would be committed, path by path, and commits what is chosen.
function Consolidate({ v }) {
  const ref = v.team.ref;
  const [plan, set] = useState(null);
  const [out, leave] = useState(new Set());
  const [take, add] = useState(new Set());
  const [message, word] = useState("");
  const [busy, work] = useState("");
  const [why, fail] = useState("");
  useEffect(() => {
    app.source.act("POST", ref, "/consolidation/plan", {}).then(set, (err) => fail(err.message));
  }, []);
  const toggle = (all, put, path) => {
    const next = new Set(all);
    if (!next.delete(path)) next.add(path);
    put(next);
  };
  const of = (...fates) => (plan ? plan.paths.filter((p) => fates.includes(p.fate)) : []);
  const paths = of("commit");
  const others = of("left_out", "unclear");
  const conflicts = of("conflict");
  const begin = async () => {
    work("Checking and committing …");
    fail("");
    const spec = {};
    if (message.trim()) spec.message = message;
    if (out.size) spec.only = paths.filter((p) => !out.has(p.path)).map((p) => p.path);
    if (take.size) spec.include = [...take];
    try {
      const done = await app.source.act("POST", ref, "/consolidation", spec);
      open(null);
      say(done.record && done.record.commit ? `Committed as ${done.record.commit.slice(0, 9)}.` : "The team is complete.");
    } catch (err) {
      work("");
      fail(err.message);
    }
    refreshed();
  };
  const chosen = paths.filter((p) => !out.has(p.path));
  return html`<${Dialog} title=${"Consolidate " + v.doc.team.name} wide>
    ${why && html`<p class="why" role="alert">${why}</p>`}
    ${!plan && !why && html`<p class="dim">Reading what would be committed …</p>`}
    ${plan && html`
      <h3>Is committed <span class="n">${chosen.length}</span></h3>
      ${paths.length ? html`<ul class="paths">${paths.map((p) => html`<li><label class="check"><input type="checkbox" checked=${!out.has(p.path)} onChange=${() => toggle(out, leave, p.path)} />
        <span class="file">${p.path}</span></label> <span class="dim">${about(p)}</span></li>`)}</ul>` : html`<p class="dim">No file is changed.</p>`}
      ${others.length > 0 && html`<h3>Is left out <span class="n">${others.length}</span></h3>
        <ul class="paths">${others.map((p) => html`<li><label class="check"><input type="checkbox" checked=${take.has(p.path)} onChange=${() => toggle(take, add, p.path)} /><span class="file">${p.path}</span></label> <span class="dim">${about(p)}</span></li>`)}</ul>`}
      ${conflicts.length > 0 && html`<h3 class="hot">Does not merge <span class="n">${conflicts.length}</span></h3><ul class="paths">${conflicts.map((p) => html`<li><span class="file">${p.path}</span> <span class="dim">${about(p)}</span></li>`)}</ul>`}
      ${plan.checks.length > 0 && html`<p class="dim">First these checks run: ${plan.checks.join(", ")}.</p>`}
      ${plan.obstacle && html`<p class="why" role="alert">${plan.obstacle}</p>`}
      <div class="field"><label for="commit-message">Message of the commit</label><textarea id="commit-message" rows="3" value=${message} placeholder=${v.doc.team.goal} onInput=${(e) => word(e.target.value)} /></div>`}
    <footer>${busy && html`<span class="dim" role="status">${busy}</span>`}<span class="grow" /><button onClick=${() => open(null)}>Cancel</button>
      <button class="main" disabled=${!plan || !may("admin") || !!busy || !chosen.length} title=${may("admin") ? null : "needs the role admin"} onClick=${begin}>Check and commit</button></footer>
  </${Dialog}>`;
}
