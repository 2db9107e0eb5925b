// What every other module needs: the view library, and texts for people.
import { html, render, useState, useEffect, useLayoutEffect, useRef, useMemo, Component } from "./vendor/htm-preact.js";

import { called, workerOf } from "./task.js";

export { html, render, useState, useEffect, useLayoutEffect, useRef, useMemo, Component, called, workerOf };

export const cx = (...names) => names.filter(Boolean).join(" ");

// count returns a number with its noun, as in "3 tasks".
export const count = (n, one, many) => `${n} ${n === 1 ? one : many || one + "s"}`;

// age returns milliseconds in a few characters.
export function age(ms) {
  const s = Math.max(0, ms) / 1000;
  if (s < 60) return `${Math.floor(s)}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m`;
  if (s < 48 * 3600) return `${Math.floor(s / 3600)}h`;
  return `${Math.floor(s / 86400)}d`;
}

// span returns a duration, as in "4m 20s".
export function span(ms) {
  const s = Math.round(Math.max(0, ms) / 1000);
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m ${s % 60}s`;
  return `${Math.floor(s / 3600)}h ${Math.floor((s % 3600) / 60)}m`;
}

const two = (n) => String(n).padStart(2, "0");

export function clock(at, seconds = true) {
  const d = new Date(at);
  return `${two(d.getHours())}:${two(d.getMinutes())}${seconds ? ":" + two(d.getSeconds()) : ""}`;
}

// when returns a time; with its date, if that is not the day of now.
export function when(at, now = Date.now()) {
  const d = new Date(at);
  const day = d.toDateString() === new Date(now).toDateString() ? "" : `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} `;
  return day + clock(at);
}

export const tokensOf = (u) =>
  u ? (u.inputTokens || 0) + (u.outputTokens || 0) + (u.cacheReadTokens || 0) + (u.cacheWriteTokens || 0) : 0;

export function short(n) {
  if (n < 1000) return String(n);
  if (n < 10_000) return (n / 1000).toFixed(1) + "k";
  if (n < 1_000_000) return Math.round(n / 1000) + "k";
  return (n / 1_000_000).toFixed(1) + "M";
}

export const money = (micro) => "$" + (micro / 1e6).toFixed(2);

// used returns what was used, as in "12k tokens · $0.31"; "" for nothing.
export function used(u) {
  const n = tokensOf(u);
  const parts = [];
  if (n) parts.push(`${short(n)} tokens`);
  if (u && u.costMicroUSD) parts.push(money(u.costMicroUSD));
  return parts.join(" · ");
}

// state returns the words of a state.
export const words = (state) => String(state || "").replaceAll("_", " ");

// The ages on the page, each with a function that draws it again and the time from which it counts. They are looked
// at now and then while the page is visible, and those are drawn whose text has changed.
const ages = new Set();
const pace = { young: 5_000, old: 20_000 };
let timer = 0;

const ageOf = (one) => age(one.left ? one.at - Date.now() : Date.now() - one.at);

function keepTime() {
  clearTimeout(timer);
  timer = 0;
  if (!ages.size || document.visibilityState !== "visible") return;
  const young = [...ages].some((one) => Math.abs(Date.now() - one.at) < 60_000);
  timer = setTimeout(() => {
    for (const one of ages) if (ageOf(one) !== one.text) one.draw((n) => n + 1);
    keepTime();
  }, young ? pace.young : pace.old);
}
document.addEventListener("visibilitychange", () => {
  for (const one of ages) one.draw((n) => n + 1);
  keepTime();
});

// Age shows how long ago something was: before now, if that is given, and else before the present.
export function Age({ at, now, left }) {
  const [, draw] = useState(0);
  const text = age(left ? at - Date.now() : (now || Date.now()) - at);
  const is = useRef({});
  Object.assign(is.current, { at, left, text, draw });
  useEffect(() => {
    if (now || !at) return undefined;
    const one = is.current;
    ages.add(one);
    if (!timer || Date.now() - at < 60_000) keepTime();
    return () => ages.delete(one);
  }, [!now, at]);
  if (!at) return null;
  return html`<time dateTime=${new Date(at).toISOString()} title=${when(at)}>${left ? text + " left" : text}</time>`;
}

// Memo draws what draw returns, and again only when something in by is another value.
export class Memo extends Component {
  shouldComponentUpdate(next) {
    return next.by.length !== this.props.by.length || next.by.some((v, i) => v !== this.props.by[i]);
  }
  render({ draw }) {
    return draw();
  }
}

// icons are drawn with lines, in the color of the text.
const icons = {
  check: "M4 12.5l5 5L20 6.5", cross: "M6 6l12 12M18 6L6 18", back: "M15 5l-7 7 7 7", next: "M9 5l7 7-7 7",
  first: "M17 5l-7 7 7 7M7 5v14", last: "M7 5l7 7-7 7M17 5v14", menu: "M5 12h.01M12 12h.01M19 12h.01",
  send: "M5 12h14M13 6l6 6-6 6", clock: "M12 7v5l3 2M12 3a9 9 0 100 18 9 9 0 000-18z",
  retry: "M20 11a8 8 0 10-2.3 6.3M20 5v6h-6", wait: "M12 8v5M12 16.5v.01M12 3a9 9 0 100 18 9 9 0 000-18z",
  branch: "M6 4v12M6 16a3 3 0 100 4 3 3 0 000-4zM18 4a3 3 0 100 4 3 3 0 000-4zM18 8c0 6-12 4-12 8",
  mail: "M4 6h16v12H4zM4 7l8 6 8-6", search: "M11 4a7 7 0 100 14 7 7 0 000-14zM16.5 16.5L21 21", people: "M9 11a3.5 3.5 0 100-7 3.5 3.5 0 000 7zM3 20c0-4 2.5-6 6-6s6 2 6 6M16 4.5a3.5 3.5 0 010 6.5M18 14.5c2 .8 3 2.700 3 5.500",
};

export const Icon = ({ name, label }) => html`<svg class="icon" viewBox="0 0 24 24" role=${label ? "img" : null}
  aria-label=${label || null} aria-hidden=${label ? null : "true"} focusable="false"><path d=${icons[name]} /></svg>`;

// useWidth returns the width of an element, which ref is set to.
export function useWidth(ref) {
  const [width, set] = useState(0);
  useLayoutEffect(() => {
    if (!ref.current) return undefined;
    const look = new ResizeObserver((all) => set(Math.round(all[0].contentRect.width)));
    look.observe(ref.current);
    return () => look.disconnect();
  }, []);
  return width;
}
