// The language in which a person narrows a list: that of package filter, with the same mistakes and the same words
// for them. It is written a second time because an exported file has no server, and because a slider that moves
// narrows a list of 2,000 tasks many times a second. The cases in ../../filter/testdata hold both to one language.
import { workerOf } from "./task.js";

const keys = { m: "m", member: "m", owner: "m", s: "s", status: "s", state: "s", t: "t", team: "t" };
const means = { m: "a member", s: "a state", t: "a team" };
const examples = { m: "m:ann", s: "s:blocked", t: "t:core" };

// states are the states of tasks, members and teams.
export const states = ["aborted", "active", "blocked", "complete", "completed", "consolidating", "damaged", "dormant", "failed",
  "idle", "in_progress", "interrupted", "not observed now", "observed", "paused", "pending", "ready to be consolidated",
  "released", "shutting_down", "skipped", "spawning", "stopped", "verifying", "winding down", "zombie"];

const space = /[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;

// tokens splits the text at spaces outside of quotes.
function tokens(text) {
  const all = [];
  for (let i = 0; i < text.length; ) {
    if (space.test(text[i])) {
      i++;
      continue;
    }
    const t = { at: i, not: false, hash: false, key: "", keyed: false, value: "", quoted: false, unclosed: false };
    if (text[i] === "-") {
      t.not = true;
      i++;
    }
    if (text[i] === "#") {
      t.hash = true;
      i++;
    }
    for (; i < text.length && (t.unclosed || !space.test(text[i])); i++) {
      if (text[i] === '"') {
        t.unclosed = !t.unclosed;
        t.quoted = true;
      } else if (text[i] === ":" && !t.unclosed && !t.quoted && !t.keyed && !t.hash) {
        [t.key, t.keyed, t.value] = [t.value, true, ""];
      } else t.value += text[i];
    }
    all.push(t);
  }
  return all;
}

const selects = (t, name) => {
  const is = name.toLowerCase();
  return is === t.value || (!t.whole && is.startsWith(t.value));
};

// termOf returns the condition that a token stands for, or what is wrong with it.
function termOf(t) {
  const one = { key: "", value: t.value.toLowerCase(), whole: t.quoted, not: t.not };
  if (t.unclosed) return `a quotation mark is missing: write "${t.value}"`;
  if (t.hash && !t.value) return "# needs a number or a name after it, such as #12";
  if (t.hash) return { ...one, key: "#" };
  if (!t.keyed && !t.value) return t.not ? "- needs a term after it, such as -s:completed" : "the quotation marks are empty";
  if (!t.keyed) return one;
  const key = Object.hasOwn(keys, t.key.toLowerCase()) ? keys[t.key.toLowerCase()] : "";
  if (!key) {
    return `"${t.key}" is not a key; the keys are m: (a member), s: (a state) and t: (a team). To look for the text, quote it: ` +
      `"${t.key}:${t.value}"`;
  }
  if (!t.value) return `${t.key}: needs ${means[key]} after it, such as ${examples[key]}`;
  if (key === "s" && !states.some((s) => selects(one, s))) {
    return `no state begins with "${t.value}"; the states are ${states.join(", ")}`;
  }
  return { ...one, key };
}

// parse returns the terms of a filter; and, if it has a mistake, where and which: {terms, at, wrong}.
export function parse(text) {
  const terms = [];
  for (const t of tokens(text)) {
    const one = termOf(t);
    if (typeof one === "string") return { terms: [], at: t.at, wrong: one };
    terms.push(one);
  }
  return { terms, at: 0, wrong: "" };
}

const passes = (t, i) => {
  switch (t.key) {
    case "m": return i.members.some((name) => selects(t, name));
    case "s": return i.states.some((name) => selects(t, name));
    case "t": return selects(t, i.team);
    case "#": return [i.number, i.name].some((name) => !!name && name.toLowerCase() === t.value);
    default: return i.words.some((text) => text.toLowerCase().includes(t.value));
  }
};

// match reports whether the terms select an item: {team, members, states, number, name, words}.
export function match(terms, item) {
  const found = {}; // by key, for keys whose terms are alternatives
  for (const t of terms) {
    const is = passes(t, item);
    if (t.not ? is : !t.key && !is) return false;
    if (!t.not && t.key) found[t.key] = found[t.key] || is;
  }
  return Object.values(found).every(Boolean);
}

// taskItem returns the item for a task of a team.
export const taskItem = (team, t) => ({
  team, number: t.id, name: t.name || "", members: [workerOf(t)].filter(Boolean), states: [t.state, t.status],
  words: [t.subject, t.name || "", team],
});

// teamItem returns the item for a team in the list of all teams, with the members whose items wait.
export const teamItem = (t, members) => ({
  team: t.name, number: "", name: "", members, states: [t.state, t.status || ""], words: [t.name, t.goal || "", t.project || ""],
});
