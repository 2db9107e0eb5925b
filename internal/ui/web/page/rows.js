// Long lists: only the rows around the window are on the page. The others are empty space of their height.
import { html, Component } from "./core.js";

const few = 60; // so many rows are always on the page
const beyond = 700; // pixels above and below the window whose rows are on the page before they are seen

// Rows is a list. Its props are all, keyOf and each, which draws a row with its index and whether the Tab key
// stops at it; scroller selects the element in which the list scrolls, and gap is the space between rows. A list
// that is even has rows of one height when it is long, and needs to measure only one. A list at its end stays
// there when it grows. A table is the body of one.
export class Rows extends Component {
  constructor(props) {
    super(props);
    this.from = 0; // the rows on the page
    this.to = Math.min(props.all.length, few);
    this.heights = new Map(); // of the rows that were measured, by their keys
    this.sum = 0; // of these heights
    this.tops = null; // where the rows begin, after they were counted for all
    this.active = 0; // the row at which the Tab key stops
    this.focus = -1; // the row to focus after the next drawing
    this.anchor = null; // a row that is seen, and its place in the window
    this.low = !!props.end; // the window is at the end
    this.window = [0, 900]; // where it was when it was looked at: its place in the list, and its height
    this.later = 0;
    this.box = null;
    this.look = () => this.see();
  }

  get short() {
    return this.props.all.length <= few;
  }

  get typical() {
    return this.heights.size ? this.sum / this.heights.size : this.props.guess || 60;
  }

  // top returns where a row begins, in pixels from the beginning of the list.
  top(i) {
    if (this.props.even) return i * this.typical;
    if (!this.tops || this.of !== this.props.all) this.count();
    return this.tops[i];
  }

  count() {
    const { all, keyOf } = this.props;
    const tops = new Float64Array(all.length + 1);
    const typical = this.typical;
    for (let i = 0; i < all.length; i++) tops[i + 1] = tops[i] + (this.heights.get(keyOf(all[i])) || typical);
    this.tops = tops;
    this.of = all;
  }

  // rowAt returns the row at a place in the list.
  rowAt(y) {
    let a = 0;
    let b = this.props.all.length;
    while (a < b) {
      const m = (a + b) >> 1;
      if (this.top(m + 1) <= y) a = m + 1;
      else b = m;
    }
    return a;
  }

  componentDidMount() {
    this.scroller = this.box.closest(this.props.scroller);
    this.scroller.addEventListener("scroll", this.look, { passive: true });
    this.sizes = new ResizeObserver(() => {
      const width = this.box.clientWidth;
      if (width !== this.width) this.forget();
      this.width = width;
      this.see();
    });
    this.sizes.observe(this.scroller);
    this.sizes.observe(this.box);
    this.width = this.box.clientWidth;
    this.componentDidUpdate();
  }

  componentWillUnmount() {
    clearTimeout(this.later);
    this.scroller.removeEventListener("scroll", this.look);
    this.sizes.disconnect();
  }

  // forget makes the list measure its rows again.
  forget() {
    this.heights.clear();
    this.sum = 0;
    this.tops = null;
    this.forceUpdate();
  }

  // space returns the height of the window, and the place in the list at which it begins.
  space() {
    const of = this.scroller.getBoundingClientRect();
    const offset = this.props.table ? this.before.getBoundingClientRect().top : this.box.getBoundingClientRect().top;
    this.window = [of.top - offset, of.height];
    return this.window;
  }

  // see draws other rows if the window comes near to the edge of those on the page.
  see() {
    if (!this.scroller || !this.scroller.clientHeight) return;
    this.low = this.props.end && this.scroller.scrollTop + this.scroller.clientHeight > this.scroller.scrollHeight - 40;
    if (this.short) return;
    const [y, height] = this.space();
    this.hold(y);
    const n = this.props.all.length;
    const near = beyond / 2;
    const above = this.from === 0 || this.top(this.from) <= y - near;
    const below = this.to >= n || this.top(this.to) >= y + height + near;
    if (above && below && this.to <= n) return;
    this.range(y, height);
    const focused = this.box.contains(document.activeElement) && document.activeElement.closest("[data-i]");
    if (focused && (focused.dataset.i < this.from || focused.dataset.i >= this.to)) this.box.focus({ preventScroll: true });
    this.forceUpdate();
  }

  range(y, height) {
    const n = this.props.all.length;
    this.from = Math.min(Math.max(0, n - 1), this.rowAt(y - beyond));
    this.to = Math.min(n, this.rowAt(y + height + beyond) + 1);
  }

  // hold keeps which row is at the top of the window, so that rows above it can change their height.
  hold(y) {
    const { all, keyOf, even, table } = this.props;
    if (even) return;
    const i = this.rowAt(y);
    this.anchor = y > (table ? 8 : 0) && i < all.length ? { key: keyOf(all[i]), i, rest: this.top(i) - y } : null;
  }

