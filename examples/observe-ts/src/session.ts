import type { Event, Line, Operation, Session } from "./contract.js";

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Keeps an observed session from the lines of `cadre observe --json --live-state`. */
export class ObservedSession {
  /** The session, as `cadre observe --state` would print it. It is never changed: each patch makes another one. */
  current: Session = { agents: [] };

  /** Takes a line. It returns the event that the line is, if it is one. */
  take(line: Line): Event | undefined {
    switch (line.type) {
      case "session:update":
        this.current = line.session;
        return undefined;
      case "session:patch":
        this.current = line.patch.reduce<Json>(apply, this.current as unknown as Json) as unknown as Session;
        return undefined;
      case "team_state_change":
      case "team_task_update":
      case "team_message":
        return undefined;
      default:
        return line;
    }
  }
}

/** Reads a line of output. It returns undefined for a line of another program, and for a type that a newer cadre may have. */
export function parseLine(text: string): Line | undefined {
  const value: unknown = JSON.parse(text);
  if (typeof value !== "object" || value === null || !("type" in value) || typeof value.type !== "string") {
    return undefined;
  }
  return value.type in known ? (value as Line) : undefined;
}

/** The types that this program knows. The compiler finds one that is missing here. */
const known: Record<Line["type"], true> = {
  "team:created": true,
  "team:deleted": true,
  "team:member:joined": true,
  "team:member:idle": true,
  "team:member:shutdown": true,
  "team:member:failed": true,
  "team:task:created": true,
  "team:task:claimed": true,
  "team:task:completed": true,
  "team:message:received": true,
  "team:shutdown:requested": true,
  "team:shutdown:response": true,
  "team:plan:requested": true,
  "team:plan:resolved": true,
  "team:gap": true,
  team_state_change: true,
  team_task_update: true,
  team_message: true,
  "session:update": true,
  "session:patch": true,
};

/** Applies one operation of a JSON Patch (RFC 6902). What it does not touch is shared with the document before. */
function apply(document: Json, operation: Operation): Json {
  const path = operation.path.split("/").slice(1).map(unescape);
  return change(document, path, operation);
}

function unescape(token: string): string {
  return token.replaceAll("~1", "/").replaceAll("~0", "~");
}

function change(at: Json, path: string[], operation: Operation): Json {
  const [key, ...rest] = path;
  if (key === undefined) {
    throw new Error(`${operation.path}: the whole document is replaced by session:update alone`);
  }
  if (Array.isArray(at)) {
    const index = key === "-" ? at.length : Number(key);
    const child = at[index];
    if (rest.length > 0) {
      if (child === undefined) throw new Error(`${operation.path}: there is no place ${key}`);
      return at.with(index, change(child, rest, operation));
    }
    switch (operation.op) {
      case "add":
        return at.toSpliced(index, 0, operation.value as Json);
      case "replace":
        return at.with(index, operation.value as Json);
      case "remove":
        return at.toSpliced(index, 1);
    }
  }
  if (typeof at !== "object" || at === null) {
    throw new Error(`${operation.path}: ${key} is in no object`);
  }
  const child = at[key];
  if (rest.length > 0) {
    if (child === undefined) throw new Error(`${operation.path}: there is no ${key}`);
    return { ...at, [key]: change(child, rest, operation) };
  }
  switch (operation.op) {
    case "add":
    case "replace":
      return { ...at, [key]: operation.value as Json };
    case "remove": {
      const { [key]: _, ...others } = at;
      return others;
    }
  }
}
