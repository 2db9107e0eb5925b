// The states of a team: one state, and then merge patches that the server's reducer made.

const object = (v) => v !== null && typeof v === "object" && !Array.isArray(v);

// project returns the state after the patches (RFC 7396). What no patch changes is shared with the state
// before, so that equal parts are the same object.
export function project(state, patches) {
  const own = new WeakSet();
  const merge = (of, patch) => {
    if (!object(patch)) return patch;
    let out = of;
    if (!object(of)) {
      out = {};
      own.add(out);
    } else if (!own.has(of)) {
      out = { ...of };
      own.add(out);
    }
    for (const key in patch) {
      if (patch[key] === null) delete out[key];
      else out[key] = merge(out[key], patch[key]);
    }
    return out;
  };
  let out = state;
  for (const patch of patches) out = merge(out, patch);
  return out;
}

const spacing = 32; // patches between two states that are kept

// Reel holds states that follow each other at a distance of some records: the first one, and a patch to
// each further one.
class Reel {
  constructor(begin, every, base) {
    this.begin = begin;
    this.every = every;
    this.patches = [];
    this.keys = new Map([[0, base]]); // some of the states, by the patches before them
    this.last = [0, base]; // the state that was shown last
    this.through = 0; // the last record when there were no more states
  }

  get end() {
    return this.begin + this.every * this.patches.length;
  }

  // before returns the last state up to record seq, which must be one of the reel's.
  before(seq) {
    const n = Math.floor((Math.min(seq, this.end) - this.begin) / this.every);
    let near = n - (n % spacing);
    while (!this.keys.has(near)) near -= spacing;
    let state = this.keys.get(near);
    if (this.last[0] > near && this.last[0] <= n) [near, state] = this.last;
    while (near < n) {
      const to = Math.min(n, near - (near % spacing) + spacing);
      state = project(state, this.patches.slice(near, to));
      near = to;
      if (near % spacing === 0) this.keys.set(near, state);
    }
    this.last = [n, state];
    return state;
  }
}

const chunk = 256; // records that are fetched at a time
const most = 320; // states of the overview
const part = 64; // states of the overview that are fetched at a time

// Film holds the states of a team as far as they were fetched: of some chunks of the history the state
// after each record, and of all of it an overview. While a slider moves, the overview has a state near
// enough; where the slider rests, the chunk has the very one.
export class Film {
  // load fetches the states after a record, up to another one, one for every so many records:
  // {base, patches, last}, with base only if it is asked for.
  constructor(load) {
    this.load = load;
    this.chunks = new Map(); // by the records before them: a Reel or a promise
    this.far = null; // the overview, a Reel
  }

  // at returns the state after record seq, or null if it must be fetched first.
  at(seq) {
    const is = this.chunks.get(startOf(seq));
    if (is && !is.then && is.end >= seq) return is.before(seq);
    const far = this.far;
    return far && far.end >= seq && (seq - far.begin) % far.every === 0 && seq > 0 ? far.before(seq) : null;
  }

  // near returns the state after record seq, or one that is at most the overview's distance before it;
  // null if neither is known.
  near(seq) {
    const exact = this.at(seq);
    if (exact || !this.far || seq < this.far.every || seq >= this.far.end + this.far.every) return exact;
    return this.far.before(seq);
  }

  // fetch makes sure that the state after record seq is there.
  async fetch(seq) {
    if (this.at(seq)) return undefined;
    const begin = startOf(seq);
    const is = this.chunks.get(begin);
    if (is && is.then) return is;
    const got = this.fill(begin, is);
    this.chunks.set(begin, got);
    try {
      this.chunks.set(begin, await got);
    } catch (err) {
      if (is) this.chunks.set(begin, is);
      else this.chunks.delete(begin);
      throw err;
    }
    return undefined;
  }

  // all fetches all states up to the last record.
  async all(last) {
    for (let seq = 1; seq < last; seq += chunk) await this.fetch(seq);
    await this.fetch(last);
  }

  async fill(begin, is) {
    const base = is ? null : begin > 0 ? this.at(begin) : {};
    const from = is ? is.end : begin;
    const got = await this.load(from, begin + chunk, 1, !is && !base);
    const reel = is || new Reel(begin, 1, base || got.base);
    reel.patches = reel.patches.concat(got.patches);
    return reel;
  }

  // overview fetches the overview of a history with that last record. told is called after each part.
  async overview(last, told) {
    let every = 1;
    while (last / every > most) every *= 2;
    if (!this.far || this.far.every < every) this.far = new Reel(0, every, {});
    const far = this.far;
    while (far.through !== last && far.end + far.every <= last) {
      const to = far.end + part * far.every;
      const got = await this.load(far.end, to, far.every, false);
      far.patches = far.patches.concat(got.patches);
      if (far.end < to) far.through = last; // the end, or damage
      told();
    }
  }
}

// startOf returns the record before the chunk of record seq.
const startOf = (seq) => Math.floor((seq - 1) / chunk) * chunk;
