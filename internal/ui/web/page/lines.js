// The history of a team in words, as far as it was read.

const size = 1000; // records that are read at a time

// Lines reads the lines of records {seq, at, actor, kind, text} in blocks, the ones that are looked at first.
export class Lines {
  // read reads the lines of the records after one record, up to another one.
  constructor(read) {
    this.read = read;
    this.blocks = new Map(); // by their number: {lines, through}
    this.version = 0;
    this.found = { top: -1, version: -1, lines: [], from: 0 };
    this.reading = false;
  }

  // before returns the lines up to the block of record seq, the newest first, down to where they are known without
  // a gap: {lines, from}, from being the record before the first one.
  before(seq) {
    const top = blockOf(seq);
    if (this.found.top === top && this.found.version === this.version) return this.found;
    let b = top;
    const parts = [];
    for (; this.blocks.has(b); b--) parts.push(this.blocks.get(b).lines.toReversed());
    this.found = { top, version: this.version, lines: parts.flat(), from: (b + 1) * size };
    return this.found;
  }

  // known reports whether the lines of record seq are known.
  known(seq) {
    const is = this.blocks.get(blockOf(seq));
    return !!is && is.through >= seq;
  }

  // fill reads until everything is known: first the block of the record that at returns, then the ones before it. It
  // ends when at returns 0. told is called after each block.
  async fill(at, last, told) {
    if (this.reading) return;
    this.reading = true;
    try {
      for (let b = this.next(at(), last()); b >= 0; b = this.next(at(), last())) {
        await this.load(b, Math.min(last(), (b + 1) * size));
        told();
      }
    } finally {
      this.reading = false;
    }
  }

  // next returns the block to read next; -1 for none.
  next(seq, last) {
    if (!seq) return -1;
    const lacks = (b) => {
      const is = this.blocks.get(b);
      return !is || is.through < Math.min(last, (b + 1) * size);
    };
    const top = blockOf(seq);
    for (let b = top; b >= 0; b--) if (lacks(b)) return b;
    for (let b = top + 1; b <= blockOf(last); b++) if (lacks(b)) return b;
    return -1;
  }

  async load(b, end) {
    const is = this.blocks.get(b) || { lines: [], through: b * size };
    const found = await this.read(is.through, end);
    found.forEach((l, i) => (l.key = `${l.seq}.${i}`));
    this.blocks.set(b, { lines: is.lines.concat(found), through: end });
    this.version++;
  }
}

const blockOf = (seq) => Math.max(0, Math.floor((seq - 1) / size));

// upTo returns the index of the first line that is not after record seq; lines begin with the newest.
export function upTo(lines, seq) {
  let a = 0;
  let b = lines.length;
  while (a < b) {
    const m = (a + b) >> 1;
    if (lines[m].seq > seq) a = m + 1;
    else b = m;
  }
  return a;
}