  // kept moves the window so that the row that was at its top is there again.
  kept() {
    const { all, keyOf, end } = this.props;
    if (end && this.low) {
      this.scroller.scrollTop = this.scroller.scrollHeight;
      return;
    }
    const a = this.anchor;
    if (!a) return;
    if (!all[a.i] || keyOf(all[a.i]) !== a.key) a.i = all.findIndex((one) => keyOf(one) === a.key);
    if (a.i < 0) return;
    const off = this.top(a.i) - this.space()[0] - a.rest;
    if (Math.abs(off) >= 1) this.scroller.scrollTop += off;
  }

  componentDidUpdate() {
    const { all, keyOf, gap = 0, even, end } = this.props;
    if (this.short) {
      if (end && this.low) this.scroller.scrollTop = this.scroller.scrollHeight;
      this.land();
      return;
    }
    if (even && this.heights.size && this.focus < 0) {
      this.glance();
      return;
    }
    if (!this.scroller.clientHeight) return; // it is hidden
    let grown = false;
    for (const row of this.box.children) {
      if (row.dataset.i === undefined) continue;
      const one = all[row.dataset.i];
      if (!one) continue;
      const key = even ? "" : keyOf(one);
      if (this.heights.has(key)) {
        if (even) break;
        continue;
      }
      const height = row.getBoundingClientRect().height + gap;
      this.heights.set(key, height);
      this.sum += height;
      grown = true;
    }
    if (grown) this.tops = null;
    this.kept();
    const [y, height] = this.space();
    const [from, to] = [this.from, this.to];
    this.hold(y);
    this.range(y, height);
    if (from <= this.from && to >= this.to && to <= all.length && !grown) [this.from, this.to] = [from, to];
    if (from !== this.from || to !== this.to || grown) this.forceUpdate();
    else this.land();
  }

  // glance draws the rows of another length of the list where the window was, and looks for the window later: a look
  // makes the browser lay out the page, which would take more time than all the rest while a slider moves.
  glance() {
    const [from, to] = [this.from, this.to];
    this.range(...this.window);
    if (this.from > from || this.to < to) [this.from, this.to] = [Math.min(this.from, from), Math.max(this.to, Math.min(to, this.props.all.length))];
    if (from !== this.from || to !== this.to) this.forceUpdate();
    this.later ||= setTimeout(() => {
      this.later = 0;
      this.see();
    }, 150);
  }

  // land focuses the row that show asked for.
  land() {
    if (this.focus < 0) return;
    const row = this.box.querySelector(`[data-i="${this.focus}"]`);
    if (!row) return;
    this.focus = -1;
    (row.querySelector("button, a") || row).focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  }

  // beside returns the row that is nearest to a height on the screen.
  beside(y) {
    if (!this.short) return Math.min(this.props.all.length - 1, this.rowAt(y - this.box.getBoundingClientRect().top));
    const rows = [...this.box.children];
    const far = (row) => Math.abs(row.getBoundingClientRect().top - y);
    return rows.reduce((best, row, i) => (far(row) < far(rows[best]) ? i : best), 0);
  }

  // page returns how many rows the window has.
  get page() {
    return Math.max(1, Math.floor(this.scroller.clientHeight / this.typical) - 1);
  }

  // show focuses a row, which may not be on the page yet.
  show(i) {
    const n = this.props.all.length;
    if (!n) return;
    this.active = this.focus = Math.max(0, Math.min(n - 1, i));
    this.low = false;
    this.anchor = null;
    if (!this.short) {
      const [y, height] = this.space();
      const top = this.top(this.active);
      const bottom = this.top(this.active + 1);
      if (top < y) this.scroller.scrollTop += top - y;
      else if (bottom > y + height) this.scroller.scrollTop += bottom - y - height;
      this.range(...this.space());
    }
    this.forceUpdate();
  }

  render({ all, each, label, name, even, table }) {
    const short = this.short;
    const from = short ? 0 : Math.min(this.from, Math.max(0, all.length - 1));
    const to = short ? all.length : Math.min(Math.max(this.to, from + 1), all.length);
    const stop = Math.max(from, Math.min(to - 1, this.active));
    const rows = all.slice(from, to).map((one, i) => each(one, from + i, from + i === stop));
    const [above, below] = short ? [0, 0] : [this.top(from), this.top(all.length) - this.top(to)];
    const ref = (e) => (this.box = e);
    if (table) {
      const blank = (height, at) => html`<tr key=${at} class="blank" aria-hidden="true" ref=${at === "above" ? (e) => (this.before = e) : undefined}><td style=${{ height: height + "px" }} /></tr>`;
      return html`<tbody ref=${ref} class=${name} tabindex="-1">${blank(above, "above")}${rows}${blank(below, "below")}</tbody>`;
    }
    return html`<ul ref=${ref} class=${[name, even && !short && "even"].filter(Boolean).join(" ") || undefined} aria-label=${label} tabindex="-1"
      style=${{ paddingTop: above + "px", paddingBottom: below + "px" }}>${rows}</ul>`;
  }
}
