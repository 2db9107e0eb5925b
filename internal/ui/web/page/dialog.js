// Dialogs: a question, or a form of a few fields.
import { html, useLayoutEffect, useRef, useState, Icon, cx } from "./core.js";
import { app, open } from "./store.js";

// Dialog is open from the moment when it is drawn, so that no key is lost. The focus returns when it ends.
export function Dialog({ title, wide, children }) {
  const ref = useRef(null);
  const { current: own } = useRef(app.dialog);
  useLayoutEffect(() => {
    const dialog = ref.current;
    dialog.showModal();
    return () => dialog.close();
  }, []);
  // A browser says only with the next frame that a dialog was closed, and another one may be open by then.
  const closed = () => app.dialog === own && open(null);
  const close = () => {
    ref.current.close();
    closed();
  };
  const cancel = (e) => {
    e.preventDefault();
    close();
  };
  return html`<dialog ref=${ref} class=${cx(wide && "wide")} aria-labelledby="dialog-title" onCancel=${cancel} onClose=${closed}
    onClick=${(e) => e.target === ref.current && close()}>
    <div class="inside">
      <header><h2 id="dialog-title">${title}</h2>
        <button class="plain" aria-label="Close" onClick=${close}><${Icon} name="cross" /></button></header>
      ${children}
    </div>
  </dialog>`;
}

// Form asks for fields: {name, label, kind: text|long|choice|check, value, choices, about, needed}.
export function Form({ title, about, fields = [], does, danger, onDo }) {
  const first = {};
  for (const f of fields) first[f.name] = f.value ?? (f.kind === "check" ? false : "");
  const [values, set] = useState(first);
  const put = (name, value) => set({ ...values, [name]: value });
  const lacks = fields.some((f) => f.needed && !String(values[f.name]).trim());
  const submit = (e) => {
    e.preventDefault();
    if (lacks) return;
    open(null);
    onDo(values);
  };
  return html`<${Dialog} title=${title}>
    <form onSubmit=${submit}>
      ${about && html`<p class="dim">${about}</p>`}
      ${fields.map((f) => html`<${Field} f=${f} value=${values[f.name]} put=${(v) => put(f.name, v)} />`)}
      <footer>
        <button type="button" onClick=${() => open(null)}>Cancel</button>
        <button type="submit" class=${danger ? "danger" : "main"} disabled=${lacks}>${does}</button>
      </footer>
    </form>
  </${Dialog}>`;
}

function Field({ f, value, put }) {
  const id = "field-" + f.name;
  if (f.kind === "check") {
    return html`<label class="check"><input type="checkbox" checked=${value} onChange=${(e) => put(e.target.checked)} />
      <span>${f.label}</span></label>`;
  }
  let input;
  if (f.kind === "long") {
    input = html`<textarea id=${id} rows="4" value=${value} autofocus=${f.first}
      onInput=${(e) => put(e.target.value)}
      onKeyDown=${(e) => e.key === "Enter" && (e.ctrlKey || e.metaKey) && e.target.form.requestSubmit()} />`;
  } else if (f.kind === "choice") {
    input = html`<select id=${id} value=${value} onChange=${(e) => put(e.target.value)}>
      ${f.choices.map((c) => html`<option value=${c.value ?? c}>${c.label ?? c}</option>`)}</select>`;
  } else {
    input = html`<input id=${id} type="text" value=${value} inputmode=${f.kind === "number" ? "decimal" : null}
      autocomplete="off" onInput=${(e) => put(e.target.value)} />`;
  }
  return html`<div class="field"><label for=${id}>${f.label}</label>${input}${f.about && html`<small class="dim">${f.about}</small>`}</div>`;
}

export const ask = (form) => open(() => html`<${Form} ...${form} />`);
