// Compares the page's filter with the answers of package filter.
import { match, parse, states, taskItem } from "./page/filter.js";
import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

const { cases, answers, tasks, known } = JSON.parse(readFileSync("data.json"));
const wrong = [];
const same = (got, want, what) => isDeepStrictEqual(got, want) || wrong.push(`${what}: ${JSON.stringify(got)}, not ${JSON.stringify(want)}`);
const selected = (terms) => Object.keys(cases.items).filter((name) => match(terms, cases.items[name])).sort();

same(states, known, "the states");
for (const text in cases.selects) same(selected(parse(text).terms), cases.selects[text], text);
for (const text in cases.mistakes) {
  const { at, wrong: says } = parse(text);
  same({ at, says }, cases.mistakes[text], text);
}
for (const { text, at, says, selects } of answers) {
  const is = parse(text);
  same([Buffer.byteLength(text.slice(0, is.at)), is.wrong], [at, says], text);
  if (!is.wrong) same(selected(is.terms), selects, text);
}
for (const { task, item } of tasks) same(taskItem("core", task), item, `task ${task.id}`);
console.log(wrong.slice(0, 20).join("\n") || "the same");
