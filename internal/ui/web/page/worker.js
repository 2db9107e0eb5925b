// Lays out graphs beside the page.
import { layout } from "./layout.js";

onmessage = (e) => postMessage({ id: e.data.id, graph: layout(e.data.nodes) });
