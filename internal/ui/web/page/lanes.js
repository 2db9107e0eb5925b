// The lanes of an exported team in columns, as package timeline and package costs make them for the server.

const kinds = ["absent", "starting", "working", "tool", "person", "limit", "dependency", "idle", "ended"];
const [work, wait] = [2, 7]; // what is worth a look is between these
const long = 120_000; // how long a time without work must be to be compressed, in milliseconds
const mostMarks = 500; // of a lane: closer ones cannot be told apart

// first returns the index of the first item for which is holds; the items that it holds for are at the end.
function first(items, is) {
  let [a, b] = [0, items.length];
  while (a < b) {
    const m = (a + b) >> 1;
    if (is(items[m])) b = m;
    else a = m + 1;
  }
  return a;
}

// timesOf returns the times of the records: the first one, and then the one after each record.
function timesOf(all) {
  let at = 0;
  return all.map((more) => (at += more));
}

// past returns the lanes as they were after record seq.
function past(all, seq) {
  all.at ||= timesOf(all.times);
  const last = all.at[seq - 1];
  const ended = first(all.quiet, ([, end]) => end > last);
  const since = ended < all.quiet.length ? all.quiet[ended][0] : all.since;
  const until = (items, of) => items.slice(0, first(items, (one) => of(one) > seq));
  return {
    began: all.at[0],
    last,
    seq,
    quiet: all.quiet.slice(0, ended),
    since: seq === all.at.length || (since >= 0 && since < last) ? since : -1,
    rows: all.rows.filter((r) => r.joined <= seq).map((r) => ({
      member: r.member,
      starts: until(r.starts, ([, of]) => of),
      marks: until(r.marks, (m) => m.seq),
    })),
    costs: all.costs.map((c) => ({ member: c.member, sums: until(c.sums, ([, of]) => of) })).filter((c) => c.sums.length),
  };
}

// Scale maps columns to times. All compressed times have the same width.
class Scale {
  constructor(is, from, to, columns) {
    Object.assign(this, { from, to, columns, quiet: [], places: [], room: 0, length: to - from });
    const all = is.since >= 0 && to - Math.max(is.since, from) >= long && is.rows.length ? [...is.quiet, [is.since, to]] : is.quiet;
    const quiet = all.filter(([begin, end]) => end > from && begin < to).map(([begin, end]) => [Math.max(begin, from), Math.min(end, to)]);
    const n = quiet.length;
    const active = quiet.reduce((left, [begin, end]) => left - (end - begin), this.length);
    if (!n || active < columns) return; // no member worked, for example because all are external
    this.quiet = quiet;
    this.room = Math.max(1, Math.floor(4 * n <= columns ? active / (columns - n) : Math.floor(active / 3) / n));
    this.length = active + this.room * n;
    let before = 0;
    this.places = quiet.map(([begin, end], i) => { // where each begins, in the unit of length
      const at = begin - from - before + this.room * i;
      before += end - begin;
      return at;
    });
  }

  // at returns the time at a column, and whether it is compressed; half adds half a column.
  at(column, half) {
    if (column === this.columns) return [this.to, false];
    const p = Math.floor((this.length * (2 * column + half)) / (2 * this.columns));
    const i = first(this.places, (place) => place > p) - 1;
    if (i < 0) return [this.from + p, false];
    const [begin, end] = this.quiet[i];
    const gone = p - this.places[i];
    if (gone < this.room) return [begin + Math.floor(((end - begin) * gone) / this.room), true];
    return [end + gone - this.room, false];
  }
}

// kindOf returns the kind that stands for the times of each kind: the longest, but what is worth a look where it takes
// a quarter.
function kindOf(sums) {
  const look = sums.slice(work, wait);
  const rest = [...sums.slice(0, work), ...sums.slice(wait)];
  const best = Math.max(...look);
  const most = Math.max(...rest);
  const all = sums.reduce((a, b) => a + b);
  if (best > 0 && (best > most || 4 * best >= all)) return work + look.indexOf(best);
  return sums.indexOf(most);
}

// runsOf returns the columns of a lane, those of the same kind together.
function runsOf(starts, edges, quiet, scale) {
  const at = (time) => first(starts, ([begin]) => begin > time) - 1; // the span at a time; -1 for none
  const kindAt = (time) => (at(time) < 0 ? 0 : kinds.indexOf(starts[at(time)][2]));
  const runs = [];
  for (let i = 0; i < quiet.length; i++) {
    const [begin, end] = [edges[i], edges[i + 1]];
    let kind;
    if (quiet[i]) kind = kindAt(scale.at(i, 1)[0]);
    else if (end <= begin) kind = kindAt(begin);
    else {
      const sums = kinds.map(() => 0);
      let from = begin;
      for (let s = at(begin); from < end; s++) {
        const to = s + 1 < starts.length ? Math.min(end, starts[s + 1][0]) : end;
        if (to > from) sums[s < 0 ? 0 : kinds.indexOf(starts[s][2])] += to - from;
        from = Math.max(from, to);
      }
      kind = kindOf(sums);
    }
    const last = runs.at(-1);
    if (last && last.kind === kinds[kind]) last.n++;
    else runs.push({ n: 1, kind: kinds[kind] });
  }
  return runs;
}

// sumsOf returns what was used up to the end of each column.
function sumsOf(sums, edges) {
  const [tokens, microUsd] = [[], []];
  for (let i = 1; i < edges.length; i++) {
    const end = edges[i] + (i === edges.length - 1 ? 1 : 0);
    const [, , t, m] = sums[first(sums, ([at]) => at >= end) - 1] || [0, 0, 0, 0];
    tokens.push(t);
    microUsd.push(m);
  }
  return { tokens, microUsd };
}

// lanesOf returns the lanes between two times, in so many columns, as they were after record seq; 0 for the first and
// the last time, and for the last record.
export function lanesOf(all, from, to, columns, seq) {
  const is = past(all, Math.min(seq || Infinity, all.times.length));
  columns = Math.max(1, columns);
  const begin = from || is.began;
  const scale = new Scale(is, begin, Math.max(to || is.last, begin + 1), columns);
  const edges = Array.from({ length: columns + 1 }, (_, i) => scale.at(i, 0)[0]);
  const quiet = Array.from({ length: columns }, (_, i) => scale.at(i, 1)[1]);
  const used = is.costs.length ? is.costs[0].sums.at(-1) : [0, 0, 0, 0];
  return {
    edges,
    quiet: quiet.flatMap((q, i) => (q ? [i] : [])),
    rows: is.rows.map((r) => ({
      member: r.member,
      runs: runsOf(r.starts, edges, quiet, scale),
      marks: r.marks.filter((m) => m.at >= edges[0] && m.at <= edges[columns]).slice(0, mostMarks),
    })),
    costs: used[2] || used[3] ? is.costs.map((c) => ({ member: c.member, ...sumsOf(c.sums, edges) })) : [],
    gaps: 0,
    first: is.began,
    last: is.last,
    money: used[3] > 0,
    seq: is.seq,
  };
}
