// What waits for a person, and the answers to it. The list, its order and its count are the server's.
import { html, Age, Icon, cx, useEffect, useState } from "./core.js";
import { app, act, go, may, failed } from "./store.js";
import { ask } from "./dialog.js";
import { Face } from "./parts.js";

export function Waits({ items, v }) {
  return html`<ul class="waits">${items.map((i) => html`<${Wait} key=${i.team + "/" + i.key} i=${i} v=${v} />`)}</ul>`;
}

const enc = encodeURIComponent;

const titles = {
  permission: "asks to use a tool", plan: "submits a plan", question: "asks you", task_failed: "failed", failed: "failed",
};

function Wait({ i, v }) {
  const mine = i.waitsFor === "user";
  const doc = v && v.doc;
  const task = doc && i.task ? doc.tasks[i.task] : null;
  const answers = answersTo(i, v);
  const open = () => go({ team: i.team, task: i.task || "", member: i.task ? "" : i.member || "" });
  return html`<li class=${cx("wait", i.kind, !mine && "others")}>
    <div class="head">
      ${doc && i.member ? html`<${Face} of=${i.member} doc=${doc} small />` : html`<${Icon} name="wait" />`}
      <p class="text">${!doc && html`<b class="of">${i.team}</b> `}${i.text}${!mine && html` <span class="dim">(${i.waitsFor} handles it)</span>`}</p>
      <span class="dim age">${i.deadline && i.deadline > Date.now() ? html`<${Age} at=${i.deadline} left />` : html`<${Age} at=${i.since} now=${v && v.at} />`}</span>
    </div>
    ${(i.kind === "permission" || i.kind === "plan") && html`<${Detail} i=${i} doc=${doc} />`}
    ${task && i.kind === "task_failed" && task.result && html`<pre class="detail">${lastLines(task.result, 8)}</pre>`}
    <div class="answers">
      ${answers}
      ${(i.task || i.member || !doc) && html`<button class="quiet" onClick=${open}>${i.task ? "Open task" : i.member ? "Open member" : "Open team"}</button>`}
      ${!answers && i.command && html`<code class="command">${i.command}</code>`}
    </div>
  </li>`;
}

export const lastLines = (text, most) => text.trimEnd().split("\n").slice(-most).join("\n");

// readable returns the input of a tool as text: its main field, and then the rest.
export function readable(tool, input) {
  let fields;
  try {
    fields = JSON.parse(input);
  } catch {
    return input;
  }
  if (typeof fields !== "object" || fields === null || Array.isArray(fields)) return input;
  const out = [];
  const take = (name, mark) => {
    if (typeof fields[name] !== "string" || !fields[name]) return;
    out.push(fields[name].split("\n").map((l) => mark + l).join("\n"));
    delete fields[name];
  };
  for (const name of ["command", "file_path", "notebook_path", "url"]) take(name, "");
  take("old_string", "- ");
  for (const name of ["new_string", "new_source", "content"]) take(name, "+ ");
  for (const name in fields) {
    const value = fields[name];
    out.push(`${name}: ${typeof value === "string" ? value : JSON.stringify(value, null, 2)}`);
  }
  return out.join("\n");
}

// Detail shows the whole request or plan. Outside of an open team it is fetched.
function Detail({ i, doc }) {
  const [text, set] = useState("");
  const [tool, name] = useState("");
  const member = doc && doc.members[i.member];
  const here = doc && (i.kind === "plan" ? member && member.plan && member.plan.text : doc.requests[i.request]);
  useEffect(() => {
    if (doc) return undefined;
    let gone = false;
    app.source.detail(i).then((d) => {
      if (gone || !d) return;
      name(d.tool || "");
      set(d.plan || readable(d.tool, d.input));
    }, failed);
    return () => (gone = true);
  }, [i.request]);
  const shown = doc ? (i.kind === "plan" ? here : here && readable(here.tool, here.input)) : text;
  const of = doc && here && i.kind === "permission" ? here.tool : tool;
  if (!shown) return null;
  return html`<div class="detail-of">${of && html`<span class="tool">${of}</span>`}<pre class="detail" tabindex="0" aria-label="the whole request">${shown}</pre></div>`;
}

