// The field in which a person narrows a list.
import { html, Icon, cx } from "./core.js";
import { app, go } from "./store.js";
import { parse } from "./filter.js";

// Find is the field for a filter, with what is wrong with it.
export function Find({ what, placeholder, wrong }) {
  return html`<label class=${cx("find", wrong && "wrong")}><${Icon} name="search" /><span class="sr">${what}</span>
    <input type="search" placeholder=${placeholder} value=${app.where.find} aria-invalid=${wrong ? "true" : null} aria-describedby=${wrong ? "wrong" : null}
      onInput=${(e) => go({ find: e.target.value }, true)} /></label>`;
}

// Wrong says what is wrong with a filter.
export const Wrong = ({ text }) => text && html`<p class="why wrong-filter" id="wrong" role="status">${text}</p>`;

let lastFilter = { text: "", terms: [], wrong: "" }; // the last filter without a mistake, and the mistake in a later one

// useFilter returns the filter of the address. While what is typed has a mistake, the filter before it stays.
export function useFilter() {
  const text = app.where.find;
  if (text !== lastFilter.text) {
    const { terms, wrong } = parse(text);
    lastFilter = { text, terms: wrong ? lastFilter.terms : terms, wrong };
  }
  return lastFilter;
}
