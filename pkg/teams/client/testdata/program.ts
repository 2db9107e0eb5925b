// A program against the types of the API. A test compiles it.
import type { Event, Problem, Routes, Streams, Task } from "./api.js";

type Route = keyof Routes;

/** Sends a request of a route, with the types of that route. */
async function call<R extends Route>(
  base: string,
  route: R,
  path: Routes[R]["path"],
  options: { query?: Routes[R]["query"]; body?: Routes[R]["body"]; key?: string } = {},
): Promise<Routes[R]["answer"]> {
  const [method, pattern] = route.split(" ") as [string, string];
  const names = path as { [name: string]: string };
  const url = new URL(pattern.replace(/\{([a-z]+)\}/g, (_, name) => encodeURIComponent(names[name] ?? "")), base);
  for (const [name, value] of Object.entries(options.query ?? {})) url.searchParams.append(name, String(value));
  const init: RequestInit = { method, headers: { "Content-Type": "application/json", "Idempotency-Key": options.key ?? crypto.randomUUID() } };
  if (options.body !== undefined) init.body = JSON.stringify(options.body);
  const is = await fetch(url, init);
  if (!is.ok) throw new Error(((await is.json()) as Problem).detail);
  return (await is.json()) as Routes[R]["answer"];
}

/** What is done in a team, one line an event. */
export function line(e: Event): string {
  switch (e.kind) {
    case "task_created":
      return e.task?.subject ?? "";
    case "task_completed":
      // @ts-expect-error: an event of this kind has no subject
      return `${e.by} completed ${e.task}: ${e.subject}`;
    default:
      return e.kind;
  }
}

export async function main(base: string): Promise<Task> {
  const task = await call(base, "POST /v1/teams/{team}/tasks", { team: "docs" }, { query: { as: "ann" }, body: { subject: "Describe it" } });
  // @ts-expect-error: a task needs its subject
  await call(base, "POST /v1/teams/{team}/tasks", { team: "docs" }, { body: { description: "x" } });
  // @ts-expect-error: there is no such route
  await call(base, "POST /v1/teams/{team}/jobs", { team: "docs" });
  const state = await call(base, "GET /v1/teams/{team}", { team: "docs" }, { query: { seq: 3 } });
  const names: (string | undefined)[] = state.members.map((m) => m.name);
  const problem: Streams["/v1/teams/{team}/events"]["problem"] = { type: "about:blank", title: "", status: 500, detail: "", code: names[0] ?? "failed" };
  console.log(problem.code, names);
  return task;
}
