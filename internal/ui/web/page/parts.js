// Small parts that several views have.
import { html, cx, words } from "./core.js";
import { app, go } from "./store.js";

const tones = {
  active: "work", observed: "work", in_progress: "work", spawning: "calm", starting: "calm", idle: "calm", pending: "calm",
  complete: "good", completed: "good", skipped: "off", passed: "good", approved: "good", "ready to be consolidated": "wait", consolidating: "work",
  "winding down": "calm", blocked: "wait", verifying: "wait", interrupted: "wait", dormant: "wait", zombie: "wait", shutting_down: "calm",
  failed: "bad", offline: "bad", aborted: "bad", damaged: "bad", rejected: "bad", stopped: "off", paused: "off", released: "off",
};

export const toneOf = (state) => tones[state] || "calm";

export const State = ({ of }) => html`<span class=${cx("state", toneOf(of))}>${words(of)}</span>`;

// TeamLink leads to another team, by its id. An exported file has no other team.
export const TeamLink = ({ of, name }) => (app.source.live
  ? html`<a href=${"#team=" + encodeURIComponent(of)} onClick=${(e) => { if (e.metaKey || e.ctrlKey || e.shiftKey) return; e.preventDefault(); go({ team: of }); }}>${name}</a>`
  : html`<span>${name}</span>`);

// Bar shows the parts of a whole, such as [["completed", 3], ["pending", 5]].
export function Bar({ parts, all }) {
  const text = parts.filter(([, n]) => n).map(([name, n]) => `${n} ${words(name)}`).join(", ") || "no tasks";
  return html`<span class="bar" role="img" aria-label=${text} title=${text}>
    ${parts.map(([name, n]) => n > 0 && html`<i class=${name} style=${{ flexGrow: n }} />`)}${!all && html`<i class="none" />`}</span>`;
}

// Member shows the name of a member in its color. colors is the order of the team's members.
export function Name({ of, doc, plain }) {
  if (!of) return null;
  const i = doc ? doc.order.indexOf(of) : -1;
  const text = of === "@user" ? "you" : of.startsWith("@host:") ? "host" : of;
  if (i < 0) return html`<span class="who">${text}</span>`;
  return html`<span class=${cx("who", !plain && "dot")} style=${{ "--c": `var(--m${i % 8})` }}>${text}</span>`;
}

export function Face({ of, doc, small }) {
  const i = Math.max(0, doc.order.indexOf(of));
  return html`<span class=${cx("face", small && "small")} style=${{ "--c": `var(--m${i % 8})` }} aria-hidden="true">${of.slice(0, 2)}</span>`;
}

export const Empty = ({ children }) => html`<p class="empty dim">${children}</p>`;
