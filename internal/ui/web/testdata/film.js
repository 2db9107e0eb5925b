// Moves through a history, and compares each state with the one that the reducer has.
import { Film, project } from "./page/film.js";
import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

const { patches, states, far } = JSON.parse(readFileSync("data.json"));
let asked = 0;
const load = async (after, to, every, whole) => {
  asked++;
  const steps = every === 1 ? patches.slice(after, to) : far.slice(after / every, to / every);
  return { base: whole ? project({}, patches.slice(0, after)) : undefined, patches: steps };
};
const same = (a, b, what) => {
  if (!isDeepStrictEqual(a, b)) throw new Error(what);
};
const seqs = Object.keys(states).map(Number);
for (const overview of [false, true]) {
  const film = new Film(load);
  if (overview) await film.overview(patches.length, () => {});
  asked = 0;
  const chunks = new Set();
  for (const seq of [...seqs.toReversed(), ...seqs]) {
    const near = film.near(seq);
    if (overview && !(near.seq <= seq && near.seq > seq - 8)) throw new Error(`record ${near.seq} is shown for ${seq}`);
    if (near) same(near, project({}, patches.slice(0, near.seq)), `near record ${seq}`);
    if (!film.at(seq)) {
      chunks.add(Math.floor((seq - 1) / 256));
      await film.fetch(seq);
    }
    same(film.at(seq), states[seq], `record ${seq}`);
  }
  if (asked !== chunks.size) throw new Error(`${asked} requests for ${chunks.size} chunks`);
}
const short = new Film(load);
await short.overview(1_600, () => {});
if (short.near(2_100) || short.near(2_040).seq !== 2_040) throw new Error("a state far from its record is shown");
console.log("the same");
