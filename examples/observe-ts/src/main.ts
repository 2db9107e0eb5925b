// Shows a team as it changes, from standard input:
//
//   cadre observe stream.jsonl --follow --json --live-state | node dist/main.js
//
// With --json it prints the session after each line that changed it, and nothing else.
import { createInterface } from "node:readline";
import type { Event, Session } from "./contract.js";
import { ObservedSession, parseLine } from "./session.js";

const json = process.argv.includes("--json");
const observed = new ObservedSession();

for await (const text of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const line = parseLine(text);
  if (line === undefined) continue;
  const before = observed.current;
  const event = observed.take(line);
  if (json) {
    if (observed.current !== before) console.log(JSON.stringify(observed.current));
    continue;
  }
  if (event !== undefined) console.log(describe(event));
  if (observed.current !== before) console.log(`  ${summary(observed.current)}`);
}

function summary({ team }: Session): string {
  if (team === undefined) return "no team";
  const done = team.tasks.filter((task) => task.status === "completed").length;
  const members = team.members.map((member) => `${member.name} (${member.status})`).join(", ");
  return `${team.name}: ${done} of ${team.tasks.length} tasks done; ${members || "nobody"}`;
}

/** Says in words what happened. The compiler finds a type of event that is missing here. */
function describe(event: Event): string {
  switch (event.type) {
    case "team:created":
      return `team ${event.teamName} was created`;
    case "team:deleted":
      return `team ${event.teamName} was deleted`;
    case "team:member:joined":
      return `${event.member.name} joined`;
    case "team:member:idle":
      return `${event.member.name} is idle`;
    case "team:member:shutdown":
      return `${event.member.name} has shut down`;
    case "team:member:failed":
      return `${event.member.name} failed: ${event.reason ?? "nobody knows why"}`;
    case "team:task:created":
      return `task ${event.task.id} was created: ${event.task.subject}`;
    case "team:task:claimed":
      return `task ${event.task.id} was claimed by ${event.task.owner ?? "nobody"}`;
    case "team:task:completed":
      return `task ${event.task.id} was completed`;
    case "team:message:received":
      return `${event.from} → ${event.to ?? "everybody"}: ${event.content}`;
    case "team:shutdown:requested":
      return `${event.member} was asked to shut down`;
    case "team:shutdown:response":
      return `${event.member} ${event.approved ? "shuts down" : "does not shut down"}`;
    case "team:plan:requested":
      return `${event.from} asks for approval of a plan: ${event.plan}`;
    case "team:plan:resolved":
      return `the plan of ${event.from} was ${event.approved ? "approved" : "rejected"}`;
    case "team:gap":
      return `something of ${event.from} was lost: ${event.reason}`;
  }
}