function answersTo(i, v) {
  if ((v && v.past) || !app.source.live) return null;
  const ref = i.team;
  if (i.kind === "permission") {
    const path = `/permissions/${enc(i.request)}/answer`;
    const deny = () => ask({
      title: `Deny ${i.member}`, does: "Deny", danger: true,
      fields: [{ name: "reason", label: "Reason, for the member", kind: "long" }],
      onDo: (f) => act(ref, "POST", path, { allow: false, reason: f.reason }, `${i.member} may not do it.`),
    });
    return html`
      <button class="main" disabled=${!may("answer")} onClick=${() => act(ref, "POST", path, { allow: true }, `${i.member} may do it.`)}>Allow once</button>
      <button disabled=${!may("admin")} title="Allow the same always, by the narrowest rule"
        onClick=${() => act(ref, "POST", path, { allow: true, always: true }, (a) => `${i.member} may always do it${a.rule ? ": " + a.rule : "."}`)}>Always</button>
      <button disabled=${!may("answer")} onClick=${deny}>Deny …</button>`;
  }
  if (i.kind === "plan") {
    const path = `/plans/${enc(i.request)}/answer`;
    const reject = () => ask({
      title: `Reject the plan of ${i.member}`, does: "Reject", danger: true,
      fields: [{ name: "feedback", label: "What it lacks", kind: "long", needed: true }],
      onDo: (f) => act(ref, "POST", path, { approved: false, feedback: f.feedback }, `The plan of ${i.member} is rejected.`),
    });
    return html`
      <button class="main" disabled=${!may("answer")} onClick=${() => act(ref, "POST", path, { approved: true }, `The plan of ${i.member} is approved.`)}>Approve</button>
      <button disabled=${!may("answer")} onClick=${reject}>Reject …</button>`;
  }
  if (i.kind === "question" || i.kind === "held") {
    const reply = () => ask({
      title: `Answer ${i.member}`, about: i.text, does: "Send",
      fields: [{ name: "body", label: "Message", kind: "long", needed: true }],
      onDo: (f) => act(ref, "POST", "/messages", { to: i.member, body: f.body, answers: i.kind === "question" ? Number((i.about || "").slice(1)) || undefined : undefined }, `${i.member} has your answer.`),
    });
    return html`<button class="main" disabled=${!may("answer")} onClick=${reply}>${i.kind === "held" ? "Write …" : "Answer …"}</button>`;
  }
  if (i.kind === "task_failed") {
    return html`<button class="main" disabled=${!may("steer")} onClick=${() => act(ref, "POST", `/tasks/${enc(i.task)}/release`, {}, "The task is back in the queue.")}><${Icon} name="retry" />Retry</button>
      ${v && html`<button disabled=${!may("steer")} onClick=${() => reassign(v, i.task)}>Reassign …</button>`}`;
  }
  if (i.kind === "rate_limit") {
    return html`<button class="main" disabled=${!may("steer")} title="Although its provider named a later time"
      onClick=${() => act(ref, "POST", `/members/${enc(i.hint.member)}/lift`, {}, "The model is tried again now.")}><${Icon} name="retry" />Try again now</button>`;
  }
  if (i.kind === "dormant" || i.kind === "unhosted" || i.kind === "lead_lost") {
    return html`<button class="main" disabled=${!may("steer")} onClick=${() => act(ref, "POST", "/resume", {}, "The server runs the team from now on.")}>Resume</button>`;
  }
  return null;
}

export function reassign(v, task) {
  const t = v.doc.tasks[task];
  const members = v.doc.order.filter((name) => name !== t.owner && !["stopped", "failed"].includes(v.doc.members[name].status));
  ask({
    title: `Give ${t.name || "#" + t.id} to another member`, about: t.subject, does: "Reassign",
    fields: [{ name: "to", label: "Member", kind: "choice", choices: members, value: members[0], needed: true },
      { name: "force", label: "Take it although its owner works on it", kind: "check" }],
    onDo: (f) => act(v.team.ref, "POST", `/tasks/${enc(task)}/reassign`, { to: f.to, force: f.force || undefined }, `${f.to} has the task.`),
  });
}
