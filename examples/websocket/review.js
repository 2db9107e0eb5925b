// A team from its creation to its end. It prints each event:
//
//   CADRE_TOKEN=... node review.js ws://127.0.0.1:7433/ws
//
// With --steps it waits for a line of standard input before each request, and prints "done" after it.
import { createInterface } from "node:readline";
import { Coordinator } from "./client.js";

const print = (value) => console.log(typeof value === "string" ? value : JSON.stringify(value));
const cadre = new Coordinator(process.argv[2], { token: process.env.CADRE_TOKEN, onEvent: print });
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const steps = process.argv.includes("--steps");

async function step(type, payload) {
  if (steps) await lines.next();
  const reply = await cadre.request(type, payload);
  if (steps) print("done");
  return reply;
}

const { team } = await step("create_team", { leadSessionId: "lead-session", name: "review", maxTeammates: 3 });
const teamId = team.id;
for (const name of ["ann", "bob"]) {
  await step("spawn_teammate", { teamId, name, role: "reviewer", prompt: "Review the changes.", agentType: "external" });
}
await step("spawn_teammate", { teamId, name: "sue", role: "runner", prompt: "Run commands.", agentType: "shell" });
const from = { teamId, createdBy: "lead-session" };
const one = await step("team_create_task", { ...from, title: "Read the diff", description: "", assigneeId: "ann" });
const two = await step("team_create_task", { ...from, title: "Write a report", description: "", dependencies: [one.task.id] });
await step("team_claim_task", { teamId, taskId: one.task.id, teammateId: "ann" });
await step("team_complete_task", { teamId, taskId: one.task.id, teammateId: "ann" });
await step("team_send_message", { teamId, fromId: "ann", toId: "bob", content: "The diff is read." });
await step("team_claim_task", { teamId, taskId: two.task.id, teammateId: "bob" });
await step("team_update_task", { teamId, taskId: two.task.id, priority: "high" });
await step("team_complete_task", { teamId, taskId: two.task.id, teammateId: "bob" });
await step("team_broadcast", { teamId, fromId: "lead-session", content: "Well done." });
for (const memberId of ["ann", "bob", "sue"]) await step("shutdown_teammate", { teamId, memberId });
if (steps) await history();
await step("cleanup_team", { teamId });
cadre.close();
process.exit(0);

// history prints all events of the team, as another client gets them.
async function history() {
  await lines.next();
  const events = [];
  const other = new Coordinator(process.argv[2], { token: process.env.CADRE_TOKEN, onEvent: (e) => events.push(e) });
  await other.follow(teamId);
  await other.request("team_status", { teamId }); // the answer comes after all events
  other.close();
  print({ type: "history", events });
  print("done");
}
