// A client of the WebSocket protocol of cadre serve; docs/websocket.md describes it. It survives restarts of the
// server: it connects again, continues from its cursors, and sends what was not answered again, with the same key.
import { randomUUID } from "node:crypto";
import WebSocket from "ws";

export class Coordinator {
  #url;
  #options;
  #socket;
  #waiting = new Map(); // requests that are not answered, by their ids
  #cursors = new Map(); // the last event of each team that is followed, by the ids of the teams
  #ids = 0;
  #closed = false;

  // onEvent is called with each event, once and in order.
  constructor(url, { token, onEvent = () => {} } = {}) {
    this.#url = url;
    this.#options = token ? { headers: { Authorization: `Bearer ${token}` } } : {};
    this.onEvent = onEvent;
    this.#connect();
  }

  // request returns the payload of the reply. It throws the error of the server.
  request(type, payload = {}) {
    return new Promise((resolve, reject) => {
      const id = ++this.#ids;
      const frame = { type, id, key: randomUUID(), payload };
      this.#waiting.set(id, { frame, resolve, reject, again: false });
      this.#send(id);
    });
  }

  // follow subscribes to a team, from the beginning of its history.
  async follow(teamId) {
    this.#cursors.set(teamId, { seq: 0 });
    await this.request("subscribe", { teamId, after: 0 });
  }

  close() {
    this.#closed = true;
    this.#socket.close();
  }

  #connect() {
    const socket = new WebSocket(this.#url, this.#options);
    this.#socket = socket;
    socket.on("open", () => this.#resume());
    socket.on("message", (data) => this.#take(JSON.parse(data)));
    socket.on("error", () => {}); // it closes, too
    socket.on("close", () => {
      if (!this.#closed) setTimeout(() => this.#connect(), 50);
    });
  }

  // resume continues the subscriptions, and then the requests, in their order.
  #resume() {
    for (const [teamId, { seq, part }] of this.#cursors) {
      const payload = { teamId, after: seq, ...(part && { part }) };
      this.#socket.send(JSON.stringify({ type: "subscribe", id: `resume ${teamId}`, payload }));
    }
    for (const [id, request] of this.#waiting) {
      request.again = true;
      this.#send(id);
    }
  }

  #send(id) {
    if (this.#socket.readyState !== WebSocket.OPEN) return; // it is sent once the connection is open
    const { frame } = this.#waiting.get(id);
    if (frame.type === "subscribe" && this.#waiting.get(id).again) return this.#done(id, {}); // resumed by its cursor
    this.#socket.send(JSON.stringify(frame));
  }

  #done(id, payload) {
    this.#waiting.get(id).resolve(payload);
    this.#waiting.delete(id);
  }

  #take(frame) {
    if (frame.id !== undefined) return this.#answer(frame);
    if (frame.type === "error") throw new Error(frame.payload.message);
    if (frame.seq) this.#cursors.set(frame.teamId, { seq: frame.seq, part: frame.part });
    if (frame.type === "team_cleaned_up") this.#cursors.delete(frame.teamId);
    this.onEvent(frame);
  }

  #answer({ type, id, payload }) {
    const request = this.#waiting.get(id);
    const gone = type === "error" && payload.code === "TEAM_NOT_FOUND";
    if (request === undefined) {
      const teamId = String(id).replace("resume ", "");
      if (gone && this.#cursors.delete(teamId)) { // its history went with it
        this.onEvent({ type: "team_cleaned_up", teamId, payload: { teamId } });
      } else if (type === "error") {
        throw new Error(payload.message);
      }
      return;
    }
    if (gone && request.again && request.frame.type === "cleanup_team") return this.#done(id, request.frame.payload);
    if (type !== "error") return this.#done(id, payload);
    this.#waiting.delete(id);
    request.reject(Object.assign(new Error(payload.message), payload));
  }
}
