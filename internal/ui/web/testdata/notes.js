// Makes the texts of notes from their changes, and compares them with those of the program.
import { textAfter } from "./page/source.js";
import { readFileSync } from "node:fs";

const { changes, texts } = JSON.parse(readFileSync("data.json"));
for (const [key, all] of Object.entries(texts)) {
  for (const [seq, text] of Object.entries(all)) {
    const is = textAfter(changes[key], Number(seq));
    if (is !== text) throw new Error(`${key} after change ${seq} is ${JSON.stringify(is)}, not ${JSON.stringify(text)}`);
  }
}
console.log("the same");
