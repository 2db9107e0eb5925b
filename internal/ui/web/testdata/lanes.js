// Compares the columns that the page makes for an exported team with those that the server has.
import { lanesOf } from "./page/lanes.js";
import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

const { lanes, views } = JSON.parse(readFileSync("data.json"));
const wrong = [];
for (const { from, to, columns, seq, want } of views) {
  const got = lanesOf(lanes, from, to, columns, seq);
  for (const key of Object.keys({ ...want, ...got })) {
    if (isDeepStrictEqual(got[key], want[key])) continue;
    wrong.push(`${key} from ${from} to ${to} in ${columns} columns after record ${seq}:\n${JSON.stringify(got[key])}\nnot\n${JSON.stringify(want[key])}`);
  }
}
console.log(wrong.slice(0, 5).join("\n") || "the same");
