// Where the tasks of a graph stand: in layers from left to right, each right of the tasks that block it.

export const size = { width: 208, height: 46, across: 56, down: 14 };

// layout places nodes [{id, from: [ids]}] and returns {width, height, at: {id: [x, y]}, edges: [[from, to]]}.
// Edges that follow from others are left out.
export function layout(nodes) {
  const all = new Map(nodes.map((n) => [n.id, { id: n.id, from: [], to: [], layer: -1 }]));
  for (const n of nodes) {
    for (const id of n.from) {
      if (!all.has(id) || id === n.id) continue;
      all.get(n.id).from.push(id);
      all.get(id).to.push(n.id);
    }
  }
  const place = (n, path) => {
    if (n.layer >= 0) return n.layer;
    if (path.has(n)) return 0;
    path.add(n);
    n.layer = n.from.reduce((most, id) => Math.max(most, place(all.get(id), path) + 1), 0);
    path.delete(n);
    return n.layer;
  };
  for (const n of all.values()) place(n, new Set());

  const edges = [];
  for (const n of all.values()) {
    for (const id of n.from) if (!indirect(all, n, id)) edges.push([id, n.id]);
  }

  const lone = (n) => !n.from.length && !n.to.length;
  const layers = [];
  const rest = [];
  for (const n of all.values()) {
    if (lone(n)) rest.push(n);
    else (layers[n.layer] ||= []).push(n);
  }
  for (let i = 0; i < layers.length; i++) layers[i] ||= [];
  order(layers, all);

  const at = {};
  const { width, height, across, down } = size;
  layers.forEach((layer, x) => layer.forEach((n, y) => {
    at[n.id] = [x * (width + across), y * (height + down)];
  }));
  straighten(layers, all, at);
  const top = Math.min(...Object.values(at).map(([, y]) => y));
  for (const id in at) at[id][1] -= top;
  let bottom = Object.values(at).reduce((most, [, y]) => Math.max(most, y + height + down), 0);
  const columns = Math.max(3, layers.length);
  rest.forEach((n, i) => {
    at[n.id] = [(i % columns) * (width + across), bottom + Math.floor(i / columns) * (height + down)];
  });
  let right = 0;
  for (const [x, y] of Object.values(at)) {
    right = Math.max(right, x + width);
    bottom = Math.max(bottom, y + height);
  }
  return { width: right, height: bottom, at, edges };
}

// indirect reports whether there is a way from the node id to n by other nodes.
function indirect(all, n, id) {
  const floor = all.get(id).layer;
  const seen = new Set();
  const todo = n.from.filter((f) => f !== id).map((f) => all.get(f));
  while (todo.length) {
    const one = todo.pop();
    if (seen.has(one) || one.layer <= floor) continue;
    seen.add(one);
    for (const f of one.from) {
      if (f === id) return true;
      todo.push(all.get(f));
    }
  }
  return false;
}

// order sorts each layer by where its neighbors stand, so that few edges cross.
function order(layers, all) {
  const index = new Map();
  const number = () => layers.forEach((layer) => layer.forEach((n, i) => index.set(n.id, i)));
  number();
  const sweep = (layer, side) => {
    const middle = (n) => {
      const ids = n[side];
      return ids.length ? ids.reduce((sum, id) => sum + index.get(id), 0) / ids.length : index.get(n.id);
    };
    const key = new Map(layer.map((n) => [n, middle(n)]));
    layer.sort((a, b) => key.get(a) - key.get(b));
    layer.forEach((n, i) => index.set(n.id, i));
  };
  for (let k = 0; k < 8; k++) {
    for (let i = 1; i < layers.length; i++) sweep(layers[i], "from");
    for (let i = layers.length - 2; i >= 0; i--) sweep(layers[i], "to");
  }
}

// straighten moves nodes down to the height of their neighbors, where there is room.
function straighten(layers, all, at) {
  const step = size.height + size.down;
  for (let k = 0; k < 4; k++) {
    for (const layer of layers) {
      const wish = layer.map((n) => {
        const ys = [...n.from, ...n.to].filter((id) => at[id]).map((id) => at[id][1]);
        return ys.length ? ys.reduce((a, b) => a + b, 0) / ys.length : at[n.id][1];
      });
      let floor = 0;
      layer.forEach((n, i) => {
        at[n.id][1] = Math.max(floor, wish[i]);
        floor = at[n.id][1] + step;
      });
    }
  }
}
