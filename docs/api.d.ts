// The types of cadre's HTTP API, for TypeScript. A test makes this file from the Go types of the
// routes: go test ./pkg/teams/client -run '^TestTypeScript$' -update
//
// Times are milliseconds since 1970. A field that may be missing is left out where it is zero.

/** Budget limits what a team or a member may spend; zero means no limit. Time is a deadline: hooks, questions and pauses do not stop it. */
export interface Budget {
  /** tokens of all kinds together; 0 for no limit */
  tokens?: number;
  /** millionths of a US dollar; 0 for no limit */
  costMicroUSD?: number;
  /** wall-clock time since the team was created or the member joined, in milliseconds; 0 for no limit */
  millis?: number;
}

/** Alerted says that the lead was notified of how much of a budget is spent. */
export interface Alerted {
  /** tokens, cost or time */
  what?: string;
  /** the last of 50, 80 and 95 that the lead was notified of */
  percent?: number;
}

/** Hook is a quality gate that belongs to the team itself, not to the project or the user. */
export interface Hook {
  /** TeammateIdle, TaskCreated or TaskCompleted */
  event?: string;
  /** command for /bin/sh */
  command?: string;
  /** limit for one run, in seconds; 0 for the default */
  seconds?: number;
}

/** Permissions say what the members of a team may do without asking, and who is asked about the rest. */
export interface Permissions {
  /** rules in Claude Code's notation: Bash(go test:*), Edit, mcp__server__tool */
  allow?: string[];
  /** how long a request or a plan waits for its answer, in milliseconds; 0 for 5 min */
  millis?: number;
  /** who answers if no rule does: user, lead, allow or deny; empty for user, or an external lead */
  policy?: string;
}

/** Parent is the member that a nested team is for. */
export interface Parent {
  /** id of its team; empty for a team that is not nested */
  team?: string;
  /** name of that team */
  name?: string;
  /** name of the outermost team, if that is another one */
  top?: string;
  /** name of the member */
  member?: string;
  /** id of the task there whose result the report of this team is */
  task?: string;
  /** number of the last message there that was passed on to the lead here */
  heard?: number;
  /** number of the last question to the lead there, if it was not answered; 0 for none */
  asked?: number;
  /** what this team may use at most, with what it has used */
  left?: Budget;
  /** the limits of `left` that the budget of the member sets, not that of its team */
  binds?: Budget;
  /** budget that it has if that allows it */
  own?: Budget;
  /** permission mode that its members have at most; empty before it is known */
  mode?: string;
  /** the member has a worktree, which is this team's directory: its work is checked and committed there */
  worktree?: boolean;
}

/** Usage counts what models were used for, by the agents' own figures. */
export interface Usage {
  /** tokens that models read, without those from a cache */
  inputTokens?: number;
  /** tokens that models wrote */
  outputTokens?: number;
  /** tokens that were read from a cache */
  cacheReadTokens?: number;
  /** tokens that were written to a cache */
  cacheWriteTokens?: number;
  /** millionths of a US dollar; 0 if the agent does not report its cost */
  costMicroUSD?: number;
}

/** Child is a team that a member of this one runs for a task. */
export interface Child {
  /** its id */
  team?: string;
  /** its name */
  name?: string;
  /** member that runs it */
  member?: string;
  /** task whose result its report is */
  task?: string;
  /** agent that leads it; empty for a program, which reads no mail */
  lead?: string;
  /** what it used, as far as it is counted as the member's */
  usage?: Usage;
  /** number of its last message that was passed on to the lead here */
  heard?: number;
  /** its report was taken for the task, or the task needs none any more. What it has not done yet is ended */
  over?: boolean;
}

/** Timing says how long silence lasts before the team acts on it. 0 is the default. */
export interface Timing {
  /** between two heartbeats of a member, in milliseconds; 0 for 30 s */
  beat?: number;
  /** silence after which a member is offline, in milliseconds; 0 for 10 min */
  offline?: number;
  /** silence after which the lead is lost, in milliseconds; 0 for 5 min */
  leadLost?: number;
  /** how long a teammate works without a lead, in milliseconds; 0 for 30 min */
  zombie?: number;
  /** how long a blocked teammate keeps its task without a lead, in milliseconds; 0 for 10 min */
  blocked?: number;
  /** wait of a message before the lead is notified, in milliseconds; 0 for 5 min */
  undelivered?: number;
  /** silence after which another session may take the lead, in milliseconds; 0 for 30 min */
  stale?: number;
  /** between two checkpoints of a team, or two saves of a teammate's work without a lead, in milliseconds; 0 for 30 s */
  checkpoint?: number;
}

/** Fact is a file that all members rely on. */
export interface Fact {
  /** what members call it */
  name?: string;
  /** absolute, or relative to the team's directory */
  path?: string;
  /** SHA-256 of its content, in hex; empty if the file does not exist */
  sha256?: string;
}

/** Check is a command that has to pass before the team's work is committed. */
export interface Check {
  /** name of the check, unique in the team */
  name?: string;
  /** command for /bin/sh, run in the team's directory */
  command?: string;
  /** limit for one run, in seconds; 0 for the default */
  seconds?: number;
}

/** NamedCommand is a command that tasks can name as their check. */
export interface NamedCommand {
  /** name of the command */
  name?: string;
  /** command for /bin/sh */
  run?: string;
}

/** Base is the state of the project when the team was created. It separates the team's work from what was there before. */
export interface Base {
  /** top of the work tree; empty if there was no repository, or it was not examined */
  top?: string;
  /** commit that HEAD pointed at; empty before the first commit */
  commit?: string;
  /** why it is unknown which files differed */
  unknown?: string;
  /** number of files that differed from that commit */
  dirty?: number;
}

/** Branch is the work of a member in a worktree of its own. */
export interface Branch {
  /** whose work it has */
  member?: string;
  /** name of the branch */
  name?: string;
  /** last commit on it */
  commit?: string;
}

/** Consolidation is the team's last step: its work is checked and committed. The state keeps the last attempt. */
export interface Consolidation {
  /** number of the attempt, from 1 */
  attempt?: number;
  /** began, merged, staged, made, done or abandoned */
  step?: string;
  /** who started it: a member, or @user */
  by?: string;
  /** commit message; empty for one that is made from the tasks */
  message?: string;
  /** paths that are committed although they were changed before the team was created */
  include?: string[];
  /** the only paths that are committed; empty for all of the team's work */
  only?: string[];
  /** only the checks run */
  noCommit?: boolean;
  /** the team was complete before, without a consolidation */
  ended?: boolean;
  /** ids of tasks with missing work that the team is completed without */
  without?: string[];
  /** the checks run in a clean checkout of the tree to commit */
  clean?: boolean;
  /** files that the checks change are committed too, and the checks run again */
  changes?: boolean;
  /** number of times that the checks ran again */
  rounds?: number;
  /** members whose worktrees were merged */
  members?: string[];
  /** commit that HEAD pointed at when the tree was made */
  parent?: string;
  /** id of the tree to commit; empty when there is nothing to commit */
  tree?: string;
  /** tree with the team's work, but not the branches; empty if no branch is merged */
  before?: string;
  /** merged by the commit */
  branches?: Branch[];
  /** number of files that differ between `parent` and `tree` */
  files?: number;
  /** names of the checks that passed */
  passed?: string[];
  /** when the team's work had ended, at the beginning of this attempt; 0 if unknown */
  finishedAt?: number;
  /** name of the check that failed */
  failed?: string;
  /** id of the commit */
  commit?: string;
  /** why it was abandoned */
  reason?: string;
  /** when this attempt started */
  beganAt?: number;
  /** when this attempt ended; 0 while it runs */
  endedAt?: number;
}

/** Restored says from which checkpoint a journal was started, because the one before it was lost. It is zero for a team's first journal. */
export interface Restored {
  /** id of this history: the id of the command that restored it */
  id?: string;
  /** id of the history that made the checkpoint; empty for the team's first */
  from?: string;
  /** number of records that this history had at the checkpoint */
  seq?: number;
}

/** Missing is work of a task that a restored team has completed, and that is not where it should be. */
export interface Missing {
  /** id of the task */
  task?: string;
  /** what is missing, and where it is, for people */
  what?: string;
  /** commit that has the work; empty if unknown */
  commit?: string;
  /** branch that should have the commit; empty for what is checked out */
  branch?: string;
  /** path of a missing file from the top of the work tree; empty if the whole commit is missing */
  path?: string;
  /** object name of the file in git; empty if there should be no file, "any" for any content */
  object?: string;
}

/** Released says that the machine which had the team released it: the team continues elsewhere. It is zero while this copy of the team is the valid one. */
export interface Released {
  /** machine that released the team */
  machine?: string;
  /** when it released the team */
  at?: number;
}

/** HookOff is a hook that the user switched off for the team. Event, Source and Command describe the hook for people: its file may have changed since. */
export interface HookOff {
  /** id of the hook */
  id?: string;
  /** TeammateIdle, TaskCreated or TaskCompleted */
  event?: string;
  /** where it was set up: user, project, local, team or program */
  source?: string;
  /** command of the hook */
  command?: string;
  /** who switched it off */
  by?: string;
  /** when it was switched off */
  at?: number;
}

/** Rule is a permission rule that was added to the team while it worked. It is asked about before every tool, so adding or removing it counts at once. The rules of [Permissions.Allow] are given to a session at its start. */
export interface Rule {
  /** as Claude Code writes it: Bash(go test:*) */
  rule?: string;
  /** the only member that it is for; empty for all */
  member?: string;
  /** who added it */
  by?: string;
  /** when it was added */
  at?: number;
}

/** Team has the fields of the team as a whole. */
export interface Team {
  /** id of the team, which no other team ever has */
  id?: string;
  /** name of the team */
  name?: string;
  /** pending, active, consolidating, complete or aborted */
  status?: string;
  /** what the team is to do */
  goal?: string;
  /** absolute path of the directory in which its members work */
  dir?: string;
  /** name of the lead, which never changes */
  lead?: string;
  /** name that its own agents have for it, if the team is only observed; empty for other teams */
  observed?: string;
  /** not a team but one session is observed, of the agent that `observed` names */
  session?: boolean;
  /** the lead may only coordinate */
  delegate?: boolean;
  budget?: Budget;
  /** which budget is spent: tokens, cost or time; empty for none */
  exhausted?: string;
  alerted?: Alerted[];
  hooks?: Hook[];
  permissions?: Permissions;
  /** percent of a context at which a fresh session takes over; 0 for 80 */
  handoverAt?: number;
  /** how many run at a time; 0 for 10 if the lead spawns, else no limit */
  maxTeammates?: number;
  /** how many teammates have a turn at a time; 0 for no limit */
  maxParallel?: number;
  /** how deep it is nested in other teams; 0 for a team by itself */
  depth?: number;
  /** how deep teams may be nested in it; 0 for none */
  maxDepth?: number;
  /** the member that it is for, if it is nested */
  parent?: Parent;
  /** messages to the parent's lead that were not passed on yet */
  outbox?: number[];
  /** the teams that its members run, in the order in which they began */
  children?: Child[];
  /** path of the team file that it was made from; empty for none */
  origin?: string;
  /** SHA-256 of that file */
  originDigest?: string;
  /** digests of what that file says of the team itself, as key=digest */
  fileDigests?: string[];
  /** path of the lead's report; empty before there is one */
  report?: string;
  /** the lead was asked for its report, and no new work has started since */
  reportAsked?: boolean;
  /** text of the lead's report */
  lastWords?: string;
  /** tokens and cost of all members together */
  usage?: Usage;
  /** when the team was created */
  createdAt?: number;
  /** when it last changed */
  updatedAt?: number;
  /** it was removed */
  cleanedUp?: boolean;
  timing?: Timing;
  /** files that all members rely on, as they were when last recorded */
  facts?: Fact[];
  /** id of the session that leads */
  leadSession?: string;
  /** name of its computer; empty if unknown */
  leadMachine?: string;
  /** it is a session of an agent */
  leadAgent?: boolean;
  /** when it took the lead, or resumed it */
  leadSince?: number;
  /** since when no session leads; 0 while one does */
  leadLost?: number;
  /** while no session leads, messages of members after this number wait */
  heldAfter?: number;
  /** that must pass before the team's work is committed */
  checks?: Check[];
  /** that tasks can name as their check */
  commands?: NamedCommand[];
  /** the checks run in a clean checkout of the tree to commit */
  clean?: boolean;
  /** files that the checks change are committed too */
  changes?: boolean;
  /** git remote through which work travels between machines; empty for a team on one machine */
  remote?: string;
  /** the project when the team was created */
  base?: Base;
  consolidation?: Consolidation;
  /** the history before this journal's */
  restored?: Restored;
  missing?: Missing[];
  released?: Released;
  hooksOff?: HookOff[];
  /** permission rules that were added while the team worked */
  rules?: Rule[];
  /** since when it winds down or is complete; 0 while it is active, or if unknown */
  endingAt?: number;
  /** what its creator keeps with it */
  metadata?: { [key: string]: unknown };
}

/** Nested says what the teams of a member are made from. One of File, Template and Goal is set. */
export interface Nested {
  /** absolute path of a team file */
  file?: string;
  /** SHA-256 of that file, or of the template; another text of it is not run */
  digest?: string;
  /** name of a template; one from before templates had digests has none */
  template?: string;
  /** what the team is to do, which an agent leads */
  goal?: string;
  /** agent that leads to the goal; empty for the first installed one */
  leader?: string;
  /** values for the parameters of the file or template: NAME=VALUE */
  set?: string[];
}

/** Plan is the approval of a member's plan. */
export interface Plan {
  /** it may not write before a plan is approved */
  required?: boolean;
  /** submitted, approved or rejected; empty for none */
  state?: string;
  /** id of the last plan */
  request?: string;
  /** the plan, while it waits for an answer */
  text?: string;
  /** why the last plan was rejected */
  feedback?: string;
  /** when the plan is rejected without an answer; 0 for never */
  deadline?: number;
  /** when the last plan was submitted */
  askedAt?: number;
}

/** Shutdown is a request to a member to end. */
export interface Shutdown {
  /** id of the request; empty for no request */
  request?: string;
  /** why the member is to end */
  reason?: string;
  /** when the session ends whatever it answers */
  deadline?: number;
  /** approved or rejected; empty before the answer */
  answer?: string;
}

/** Left is the work of a member on its branch that HEAD did not contain when it was last examined. Git keeps the commit With for as long as the branch that it was merged into. */
export interface Left {
  /** name of the branch */
  branch?: string;
  /** last commit on it */
  commit?: string;
  /** id of the task that asks the lead to merge the branch; empty if it waits for the consolidation */
  task?: string;
  /** commit of the changes in the team's directory that conflict with the branch; empty for none */
  with?: string;
  /** the lead deleted that task: the branch is left out until it gets another commit */
  out?: boolean;
}

/** Told says how much of what happened to the team a teammate was told. */
export interface Told {
  /** number of the last task that it was told of */
  tasks?: number;
  /** number of the last join or end of a member that it was told of */
  changes?: number;
  /** number of the last change of a note that it was told of */
  notes?: number;
}

/** Member is the lead or a teammate. */
export interface Member {
  /** name of the member, unique in the team */
  name?: string;
  /** agent that runs its sessions: claude, codex, shell, external, … */
  agent?: string;
  /** model that it uses; empty for the agent's own */
  model?: string;
  /** executable instead of the agent's own */
  program?: string;
  /** arguments that are added to the agent's own */
  args?: string[];
  /** NAME=value, added to its environment */
  env?: string[];
  /** its role; empty for none */
  role?: string;
  /** what it is told first */
  prompt?: string;
  /** color in which its agent shows it, if the agent reports one */
  color?: string;
  /** what its teams are made from, if it is a team; left out for other members */
  nested?: Nested;
  /** worktree if it has a git worktree and branch of its own; empty for the team's directory */
  isolation?: string;
  /** spawning, active, idle, blocked, shutting_down, stopped or failed */
  status?: string;
  /** since when it has that status */
  since?: number;
  /** number of its present session; counts from 1 */
  incarnation?: number;
  /** default, acceptEdits, auto, bypassPermissions, dontAsk or plan; empty for default */
  permissionMode?: string;
  /** permission mode that it has as soon as the parent team allows it; empty for the present one */
  ownMode?: string;
  /** its plan, if it works in plan mode */
  plan?: Plan;
  shutdown?: Shutdown;
  /** labels of the machine that runs it; none where the team itself is run */
  runsOn?: string[];
  /** name of the machine with a label that last ran it; empty for none */
  machine?: string;
  /** id of the host that holds its lease; empty for none */
  host?: string;
  /** number of its present lease; older leases are void */
  lease?: number;
  /** the agent's own id of its session, for resuming it */
  session?: string;
  /** what it is doing, in its own words, or why it ended */
  summary?: string;
  /** for its next session: why that starts, and what the last one knew */
  note?: string;
  /** why a fresh session should replace the present one; empty for no request */
  handover?: string;
  /** number of the request to interrupt its turn, until its next turn; 0 for none */
  interrupt?: number;
  /** failed turns and unexpected ends of sessions in a row */
  setbacks?: number;
  /** it is not started again before then */
  retryAt?: number;
  /** pool of its session, whose rate limit it shares; empty while it is unknown */
  pool?: string;
  /** since when it waits for a rate limit with its turn cut short; 0 for no such wait */
  limitedAt?: number;
  /** seq of the record that granted it its turn, in a team with MaxParallel; 0 for none */
  turn?: number;
  /** percent of its context that is full, by the agent's own figures */
  context?: number;
  /** when it joined the team */
  joinedAt?: number;
  /** tokens and cost of all its sessions */
  usage?: Usage;
  /** numbers of the messages that are not delivered to it yet, in order */
  inbox?: number[];
  /** number of the last message that was delivered to it */
  deliveredSeq?: number;
  /** it has read all messages up to this number */
  readSeq?: number;
  /** numbers of late messages that the lead was notified of */
  late?: number[];
  /** since when it is recorded as offline; 0 while it is not */
  offline?: number;
  /** number of times that late messages were sent again */
  resent?: number;
  /** its work on a branch that is not merged yet */
  left?: Left;
  /** what its present session has cost, in millionths of a US dollar */
  sessionCost?: number;
  budget?: Budget;
  /** which of its own budgets is spent: tokens, cost or time; empty for none */
  exhausted?: string;
  alerted?: Alerted[];
  /** its team file no longer has it, and it is not replaced */
  dropped?: boolean;
  /** digests of what its team file says of it, as key=digest; left out for a member of no file */
  fileDigests?: string[];
  /** usage of its predecessors, which counts against its budget */
  inherited?: Usage;
  /** when the first member with its budget joined; 0 if it is the first itself */
  budgetFrom?: number;
  /** number of joins and ends of members, up to its own last one */
  change?: number;
  /** what it was told of tasks and members */
  told?: Told;
}

/** TaskCheck is a command that must pass before a task is completed. */
export interface TaskCheck {
  /** command for /bin/sh */
  run?: string;
  /** how often it is tried in one attempt until it passes; 0 for a plain check */
  rounds?: number;
  /** name of the team's command that `run` was taken from; empty for none */
  name?: string;
}

/** Verify says who must accept a task before it counts as completed. */
export interface Verify {
  /** name of a member, else a role */
  by?: string;
  /** how many verify it in each round; 0 for 1 */
  count?: number;
  /** all or majority; empty for all */
  rule?: string;
  /** after that many rejections the attempt has failed; 0 for 3 */
  rounds?: number;
}

/** Submission is a result that others verify. */
export interface Submission {
  /** member that submitted it */
  by?: string;
  /** member that had the task in progress, if the lead submitted it; else empty */
  holder?: string;
  /** what is said of it; it becomes the task's result */
  result?: string;
  /** number of the round, from 1 */
  round?: number;
  /** ids of the verifications of this round */
  tasks?: string[];
  /** when it was submitted */
  at?: number;
  /** when the task was claimed, before that */
  startedAt?: number;
}

/** TaskRejection is the last rejection of a task's result, and how often each of the task's demands rejected the present attempt. */
export interface TaskRejection {
  /** result, check, or the names of the members that verified it */
  by?: string;
  /** why */
  feedback?: string;
  /** results that did not fit */
  results?: number;
  /** failures of the check */
  checks?: number;
  /** rejections by members */
  verifications?: number;
}

/** Axis is one dimension of a matrix. */
export interface Axis {
  /** key of the values in an item */
  name?: string;
  /** any JSON values */
  values?: unknown[];
}

/** ForEach says for which items a task is done. One of the lists, the pattern, or the command is set; with none of them there are no items. */
export interface ForEach {
  /** the items themselves */
  items?: unknown[];
  /** the items are the combinations of the values, the last axis changing fastest */
  matrix?: Axis[];
  /** objects: combinations that have the values of one of them are left out */
  exclude?: unknown[];
  /** the items are the files that the pattern covers */
  glob?: string;
  /** the items are what this command prints: lines, or a JSON list */
  run?: string;
}

/** Saved is a member's unfinished work on a task, saved when the member could not continue. */
export interface Saved {
  /** who did the work */
  member?: string;
  /** last commit before its uncommitted changes */
  commit?: string;
  /** uncommitted changes, as a patch against the commit */
  diff?: string;
  /** what the diff lacks, and where it is */
  note?: string;
  /** last output of the member or its command */
  output?: string;
  /** when it was saved */
  at?: number;
}

/** Work is what a task did, in git. A host records the task's starting point, and completes the record when the task is completed. Base..Commit is what the task did. In a worktree these are commits on the member's branch. In the team's directory they are snapshots that no branch points at. */
export interface Work {
  /** who did it */
  member?: string;
  /** branch of the commits; empty for the team's directory */
  branch?: string;
  /** the machine with labels on which it was done, which alone can record it; empty where the team is run. */
  machine?: string;
  /** commit at the start; empty if `left` says why it is unknown */
  base?: string;
  /** last commit, or `base` if nothing changed; empty until completion, or if `left` says why it is unknown */
  commit?: string;
  /** changed files, from the top of the repository; of very many the first ones */
  files?: string[];
  /** what no commit contains, and why; what else the record lacks */
  left?: string[];
  /** members that worked in the same directory at the same time, so that some of `files` may be theirs */
  others?: string[];
  /** number of the claim under which it was done */
  fence?: number;
  /** when `base` was recorded */
  since?: number;
  /** the task is completed or submitted, and its record is final */
  done?: boolean;
}

/** Task is a piece of work on the team's list. */
export interface Task {
  /** number of the task: "1", "2", … */
  id?: string;
  /** name of the task; empty for a task without one */
  name?: string;
  /** its title */
  subject?: string;
  /** what to do */
  description?: string;
  /** what a member is doing while it works on the task, as in "Writing the tests" */
  activeForm?: string;
  /** pending, in_progress, completed or deleted */
  status?: string;
  /** member that has it, or that it is assigned to */
  owner?: string;
  /** another member or the user named the owner, who keeps it when it is released */
  assigned?: boolean;
  /** only members of this role take it; empty for any */
  role?: string;
  /** ids of the tasks that must be completed first */
  blockedBy?: string[];
  /** ids of the tasks that wait for it */
  blocks?: string[];
  /** low, medium, high or critical */
  priority?: string;
  /** command for a shell member */
  run?: string;
  /** where the command runs: merged, or empty for its member's directory */
  in?: string;
  /** directory below that one in which the command runs */
  dir?: string;
  /** NAME=value, added to its environment */
  env?: string[];
  /** always, failed, or empty for after its blockers are done */
  when?: string;
  /** limit for one attempt of its command, in milliseconds; 0 for an hour */
  timeoutMs?: number;
  /** number of failed attempts that are repeated */
  retries?: number;
  /** number of the newest claim; older claims are void */
  fence?: number;
  /** number of claims so far */
  attempts?: number;
  /** number of attempts that failed */
  failures?: number;
  /** why the last attempt failed; kept until the next claim */
  failure?: string;
  /** who made that attempt; kept as long */
  failedBy?: string;
  /** what its owner reported when it was completed */
  result?: string;
  /** who added it: a member, or @user */
  createdBy?: string;
  /** who completed it */
  completedBy?: string;
  /** when it was added */
  createdAt?: number;
  /** when it last changed */
  updatedAt?: number;
  /** when it was last claimed; 0 while it is pending */
  startedAt?: number;
  /** when it was completed */
  completedAt?: number;
  /** tokens and cost of the work on it */
  usage?: Usage;
  /** JSON `schema` that its result must fit; left out for any result */
  schema?: unknown;
  /** command that must pass before it is completed; left out for none */
  check?: TaskCheck;
  /** who must accept it before it counts as completed; left out for nobody */
  verify?: Verify;
  /** its result, while others verify it; else nil. It is replaced, never changed */
  submission?: Submission;
  /** who worked on it since it was last completed, where others verify it */
  workers?: string[];
  /** the last result that was sent back, until it is completed; left out for none. It is replaced, never changed */
  rejected?: TaskRejection;
  /** why it will never run, if it counts as completed because of that; empty for other tasks */
  skipped?: string;
  /** who accepted it, once it is completed */
  verified?: string[];
  /** id of the task that this one verifies; empty for other tasks */
  verifies?: string;
  /** what came of verifying: accepted or rejected; empty before that */
  verdict?: string;
  /** the last text of the turn in which it was completed without a result */
  lastWords?: string;
  /** what its creator keeps with it */
  metadata?: { [key: string]: unknown };
  /** patterns of the files that it changes; none for a task that says nothing of them */
  paths?: string[];
  /** patterns that belong to it while it is in progress: its paths, and those that its owner added */
  holds?: string[];
  /** the items for which it makes tasks that do it; left out for a task that is done by a member. It is replaced, never changed */
  forEach?: ForEach;
  /** it has made these tasks, and waits for them */
  expanded?: boolean;
  /** id of the group that made it; empty for a task that no group made */
  of?: string;
  /** the item of that group */
  item?: unknown;
  /** digests of what its team file says of it, as key=digest; left out for a task of no file */
  fileDigests?: string[];
  /** what the last owner had done when it could not continue; left out for nothing. It is replaced, never changed */
  saved?: Saved;
  /** where it started, and once it is completed what it did; nil before that is recorded. It is replaced, never changed */
  work?: Work;
  /** ids of the open tasks that it waits for now */
  blocked?: string[];
  /** pending, blocked, in_progress, verifying, failed, skipped, completed or deleted */
  state?: string;
}

/** News tells one recipient of a message which tasks were added, who joined or ended, and which notes others changed. It comes with a message that starts a turn, and never starts one by itself. */
export interface News {
  /** name of the recipient */
  member?: string;
  /** what the recipient gets: one line, and below it one for each note that changed */
  text?: string;
  /** what the recipient was told with this line */
  told?: Told;
}

/** Message is one entry of the mailbox. */
export interface Message {
  /** number of the message */
  seq?: number;
  /** name of the sender; empty for a message of the team itself */
  from?: string;
  /** name of the recipient, or "*" for a broadcast */
  to?: string;
  /** names of the recipients of a broadcast */
  recipients?: string[];
  /** one of the types above */
  type?: string;
  /** info, question, challenge, resolution, or empty */
  intent?: string;
  /** normal or urgent */
  priority?: string;
  /** text of the message */
  body?: string;
  /** short version by its sender; empty for none */
  summary?: string;
  /** id of the request or task that it belongs to */
  ref?: string;
  /** session of the recipient that it is for; 0 for any */
  incarnation?: number;
  /** it starts no turn: it comes with the next message that does */
  quiet?: boolean;
  /** when it was sent */
  sentAt?: number;
  /** when it was last sent again */
  resentAt?: number;
  /** what its sender keeps with it */
  metadata?: { [key: string]: unknown };
  /** what recipients were not told yet of tasks and members */
  news?: News[];
}

/** Hint says which action would help, and on what. It is data: a front end renders it, and may omit an action that it does not offer. */
export interface Hint {
  /** one of the actions above */
  action: string;
  /** name of the team */
  team?: string;
  /** name of the member */
  member?: string;
  /** id of the task */
  task?: string;
  /** name of the task; empty for a task without one */
  taskName?: string;
  /** the number of a task without a name, with a mark (#3), where another task has that number as its name; else empty */
  taskRef?: string;
  /** key of the note */
  note?: string;
  /** id of the request or plan */
  request?: string;
  /** for spawn: a free name, or empty for any; for release: the machine that has the team, empty for this one; else a remote, branch or worktree */
  name?: string;
  /** for spawn: agent of the new member, or empty for any */
  agent?: string;
  /** for raise_budget: tokens, cost or time */
  budget?: string;
  /** for move, trust: the directory; for release: that of another copy on this machine; else of the repository */
  dir?: string;
  /** for revert_work, show_file, keep_commit, push_commit, revert_commit: id of the commit or tree */
  from?: string;
  /** for revert_work: id of the commit that has the files as they were; for revert_commit: of the first parent of a merge */
  to?: string;
  /** for go_without: ids of the tasks */
  tasks?: string[];
  /** for include_files, commit_only, rollback_task and show_file */
  paths?: string[];
}

/** Note is a text that all members share, under a key: a decision, an interface that was agreed, what was tried. The state has the present notes; the journal has their older versions. */
export interface Note {
  /** its name: parts of letters, digits, _, - and ., with / between them */
  key?: string;
  /** all of it */
  text?: string;
  /** who set it first: a member, or @user */
  setBy?: string;
  /** when it was set first */
  setAt?: number;
  /** who changed it last */
  updatedBy?: string;
  /** when it changed last */
  updatedAt?: number;
  /** number of its last change, among the changes of all notes of the team */
  seq?: number;
}

/** Problem is the answer to a request that failed, in the form of RFC 9457. */
export interface Problem {
  /** about:blank: the code says which problem it is */
  type: string;
  /** the words of the HTTP status */
  title: string;
  /** the HTTP status */
  status: number;
  /** what failed, and why */
  detail: string;
  /** one of the codes in docs/exit-statuses.md, or of Codes */
  code: string;
  /** what would help */
  hints?: Hint[];
  /** for gone: the first record that is still there; for ahead: the last one */
  seq?: number;
  /** for a check that failed: the end of what it printed */
  output?: string;
  /** for a conflict about a note: the note as it is */
  note?: Note;
}

/** Health says whether the server answers. */
export interface Health {
  /** it answers */
  healthy: boolean;
  /** version of the program */
  version: string;
}

/** Caller is who sends the request, as the server sees it. */
export interface Caller {
  /** the person who owns the home */
  user: boolean;
  /** for a member: its team */
  team?: string;
  /** for a member: its name */
  member?: string;
  /** for the user: observe, answer, steer or admin */
  role: string;
  /** name of the token; missing on the unix socket */
  token?: string;
}

/** Team is a team of the list with its present state. */
export interface SupervisorTeam {
  /** id of the team */
  id: string;
  /** name of the team */
  name: string;
  /** resume it even if it is paused: it was added, or stopped with the server */
  start?: boolean;
  /** a process runs it */
  running: boolean;
  /** why it is not running */
  why?: string;
  /** how often in a row it could not be resumed */
  tries?: number;
}

/** CodeSpec asks for a one-time code. */
export interface CodeSpec {
  /** token whose role the browser gets; the one of this request by default */
  token?: string;
  /** scheme and host at which the browser is to open the login, such as https://my-tunnel.example; refused if the server does not answer there */
  address?: string;
}

/** LoginCode is a one-time code for a browser. */
export interface LoginCode {
  /** to be opened as /login?code=CODE */
  code: string;
  /** until when it can be used, once */
  expires: number;
}

/** Item is one thing that waits for a person, or for an agent that leads and can handle it. */
export interface Item {
  /** one of the kinds above */
  kind: string;
  /** user, or the name of the lead */
  waitsFor: string;
  /** member that it concerns */
  member?: string;
  /** id of the task that it concerns */
  task?: string;
  /** id of the request or plan that waits for an answer */
  request?: string;
  /** name of the budget, check or hook that it concerns */
  about?: string;
  /** since when it waits; 0 if unknown */
  since?: number;
  /** when it is denied without an answer; 0 for never */
  deadline?: number;
  /** a sentence for people; it may quote what agents wrote */
  text: string;
  /** what would help */
  hint: Hint;
}

/** Overview is a team in a list. */
export interface Overview {
  /** id of the team */
  id: string;
  /** name of the team */
  name: string;
  /** pending, active, consolidating, complete or aborted */
  status: string;
  /** what the team is to do */
  goal?: string;
  /** absolute path of the directory in which it works */
  dir: string;
  /** why the directory cannot be used, for example because it was moved */
  unusable?: string;
  /** repository that the directory is in, or else the directory */
  project: string;
  /** the command was called in that project */
  here?: boolean;
  /** it is a finished run whose name was given to a new one */
  archived?: boolean;
  /** name of the lead */
  lead: string;
  /** the lead may only coordinate */
  delegate: boolean;
  /** how deep it is nested in other teams; 0 for a team by itself */
  depth?: number;
  /** id of the team that it is nested in; empty for none */
  parent?: string;
  /** ids of the teams that its members run, in the order in which they began */
  children?: string[];
  /** name that its own agents have for it, where the team is only observed */
  observed?: string;
  /** not a team but one session is observed, of the agent that `observed` names */
  session?: boolean;
  /** a running process observes it */
  watched?: boolean;
  /** a running process hosts its sessions */
  hosted: boolean;
  /** a running process leads it */
  led: boolean;
  /** no process of it is alive, although one should be */
  dormant: boolean;
  /** a consolidation was started, and no process runs it */
  interrupted?: boolean;
  /** number of tasks by status */
  tasks: { [key: string]: number };
  /** number of teammates that have not ended */
  teammates: number;
  /** number of those whose sessions cadre runs: all but external ones */
  sessions: number;
  /** number of teammates that send no heartbeats */
  offline?: number;
  /** number of teammates that work without a lead */
  zombies?: number;
  /** number of all messages */
  messages: number;
  /** tokens and cost of all members together */
  usage: Usage;
  /** which budget is spent: tokens, cost or time; empty for none */
  exhausted?: string;
  /** path of the lead's report; empty before there is one */
  report?: string;
  /** number of records in its history */
  seq: number;
  /** when the team was created */
  createdAt: number;
  /** when it last changed */
  updatedAt: number;
  /** since when it continues on another machine */
  releasedAt?: number;
  /** the place of teams, such as a database, where it continues */
  movedTo?: string;
  /** when the processes were checked */
  lookedAt: number;
  /** what waits for a person */
  attention: Item[];
  /** what its creator keeps with it */
  metadata?: { [key: string]: unknown };
  /** "ready" if it winds down and can be consolidated, "winding_down" if it cannot yet, empty otherwise */
  winding?: string;
}

/** BudgetSpec limits what a team or a member may spend; 0 for no limit. */
export interface BudgetSpec {
  /** tokens of all kinds together */
  tokens?: number;
  /** millionths of a US dollar */
  costMicroUSD?: number;
  /** milliseconds since the team was created or the member joined */
  millis?: number;
}

/** CheckSpec is a check of a team's work. */
export interface CheckSpec {
  /** name of the check; its command by default */
  name?: string;
  /** command for /bin/sh, run in the team's directory */
  command: string;
}

/** TeamSpec describes a team to create. */
export interface TeamSpec {
  /** name of the team, unique in the project */
  name: string;
  /** what the team is to do */
  goal?: string;
  /** name of the lead; lead by default */
  lead?: string;
  /** what the lead and its members may do without asking */
  permissionMode?: string;
  /** the lead may only coordinate */
  delegate?: boolean;
  /** teammates that run at a time; 0 for the default */
  maxTeammates?: number;
  /** teammates that have a turn at a time; 0 for no limit */
  maxParallel?: number;
  /** how deep teams may be nested in it; 0 for none */
  maxDepth?: number;
  /** git remote through which the work of members travels between machines */
  remote?: string;
  /** what the team may spend */
  budget?: BudgetSpec;
  /** commands that have to pass before its work is committed */
  checks?: CheckSpec[];
  /** rules for tools that need no permission */
  allow?: string[];
  /** who answers if no rule does: user, lead, allow or deny */
  policy?: string;
  /** what the creator keeps with the team */
  metadata?: { [key: string]: unknown };
}

/** Permission is a member's request that waits for an answer. */
export interface Permission {
  /** id of the request */
  request?: string;
  /** who asks */
  member?: string;
  /** number of the session that asks */
  incarnation?: number;
  /** name of the tool */
  tool?: string;
  /** input that the tool would get, as JSON */
  input?: string;
  /** when it is denied without an answer */
  deadline?: number;
  /** when it was asked; 0 in records of older versions */
  askedAt?: number;
}

/** PermissionRule is a rule that lets members use a tool without asking. */
export interface PermissionRule {
  /** as Claude Code writes it */
  rule: string;
  /** the only member that it is for; missing for all */
  member?: string;
  /** what it allows, in words */
  allows: string;
  /** who added it; missing for rules that the team was created with */
  by?: string;
  /** when it was added */
  at?: number;
  /** requests that waited, and that it allowed when it was added */
  allowed?: string[];
}

/** Spent is how much of one budget is used. */
export interface Spent {
  /** tokens, cost (in millionths of a US dollar) or time (in milliseconds) */
  what: string;
  /** how much is used, in the unit of `what` */
  used: number;
  /** the limit, in the unit of `what` */
  limit: number;
}

/** State is a team as it was after a record, or as it is now. */
export interface State {
  /** the record after which the team was like this */
  seq: number;
  /** the last record that there is */
  last: number;
  /** the team as a whole */
  team: Team;
  /** the lead and the teammates */
  members: Member[];
  /** all tasks */
  tasks: Task[];
  /** requests that wait for an answer */
  permissions: Permission[];
  /** permission rules of the team */
  rules: PermissionRule[];
  /** notes that the team shares, by their keys */
  notes: Note[];
  /** number of all messages */
  messages: number;
  /** what waits for a person */
  attention: Item[];
  /** use of each of the team's budgets */
  budget: Spent[];
  /** what each member does, by its name */
  standings: { [key: string]: string };
  /** what is known only of the present: which processes run, and what they were found to do; missing for an earlier record */
  now?: Overview;
}

/** ReportedRateLimit is a rate limit as people see it. */
export interface ReportedRateLimit {
  /** what the members share: agent, endpoint, source of the credentials, model */
  pool: string;
  /** since when the pool is limited */
  since: number;
  /** no turn of a member starts before */
  endsAt: number;
  /** the member that was refused last */
  by: string;
  /** the reason, in the words of its agent */
  text?: string;
  /** the members that wait for it */
  members: string[];
}

/** Checked is a check, and how it ended in the last consolidation: passed, failed, or "" if it did not run. */
export interface Checked {
  /** name of the check */
  name: string;
  /** passed, failed, or empty if it did not run */
  result?: string;
}

/** ChildTeam is a team that a member runs for a task. */
export interface ChildTeam {
  /** id of the team */
  id: string;
  /** name of the team */
  name: string;
  /** id of the team of its member */
  parent: string;
  /** how deep it is below the team that is shown, from 1 */
  level: number;
  /** member that runs it */
  member: string;
  /** id of the task whose result its report is */
  task: string;
  /** pending, active, consolidating, complete, aborted, or removed */
  status: string;
  /** nothing more is expected of it */
  over?: boolean;
  /** number of its tasks */
  tasks: number;
  /** number of those that are completed */
  completed: number;
}

/** Standing is what a person sees of a team at a glance: its progress, what each member does, what comes next, and what waits. */
export interface Standing {
  /** id of the team */
  id: string;
  /** name of the team */
  name: string;
  /** pending, active, consolidating, complete or aborted */
  status: string;
  /** what the team is to do */
  goal?: string;
  /** absolute path of the directory in which it works */
  dir: string;
  /** why the directory cannot be used, for example because it was moved */
  unusable?: string;
  /** repository that the directory is in, or else the directory */
  project: string;
  /** the command was called in that project */
  here?: boolean;
  /** it is a finished run whose name was given to a new one */
  archived?: boolean;
  /** name of the lead */
  lead: string;
  /** the lead may only coordinate */
  delegate: boolean;
  /** how deep it is nested in other teams; 0 for a team by itself */
  depth?: number;
  /** id of the team that it is nested in; empty for none */
  parent?: string;
  /** ids of the teams that its members run, in the order in which they began */
  children?: string[];
  /** name that its own agents have for it, where the team is only observed */
  observed?: string;
  /** not a team but one session is observed, of the agent that `observed` names */
  session?: boolean;
  /** a running process observes it */
  watched?: boolean;
  /** a running process hosts its sessions */
  hosted: boolean;
  /** a running process leads it */
  led: boolean;
  /** no process of it is alive, although one should be */
  dormant: boolean;
  /** a consolidation was started, and no process runs it */
  interrupted?: boolean;
  /** number of tasks by status */
  tasks: { [key: string]: number };
  /** number of teammates that have not ended */
  teammates: number;
  /** number of those whose sessions cadre runs: all but external ones */
  sessions: number;
  /** number of teammates that send no heartbeats */
  offline?: number;
  /** number of teammates that work without a lead */
  zombies?: number;
  /** number of all messages */
  messages: number;
  /** tokens and cost of all members together */
  usage: Usage;
  /** which budget is spent: tokens, cost or time; empty for none */
  exhausted?: string;
  /** path of the lead's report; empty before there is one */
  report?: string;
  /** number of records in its history */
  seq: number;
  /** when the team was created */
  createdAt: number;
  /** when it last changed */
  updatedAt: number;
  /** since when it continues on another machine */
  releasedAt?: number;
  /** the place of teams, such as a database, where it continues */
  movedTo?: string;
  /** when the processes were checked */
  lookedAt: number;
  /** what waits for a person */
  attention: Item[];
  /** what its creator keeps with it */
  metadata?: { [key: string]: unknown };
  /** "ready" if it winds down and can be consolidated, "winding_down" if it cannot yet, empty otherwise */
  winding?: string;
  /** the lead and the teammates */
  members: Member[];
  /** what each member does, from what was recorded and what was found */
  standings: { [key: string]: string };
  /** requests that wait for an answer */
  permissions: Permission[];
  /** use of each of the team's budgets */
  budget: Spent[];
  /** the rate limits for which members wait */
  rateLimits?: ReportedRateLimit[];
  /** agents that do not report their cost, if there is a budget of money */
  uncounted?: string[];
  /** the checks, and how they ended in the last consolidation */
  checks: Checked[];
  /** number of tasks that a member could claim */
  ready: number;
  /** number of tasks that wait for others */
  blocked: number;
  /** number of tasks that are out of retries */
  failed: number;
  /** the first tasks in progress */
  underway: Task[];
  /** the first tasks that a member could claim */
  next: Task[];
  /** the first failed tasks */
  failures?: Task[];
  /** the teams that its members run, in the order in which they began, each before the teams in it */
  childTeams?: ChildTeam[];
  /** tokens and cost by the id of the task, without tasks that used none */
  taskUsage?: { [key: string]: Usage };
}

/** Record is one accepted command: its events happen together. Its encoding leaves Seq out, because the journal knows it. */
export interface TeamRecord {
  /** number of the record in the history, from 1 */
  seq?: number;
  /** id of the command; sending it again with the same id changes nothing */
  id?: string;
  /** who sent the command: a member, @user, or @host:ID */
  actor?: string;
  /** when the command was accepted */
  at?: number;
  /** how it came in, such as "token phone"; empty for a command of this machine's user or a member */
  via?: string;
  /** what changed, in order */
  events?: Event[];
  /** version of the format */
  v?: number;
}

/** Mark is a record worth a look. */
export interface Mark {
  /** number of the record */
  seq: number;
  /** when it was recorded */
  at: number;
  /** failure, wait or commit */
  kind: string;
  /** kind of the event */
  event: string;
  /** member that it concerns */
  member?: string;
  /** id of the task that it concerns */
  task?: string;
}

/** Marks are records worth a look. */
export interface Marks {
  /** in the order of their records */
  marks: Mark[];
}

/** Since sums up what happened after a record. */
export interface Since {
  /** the first record that is summed up; 0 for none */
  from: number;
  /** the last one */
  to: number;
  /** what happened, the most urgent first, a sentence each */
  lines: string[];
}

/** Paused is how a team was paused. */
export interface Paused {
  /** the team as it is now */
  team: Team;
  /** members whose sessions were ended */
  members?: string[];
  /** number of hosts that ended; 0 if none was running */
  hosts: number;
}

/** On switches something. */
export interface On {
  /** on or off */
  on: boolean;
}

/** Reason says why something is done. */
export interface Reason {
  /** why, for the history and for those whom it concerns */
  reason?: string;
}

/** Removal says how a team is removed. */
export interface Removal {
  /** end running members, and remove branches whose commits would be lost */
  force?: boolean;
  /** also remove the team's branches */
  branches?: boolean;
}

/** MemberSpec describes a teammate to add. Its agent is one that is installed: no request names a program, its arguments or its environment. */
export interface MemberSpec {
  /** name of the member, unique in the team */
  name: string;
  /** claude, codex, gemini, opencode, claude-tmux, external, or shell by default */
  agent?: string;
  /** model; by default the agent's own choice */
  model?: string;
  /** role; tasks can be restricted to a role */
  role?: string;
  /** prompt of its first session */
  prompt?: string;
  /** what it may do without asking; the lead's mode by default */
  permissionMode?: string;
  /** it may change nothing before the lead approved its plan */
  planApproval?: boolean;
  /** worktree for a git worktree and a branch of its own */
  isolation?: string;
  /** labels of the machine that runs it; by default it runs where the team does */
  runsOn?: string[];
  /** what it may spend */
  budget?: BudgetSpec;
}

/** Entry is one thing that a session showed. */
export interface Entry {
  /** number of the entry; counts from 1 over all sessions of the member */
  seq: number;
  /** when it was shown */
  at: number;
  /** one of the kinds above, which says what the other fields mean */
  kind: string;
  /** id of the tool use, question or plan */
  id?: string;
  /** name of the tool */
  tool?: string;
  /** what was written, asked, answered or put out */
  text?: string;
  /** only the beginning of the text is kept, or the end of a result */
  cut?: boolean;
  /** the tool use, turn or session failed, or the question was refused */
  failed?: boolean;
  /** the turn was interrupted */
  interrupted?: boolean;
  /** tokens and cost that were added */
  usage?: Usage;
  /** percent of the context that is full */
  context?: number;
  /** how much before the entry or its text is not kept: entries, bytes of an output, or lines of a result */
  count?: number;
}

/** ShutdownSpec asks a teammate to end. */
export interface ShutdownSpec {
  /** why, for the teammate */
  reason?: string;
  /** milliseconds until it is ended, whatever it answers; 30 seconds by default */
  deadlineMs?: number;
}

/** ShutdownAnswer is a member's answer to a request to shut down. */
export interface ShutdownAnswer {
  /** the member leaves */
  approved: boolean;
  /** a last word to the lead, or why it stays */
  reason?: string;
}

/** Leaving is a member's answer to a request to shut down, as it was recorded. */
export interface Leaving {
  /** who answered */
  member: string;
  /** id of the request; missing for a member that had ended before */
  request?: string;
  /** the member leaves */
  approved: boolean;
}

/** ModeSpec is what a member may do without asking. */
export interface ModeSpec {
  /** default, acceptEdits, auto, bypassPermissions, dontAsk or plan */
  mode: string;
}

/** TaskSpec describes a task to add. */
export interface TaskSpec {
  /** name of the task; its number by default */
  name?: string;
  /** what is to be done, in a few words */
  subject: string;
  /** the rest of what its member has to know */
  description?: string;
  /** member that it is for */
  owner?: string;
  /** role of the members that may claim it */
  role?: string;
  /** tasks that must be done first, by their ids or names */
  blockedBy?: string[];
  /** low, medium, high or critical */
  priority?: string;
  /** command of a task for a shell member; needs the role admin */
  run?: string;
  /** command that must pass before it is completed; needs the role admin */
  check?: string;
  /** how often one attempt at the task is tried until the check passes; 0 for a plain check */
  rounds?: number;
  /** JSON `schema` that its result must fit */
  schema?: unknown;
  /** when it may start: completed, after the tasks before it are done; failed, if one of them has failed; always, in both cases */
  when?: string;
  /** longest time of the command in milliseconds; 0 for an hour */
  timeoutMs?: number;
  /** patterns of the files that it changes */
  paths?: string[];
  /** how often it is tried again after a failure */
  retries?: number;
  /** items, a pattern or a command: one task is made for each item; a command needs the role admin */
  forEach?: ForEach;
  /** who must accept it before it counts as completed */
  verify?: Verify;
  /** what its creator keeps with it */
  metadata?: { [key: string]: unknown };
}

/** TaskChange changes a task. What is missing stays. */
export interface TaskChange {
  /** what is to be done */
  subject?: string;
  /** the rest of it */
  description?: string;
  /** member that it is for; empty for any */
  owner?: string;
  /** low, medium, high or critical */
  priority?: string;
  /** command for a shell member; needs the role admin */
  run?: string;
  /** keys to set; null removes one */
  metadata?: { [key: string]: unknown };
  /** tasks that must be done first, too */
  addBlockedBy?: string[];
  /** patterns of all files that it changes */
  paths?: string[];
  /** tasks that need not be done first any more */
  removeBlockedBy?: string[];
}

/** Outcome is how a task ended. Fence is the one of the claim; 0 checks only the owner. */
export interface Outcome {
  /** fence of the claim that ends */
  fence?: number;
  /** why it failed or is released */
  reason?: string;
  /** what was done or found */
  result?: string;
  /** of a task that verifies another one: accepted or rejected, with the reason as the result */
  verdict?: string;
}

/** TaskPaths are paths of a task in progress. */
export interface TaskPaths {
  /** patterns from the team's directory; none gives back all */
  paths?: string[];
}

/** Reassignment gives a task to another member. */
export interface Reassignment {
  /** name of the member */
  to: string;
  /** also from a member that is alive and works on it */
  force?: boolean;
}

/** Undoing says why the work of a task is undone. */
export interface Undoing {
  /** why, for the history */
  reason?: string;
}

/** Diff is what was changed for a task. Likely secrets are replaced. */
export interface Diff {
  /** who changed it */
  member: string;
  /** id of the task */
  task: string;
  /** the worktree as it is now; otherwise recorded or saved work */
  working: boolean;
  /** in the form that git apply takes */
  patch: string;
  /** files that are not in the patch, some with the reason */
  leftOut?: string[];
}

/** MailboxMessage is a message in one member's mailbox. */
export interface MailboxMessage extends Message {
  /** number of the message */
  seq?: number;
  /** name of the sender; empty for a message of the team itself */
  from?: string;
  /** name of the recipient, or "*" for a broadcast */
  to?: string;
  /** names of the recipients of a broadcast */
  recipients?: string[];
  /** one of the types above */
  type?: string;
  /** info, question, challenge, resolution, or empty */
  intent?: string;
  /** normal or urgent */
  priority?: string;
  /** text of the message */
  body?: string;
  /** short version by its sender; empty for none */
  summary?: string;
  /** id of the request or task that it belongs to */
  ref?: string;
  /** session of the recipient that it is for; 0 for any */
  incarnation?: number;
  /** it starts no turn: it comes with the next message that does */
  quiet?: boolean;
  /** when it was sent */
  sentAt?: number;
  /** when it was last sent again */
  resentAt?: number;
  /** what its sender keeps with it */
  metadata?: { [key: string]: unknown };
  /** what recipients were not told yet of tasks and members */
  news?: News[];
  /** when it was last delivered to the member; 0 for not yet */
  deliveredAt?: number;
  /** when it was marked as read; 0 for not yet */
  readAt?: number;
  /** when it was returned to its sender, because the member will never get it; 0 for not */
  returnedAt?: number;
}

/** MessageSpec is a message to one member. */
export interface MessageSpec {
  /** name of the member */
  to: string;
  /** the text */
  body: string;
  /** info, question, challenge or resolution */
  intent?: string;
  /** normal, or urgent: one of the user's interrupts the member */
  priority?: string;
  /** number of the message to the lead that it answers */
  answers?: number;
  /** what its sender keeps with it */
  metadata?: { [key: string]: unknown };
}

/** SentMessage is a message that was sent. */
export interface SentMessage {
  /** the message */
  message: Message;
  /** it waits until a session leads the team */
  held?: boolean;
  /** recipients that have no session until a session leads the team */
  resting?: string[];
}

/** BroadcastSpec is a message to all other members. */
export interface BroadcastSpec {
  /** the text */
  body: string;
  /** info, question, challenge or resolution */
  intent?: string;
  /** normal, or urgent: one of the user's interrupts the members */
  priority?: string;
  /** what its sender keeps with it */
  metadata?: { [key: string]: unknown };
}

/** Reading says up to where a member has read its mail. */
export interface Reading {
  /** number of the last message that it has read */
  through: number;
}

/** Choice names messages of a member. */
export interface Choice {
  /** their numbers; without them all that are late */
  messages?: number[];
}

/** Resent are the messages that were sent again. */
export interface Resent {
  /** whose messages they are */
  member: string;
  /** their numbers */
  messages: number[];
}

/** NoteText is a text for a note. */
export interface NoteText {
  /** all of the new text */
  text: string;
  /** the last change of the note that the writer has seen: a later change is a conflict, and the problem has the present note; 0 for a note that must not exist yet; any without it */
  ifSeq?: number;
}

/** NoteAddition is a text to add to a note. */
export interface NoteAddition {
  /** what is added, on a line of its own */
  text: string;
}

/** NoteChange is one change of a note. */
export interface NoteChange {
  /** number of the change, among the changes of all notes of the team */
  seq: number;
  /** number of the record in the history */
  record: number;
  /** who changed it: a member, or @user */
  by: string;
  /** when it changed */
  at: number;
  /** set, appended, deleted, or restored with the team from a checkpoint */
  how: string;
  /** the text that was set, appended or restored */
  text?: string;
  /** of the whole note after the change */
  bytes: number;
}

/** PermissionAnswer answers a request for permission. */
export interface PermissionAnswer {
  /** allow it; otherwise it is refused */
  allow: boolean;
  /** why, for the member */
  reason?: string;
  /** allow the member the same always, by the narrowest rule; needs the role admin */
  always?: boolean;
}

/** Answered is a request for permission or a plan with its answer. */
export interface Answered {
  /** id of the request or plan */
  request: string;
  /** who asked */
  member: string;
  /** allowed or denied; for a plan approved or rejected; empty if it still waits */
  outcome: string;
  /** the rule that was added, with always */
  rule?: string;
}

/** Plan is a plan that a member submitted, with its answer. The state of a team has only the plan that waits. */
export interface HistoryPlan {
  /** who submitted it */
  member: string;
  /** submitted, approved, rejected, or unanswered if its member no longer waits */
  state: string;
  /** id of the plan */
  request: string;
  /** text of the plan */
  plan: string;
  /** why it was rejected */
  feedback?: string;
  /** when it was submitted */
  askedAt: number;
  /** when it was answered; 0 for not yet */
  answeredAt?: number;
  /** who answered; empty if its deadline passed */
  answeredBy?: string;
}

/** PlanAnswer answers a plan. */
export interface PlanAnswer {
  /** the member may begin */
  approved: boolean;
  /** what the plan lacks, or advice */
  feedback?: string;
}

/** PlanSpec is the plan of a member. */
export interface PlanSpec {
  /** the text */
  plan: string;
}

/** Submitted is a plan that waits for its answer. */
export interface Submitted {
  /** who submitted the plan */
  member: string;
  /** id of the plan */
  request: string;
}

/** RuleSpec is a permission rule to add. */
export interface RuleSpec {
  /** as Claude Code writes it: Bash(go test:*) */
  rule: string;
  /** the only member that it is for; missing for all */
  member?: string;
  /** add it although it sets no bounds, or is for a tool that no agent is known to have; needs the role admin */
  unbounded?: boolean;
}

/** Limit is one part of a budget. */
export interface Limit {
  /** its name; empty for the team */
  member?: string;
  /** tokens, cost (in millionths of a US dollar) or time (in milliseconds) */
  what: string;
  /** in the unit of `what`; 0 for none */
  limit?: number;
  /** how much is used, in the unit of `what` */
  spent: number;
  /** how much of the limit is left, in the unit of `what` */
  left?: number;
  /** this budget is spent */
  exhausted?: boolean;
}

/** BudgetChange changes what a team or a member may spend. What is missing stays; 0 removes a limit. */
export interface BudgetChange {
  /** whose budget it is; missing for the team's */
  member?: string;
  /** tokens of all kinds together */
  tokens?: number;
  /** millionths of a US dollar */
  costMicroUSD?: number;
  /** milliseconds since the team was created or the member joined */
  millis?: number;
}

/** Checkpoint is the last checkpoint of a team in a repository. */
export interface Checkpoint {
  /** name of the team */
  name: string;
  /** remote that had the branch at the last fetch; empty for a branch of the repository itself */
  remote?: string;
  /** id of the checkpoint's commit */
  commit: string;
  /** id of the team; empty if the checkpoint cannot be read */
  teamId?: string;
  /** number of records in the checkpoint */
  seq?: number;
  /** pending, active, consolidating, complete or aborted */
  status?: string;
  /** number of pending tasks */
  pending: number;
  /** number of tasks in progress */
  inProgress: number;
  /** number of completed tasks */
  completed: number;
  /** when the last of its records was written */
  updatedAt?: number;
  /** names of the lead and the teammates */
  members?: string[];
  /** why the checkpoint cannot be read */
  why?: string;
  /** names of the teams in it that the checkpoint carries */
  children?: string[];
  /** git's name of it */
  branch: string;
  /** this home has that team */
  here: boolean;
  /** it is in the archive of this home */
  archived?: boolean;
}

/** Left is a path in the shared work tree that a checkpoint does not carry. */
export interface CheckpointLeft {
  /** path of the file or folder */
  path: string;
  /** why it is left out */
  why: string;
  /** git ignores it, so a consolidation would not commit it either */
  ignored?: boolean;
}

/** Checkpoint is a checkpoint that was made, or the last one where nothing was new. */
export interface ApiCheckpoint {
  /** id of the team */
  team: string;
  /** number of records in the checkpoint */
  seq: number;
  /** when the last of these records was written */
  at: number;
  /** id of the checkpoint's commit; empty outside a repository */
  commit: string;
  /** branch of the checkpoint; outside a repository a folder */
  place: string;
  /** the team had changed, so a new checkpoint was made */
  written: boolean;
  /** files that the checkpoint does not contain */
  left: CheckpointLeft[];
  /** number of further files that it does not contain */
  more?: number;
  /** why it contains no files of the team's directory */
  unknown?: string;
}

/** ConsolidationSpec says what is committed, and how it is checked. Its paths begin at the top of the work tree, with / between names, and have no .. in them. */
export interface ConsolidationSpec {
  /** first lines of the commit's message; by default made from the goal */
  message?: string;
  /** paths that are committed although they were changed before the team was created */
  include?: string[];
  /** the only paths that are committed */
  only?: string[];
  /** tasks with missing work that the team is completed without */
  without?: string[];
  /** the checks run in a clean checkout */
  clean?: boolean;
  /** files that the checks change are committed, too, and the checks run again */
  changes?: boolean;
  /** the team is completed without a commit */
  noCommit?: boolean;
}

/** Staged is a path of a plan. */
export interface Staged {
  /** from the top of the work tree */
  path: string;
  /** conflict, unclear, commit or left_out */
  fate: string;
  /** git's letter: A, D, M or T */
  change?: string;
  /** the members whose tasks changed it */
  from?: string[];
  /** the branch that it comes from; left out for the work tree */
  branch?: string;
  /** why it is not simply committed */
  why?: string;
}

/** Plan says what a consolidation would do now, path by path. Making a plan changes nothing. */
export interface ConsolidatePlan {
  /** the name of the team */
  team: string;
  /** the commit that the work would be committed on */
  parent?: string;
  /** what would be committed, and then what would not */
  paths: Staged[];
  /** the checks that run first */
  checks: string[];
  /** the branches of members that would be merged */
  branches: string[];
  /** why a consolidation is refused now */
  obstacle?: string;
}

/** Checked is a check that passed. */
export interface ConsolidateChecked {
  /** name of the check */
  name: string;
  /** command that was run by /bin/sh */
  command: string;
  /** how long it ran, in milliseconds */
  millis: number;
}

/** Trial describes checks that passed on work that was not committed. */
export interface Trial {
  /** its name */
  team: string;
  checks: ConsolidateChecked[];
  /** members' branches that were merged for the checks */
  branches: string[];
}

/** Member took part in the team. */
export interface ConsolidateMember {
  /** name of the member */
  name: string;
  /** agent that ran its sessions: claude, codex, shell, external, … */
  agent: string;
  /** model that it was told to use; empty for the agent's own */
  model?: string;
  /** its role; empty for none */
  role?: string;
}

/** Task is a completed task. */
export interface ConsolidateTask {
  /** number of the task */
  id: string;
  /** its name; empty for a task without one */
  name?: string;
  /** its title */
  subject: string;
  /** who completed it */
  by: string;
}

/** Record describes a consolidated team. It is written once. */
export interface ConsolidateTeamRecord {
  /** id of the team */
  team: string;
  /** name of the team */
  name: string;
  /** what the team was to do */
  goal?: string;
  /** absolute path of the directory in which it worked */
  dir: string;
  /** when the team was completed */
  at: number;
  /** who consolidated it: a member, or @user */
  by: string;
  /** number of the record in the history that completed the team */
  seq: number;
  /** SHA-256 of the history up to that record, one encoded record a line */
  journal: string;
  /** id of the commit; empty if nothing was committed */
  commit?: string;
  /** commit that HEAD pointed at before */
  parent?: string;
  /** id of the committed tree in git */
  tree?: string;
  /** number of files that the commit changes */
  files: number;
  /** the checks that passed */
  checks: ConsolidateChecked[];
  /** the lead and the teammates */
  members: ConsolidateMember[];
  /** the completed tasks */
  tasks: ConsolidateTask[];
  /** number of attempts at the consolidation */
  attempts: number;
}

/** Consolidated is the record of a team that was consolidated. */
export interface Consolidated {
  /** as in the file COMPLETED */
  record: ConsolidateTeamRecord;
  /** files that the commit changes, each after git's status letter, as in "M main.go" */
  staged: string[];
}

/** Fact compares a file that all members rely on with its recorded state. */
export interface InspectFact {
  /** what members call it */
  name?: string;
  /** absolute, or relative to the team's directory */
  path?: string;
  /** SHA-256 of its content, in hex; empty if the file does not exist */
  sha256?: string;
  /** SHA-256 of its content now, in hex; empty if it cannot be read */
  now: string;
  /** the file has changed since it was recorded */
  stale: boolean;
  /** why an existing file cannot be read */
  why?: string;
}

/** Lead says who leads. */
export interface Lead {
  /** id of the session that leads */
  session?: string;
  /** when it sent its last heartbeat */
  lastSeenAt?: number;
  /** its process on this machine is running */
  alive: boolean;
  /** that process has ended, and another one is about to lead */
  taking?: boolean;
  /** another machine, where its process may be running */
  machine?: string;
  /** since when no session leads; 0 while one does */
  lostAt?: number;
  /** another session may take the lead */
  stale: boolean;
}

/** Member says what is known of one member. */
export interface InspectMember {
  /** name of the member */
  name: string;
  /** agent that runs its sessions: claude, codex, shell, external, … */
  agent: string;
  /** what it does, or why it cannot */
  status: string;
  /** online, offline, paused, outside, ended or unknown */
  life: string;
  /** reason for that life */
  why?: string;
  /** when it sent its last heartbeat */
  lastSeenAt?: number;
  /** id of the task that it works on */
  task?: string;
  /** percent of its context that is full */
  context?: number;
  /** its work was saved while no session led */
  saved?: boolean;
  /** the agent's own id of its session */
  session?: string;
}

/** Missing is something that a team needs and that is not in its place. */
export interface InspectMissing {
  /** directory, repository or worktree */
  what: string;
  /** whose worktree it is */
  member?: string;
  /** where it should be */
  path: string;
  /** what is wrong */
  why: string;
  /** what to do, for people */
  try?: string;
  /** further actions that would help */
  hints?: Hint[];
  /** it was found in its new place, and is linked again when the team is resumed */
  moved?: boolean;
}

/** Examination is the result of an examination. */
export interface Examination {
  /** the team as it is recorded */
  team: Team;
  /** number of records in its history */
  seq: number;
  /** who leads */
  lead: Lead;
  members: InspectMember[];
  /** files and folders that are missing or at another place */
  place: InspectMissing[];
  facts: InspectFact[];
  /** the last ten messages */
  mail: Message[];
  /** number of all messages */
  messages: number;
  /** number of messages that are not delivered to all recipients */
  unread: number;
  /** number of messages that wait for a lead */
  held: number;
  /** number of late messages that the lead was notified of */
  late: number;
  /** number of tasks by status */
  tasks: { [key: string]: number };
  /** percent of the tasks that are completed */
  percent: number;
  /** estimated time to the end, in milliseconds; 0 if there is no basis for one */
  leftMillis?: number;
  /** how the clocks disagree */
  skew?: string[];
  /** the tasks in progress */
  inProgress?: Task[];
  /** requests that wait for an answer */
  permissions?: Permission[];
  /** what waits for a person */
  attention: Item[];
}

/** Review describes a team that has ended. */
export interface Review {
  /** the team as it is recorded */
  team: Team;
  /** number of records in its history */
  seq: number;
  /** who leads */
  lead: Lead;
  members: InspectMember[];
  /** files and folders that are missing or at another place */
  place: InspectMissing[];
  facts: InspectFact[];
  /** the last ten messages */
  mail: Message[];
  /** number of all messages */
  messages: number;
  /** number of messages that are not delivered to all recipients */
  unread: number;
  /** number of messages that wait for a lead */
  held: number;
  /** number of late messages that the lead was notified of */
  late: number;
  /** number of tasks by status */
  tasks: { [key: string]: number };
  /** percent of the tasks that are completed */
  percent: number;
  /** estimated time to the end, in milliseconds; 0 if there is no basis for one */
  leftMillis?: number;
  /** how the clocks disagree */
  skew?: string[];
  /** the tasks in progress */
  inProgress?: Task[];
  /** requests that wait for an answer */
  permissions?: Permission[];
  /** what waits for a person */
  attention: Item[];
  /** all tasks of the team */
  all: Task[];
  /** record of the consolidation; left out for a team that was not consolidated */
  record?: ConsolidateTeamRecord;
}

/** Health says what state the files of a team are in, and what was repaired. */
export interface UpkeepHealth {
  /** name of the team */
  team: string;
  /** nothing is damaged */
  healthy: boolean;
  /** number of files that hold the history */
  segments: number;
  /** the history is complete up to this record */
  last: number;
  /** records up to this one were acknowledged */
  durable: number;
  /** last record in the snapshot; 0 for no snapshot */
  snapshot: number;
  /** what is damaged */
  problems: string[];
  /** notes about files that are not damaged */
  notes: string[];
  /** the damage was repaired */
  mended: boolean;
  /** records that are missing, but whose effect is in the snapshot */
  hole?: string;
  /** records that are missing with their effect */
  lost?: string;
  /** damaged files that were set aside */
  aside?: string[];
  /** number of files in Claude Code's folders that were out of date */
  rebuilt?: number;
  /** last record in the checkpoint of a damaged team, if the repository has one; 0 for none */
  checkpoint?: number;
}

/** Hook is one hook of a project or a team, and whether it runs. */
export interface EngineHook {
  /** id of the `hook` */
  id: string;
  /** TeammateIdle, TaskCreated or TaskCompleted */
  event: string;
  /** command for /bin/sh; for a function its name */
  command: string;
  /** on, off or untrusted */
  state: string;
  /** where it is set up: user, project, local, team or program */
  source: string;
  /** path of the settings file or team file; empty for none */
  file?: string;
  /** line of the file on which it begins; 0 if unknown */
  line?: number;
  /** matcher in the settings file; it has no effect */
  matcher?: string;
  /** its timeout, in milliseconds; 0 for a function */
  millis?: number;
  /** who switched it off */
  by?: string;
  /** when it was switched off */
  at?: number;
  /** it is switched off, and no settings file has it any more */
  gone?: boolean;
}

/** Hooks are the hooks of a team. */
export interface Hooks {
  /** name of the team */
  team: string;
  /** the project */
  dir: string;
  /** in the order in which they run */
  hooks: EngineHook[];
  /** what is wrong with the settings files */
  notes?: string[];
}

/** HookInput is what a hook that is tried reads. */
export interface HookInput {
  /** what it reads on its standard input; a made-up event by default */
  event?: unknown;
}

/** HookTrial is one run of one hook, and how its answer is read. */
export interface HookTrial {
  /** id of the hook */
  id: string;
  /** TeammateIdle, TaskCreated or TaskCompleted */
  event: string;
  /** command that was run by /bin/sh */
  command: string;
  /** where it is set up: user, project, local or team */
  source: string;
  /** exit status; -1 if a signal ended the command, or if it could not be run */
  exitCode: number;
  /** signal that ended the command; empty for none */
  signal?: string;
  /** its standard output; long output is cut in the middle */
  stdout: string;
  /** its standard error; long output is cut in the middle */
  stderr: string;
  /** how long it ran, in milliseconds */
  millis: number;
  /** it was ended at its timeout */
  timedOut: boolean;
  /** why it could not be run */
  error?: string;
  /** it rejects the event */
  rejected: boolean;
  /** what it would tell the agent, if it rejects */
  feedback?: string;
  /** it answered {"continue": false} */
  stop?: boolean;
  /** its reason to stop */
  reason?: string;
  /** what is wrong with its answer */
  notes?: string[];
}

/** Item is something that waits in a team. */
export interface AttentionItem {
  /** its name, or its id if the name does not stand for it here */
  team: string;
  /** directory in which the team works; empty if the team is damaged */
  dir: string;
  /** one of the kinds above */
  kind: string;
  /** user, or the name of the lead */
  waitsFor: string;
  /** member that it concerns */
  member?: string;
  /** id of the task that it concerns */
  task?: string;
  /** id of the request or plan that waits for an answer */
  request?: string;
  /** name of the budget, check or hook that it concerns */
  about?: string;
  /** since when it waits; 0 if unknown */
  since?: number;
  /** when it is denied without an answer; 0 for never */
  deadline?: number;
  /** a sentence for people; it may quote what agents wrote */
  text: string;
  /** what would help */
  hint: Hint;
}

/** Teams are all teams at some moment, with what waits for a person in them. */
export interface Teams {
  /** the teams, sorted by name */
  teams: Overview[];
  /** what waits, in the order of GET /v1/attention */
  attention: AttentionItem[];
}

/** Span is a part of a text. */
export interface Span {
  /** offset of its first byte */
  from: number;
  /** offset after its last byte */
  to: number;
}

/** Found is a text of a team that matches. */
export interface Found {
  /** its name in commands */
  team: string;
  /** the team is an archived run */
  archived?: boolean;
  /** number of its record in the history */
  record: number;
  /** when it was written */
  at: number;
  /** message, result, note, report or task */
  kind: string;
  /** who wrote it: a member, or @user */
  by: string;
  /** recipients of a message */
  to?: string[];
  /** id of its task, or of the task that a message is about */
  task?: string;
  /** key of the note */
  note?: string;
  /** number of the message, or of the change of the note */
  seq?: number;
  /** the result is that of a failed attempt */
  failed?: boolean;
  /** all of it */
  text: string;
  /** where the words are in the text, in order */
  matches?: Span[];
  /** name of the task that `match`.Task is the id of */
  taskName?: string;
}

/** Parameter is a value of a team file that a person gives when the file runs. */
export interface Parameter {
  /** name of the parameter */
  name: string;
  /** string, int, bool, list, path or enum */
  type: string;
  /** what it is for */
  help?: string;
  /** the values that an enum can have */
  values?: string[];
  /** it has no default */
  required?: boolean;
  /** its default, as --set takes it */
  default?: string;
}

/** Offer is a template in a list. */
export interface Offer {
  /** name of the template */
  name: string;
  /** what it is for */
  summary: string;
  /** built in, user or project */
  source: string;
  /** path of the file; empty for one in the program */
  path?: string;
  /** it is the project's, and you have not agreed to it */
  untrusted?: boolean;
  /** the values that it takes */
  parameters?: Parameter[];
  /** why it cannot be used; empty if it can */
  trouble?: string;
}

/** Planned is a task of a template. */
export interface Planned {
  /** id of the task */
  id: string;
  /** what it is about */
  subject: string;
}

/** Shown is a template with all that it has. */
export interface Shown {
  /** its entry in the list */
  template: Offer;
  /** its tasks */
  tasks?: Planned[];
  /** the commands that it runs */
  commands?: string[];
  /** the team file */
  text: string;
}

/** BranchLeft records which work of the member is on its branch and in no commit of HEAD. If Commit is empty, HEAD has all of it. Task is the task that asks the lead to merge it. */
export interface BranchLeftEvent {
  kind: "branch_left";
  member?: string;
  branch?: string;
  commit?: string;
  task?: string;
  with?: string;
}

/** BudgetAlerted says that the lead was notified of the percentage that is spent of a budget: the team's, or the Member's own. */
export interface BudgetAlertedEvent {
  kind: "budget_alerted";
  member?: string;
  what?: string;
  percent?: number;
}

/** BudgetChanged sets a new budget. The team is no longer exhausted. */
export interface BudgetChangedEvent {
  kind: "budget_changed";
  budget?: Budget;
  /** what the lead was notified of that counts for the new budget too */
  alerted?: Alerted[];
}

/** BudgetExhausted says that the budget is spent: tokens, cost or time. */
export interface BudgetExhaustedEvent {
  kind: "budget_exhausted";
  what?: string;
}

/** CheckFailed says that a check of the staged work failed, and has its output. */
export interface CheckFailedEvent {
  kind: "check_failed";
  attempt?: number;
  check?: string;
  /** in milliseconds */
  millis?: number;
  output?: string;
}

/** CheckPassed says that a check of the staged work passed. */
export interface CheckPassedEvent {
  kind: "check_passed";
  attempt?: number;
  check?: string;
  /** in milliseconds */
  millis?: number;
}

/** ChildBegan says which team a member runs for a task. If the team is a child already, the member continues it. */
export interface ChildBeganEvent {
  kind: "child_began";
  child?: Child;
}

/** ChildEnded says that nothing more is expected of the child team. */
export interface ChildEndedEvent {
  kind: "child_ended";
  team?: string;
}

/** ChildReported sets what is counted of the child team: its usage, and which of its messages were passed on. */
export interface ChildReportedEvent {
  kind: "child_reported";
  team?: string;
  usage?: Usage;
  heard?: number;
}

/** CommitMade names the commit that HEAD will point at. */
export interface CommitMadeEvent {
  kind: "commit_made";
  attempt?: number;
  commit?: string;
}

/** ConsolidationAbandoned ends the attempt without a commit. Left lists the files that checks made or changed, which a later attempt must not commit. */
export interface ConsolidationAbandonedEvent {
  kind: "consolidation_abandoned";
  attempt?: number;
  reason?: string;
  left?: Fact[];
}

/** ConsolidationBegan starts an attempt to check and commit the team's work. */
export interface ConsolidationBeganEvent {
  kind: "consolidation_began";
  attempt?: number;
  message?: string;
  include?: string[];
  only?: string[];
  noCommit?: boolean;
  ended?: boolean;
  without?: string[];
  clean?: boolean;
  changes?: boolean;
}

/** DelegateChanged switches delegate mode. */
export interface DelegateChangedEvent {
  kind: "delegate_changed";
  on?: boolean;
}

/** FactsRecorded records the files that all members rely on, as they are now. */
export interface FactsRecordedEvent {
  kind: "facts_recorded";
  facts?: Fact[];
}

/** GapNoticed says that part of the output of Source about the team was lost. The known state does not change. */
export interface GapNoticedEvent {
  kind: "gap_noticed";
  source?: string;
  reason?: string;
}

/** HandoverRequested asks for a fresh session in place of the present one. */
export interface HandoverRequestedEvent {
  kind: "handover_requested";
  member?: string;
  reason?: string;
}

/** HookRejected says that a hook rejected the same thing again, Count times in a row now. */
export interface HookRejectedEvent {
  kind: "hook_rejected";
  hook?: string;
  member?: string;
  task?: string;
  feedback?: string;
  key?: string;
  count?: number;
}

/** HookSwitched switches a hook off for the team, or on again. */
export interface HookSwitchedEvent {
  kind: "hook_switched";
  id?: string;
  event?: string;
  source?: string;
  command?: string;
  off?: boolean;
}

/** InterruptRequested asks the session of the member to end its turn. */
export interface InterruptRequestedEvent {
  kind: "interrupt_requested";
  member?: string;
  by?: string;
}

/** LeadAttached says which session leads from now on: a new one, or the one that was lost. TakenOver is the session that lost the lead to it. From is the session that led until then, if it ended or handed the lead over. From is Session if that session was lost and is back. From is empty if no session led, and in records of older versions. */
export interface LeadAttachedEvent {
  kind: "lead_attached";
  session?: string;
  takenOver?: string;
  machine?: string;
  /** the session belongs to an agent */
  agent?: boolean;
  from?: string;
}

/** LeadLost says that the session that leads has sent no heartbeat since Seen. */
export interface LeadLostEvent {
  kind: "lead_lost";
  session?: string;
  seen?: number;
}

/** MailPassedOn says that the messages to the parent team up to that number were passed on. */
export interface MailPassedOnEvent {
  kind: "mail_passed_on";
  through?: number;
}

/** MemberAttached gives the lease of the member to a host. Pool is the pool of its sessions there, whose rate limit they share; "" in records of older versions. */
export interface MemberAttachedEvent {
  kind: "member_attached";
  member?: string;
  host?: string;
  lease?: number;
  pool?: string;
  /** the machine that the member is on now; empty where the team itself is run. `note` is for a session that continues on another machine than the one before it. */
  machine?: string;
  /** Machine is the machine that the member is on now; empty where the team itself is run. `note` is for a session that continues on another machine than the one before it. */
  note?: string;
}

/** MemberBudgetChanged gives the member a budget of its own. The member is no longer exhausted. */
export interface MemberBudgetChangedEvent {
  kind: "member_budget_changed";
  member?: string;
  budget?: Budget;
  /** as in BudgetChanged */
  alerted?: Alerted[];
}

/** MemberBudgetExhausted says that the member's own budget is spent: tokens, cost or time. */
export interface MemberBudgetExhaustedEvent {
  kind: "member_budget_exhausted";
  member?: string;
  what?: string;
}

/** MemberDescribed adds facts about a member that were unknown when it joined. Fields that are "" do not change. Team is the name of an observed team, if that was unknown. */
export interface MemberDescribedEvent {
  kind: "member_described";
  member?: string;
  model?: string;
  role?: string;
  prompt?: string;
  color?: string;
  session?: string;
  team?: string;
}

/** MemberDetached says that the session ended with its host, and that the member needs another session. Its incarnation ends, its tasks return to the queue, and its mail waits. A Fresh session does not resume the ended one; it is given Note. */
export interface MemberDetachedEvent {
  kind: "member_detached";
  member?: string;
  reason?: string;
  fresh?: boolean;
  note?: string;
}

/** MemberFailed ends the member: its session ended by itself. */
export interface MemberFailedEvent {
  kind: "member_failed";
  member?: string;
  reason?: string;
}

/** MemberOffline says that the member has stopped sending heartbeats, and that the lead was notified. */
export interface MemberOfflineEvent {
  kind: "member_offline";
  member?: string;
  seen?: number;
  reason?: string;
}

/** MemberOnline says that the member sends heartbeats again. */
export interface MemberOnlineEvent {
  kind: "member_online";
  member?: string;
}

/** MemberReturned says that another program started a member again that had ended. No command of cadre does that. */
export interface MemberReturnedEvent {
  kind: "member_returned";
  member?: Member;
}

/** MemberRevised sets the fields of the member that Fields names, and the digests of its part of the team file. A member with another agent gets a fresh session. */
export interface MemberRevisedEvent {
  kind: "member_revised";
  member?: Member;
  fields?: string[];
}

/** MemberSpawned adds a teammate. Its first session has not started yet. */
export interface MemberSpawnedEvent {
  kind: "member_spawned";
  member?: Member;
}

/** MemberStarted says that the member's session is running. Session is the agent's own id of the session, for resuming it. */
export interface MemberStartedEvent {
  kind: "member_started";
  member?: string;
  session?: string;
}

/** MemberStatusChanged sets the member's status: active, idle or blocked. */
export interface MemberStatusChangedEvent {
  kind: "member_status_changed";
  member?: string;
  status?: string;
  summary?: string;
  /** why its agent tries again by itself, as in MemberTroubled; empty where it has no trouble */
  trouble?: string;
}

/** MemberStopped ends the member, on request. */
export interface MemberStoppedEvent {
  kind: "member_stopped";
  member?: string;
  reason?: string;
}

/** MemberTroubled says why the member could not continue, and when it is tried again. With Setbacks 0 the trouble has passed. */
export interface MemberTroubledEvent {
  kind: "member_troubled";
  /** Trouble is login, limit, model, context, missing, crash or empty */
  member?: string;
  /** login, limit, model, context, missing, crash or empty */
  trouble?: string;
  /** Trouble is login, limit, model, context, missing, crash or empty */
  text?: string;
  setbacks?: number;
  retryAt?: number;
}

/** MessageSent puts one message into the inbox of each recipient. */
export interface MessageSentEvent {
  kind: "message_sent";
  message: Message;
}

/** MessagesDelivered says that these messages were delivered to the member. */
export interface MessagesDeliveredEvent {
  kind: "messages_delivered";
  member?: string;
  seqs?: number[];
}

/** MessagesLate says that these messages waited too long for the member, and that the lead was notified. */
export interface MessagesLateEvent {
  kind: "messages_late";
  member?: string;
  seqs?: number[];
}

/** MessagesRead says that the member has read everything up to the message Through. */
export interface MessagesReadEvent {
  kind: "messages_read";
  member?: string;
  through?: number;
}

/** MessagesResent sends late messages again. They stay the same messages. */
export interface MessagesResentEvent {
  kind: "messages_resent";
  member?: string;
  seqs?: number[];
}

/** MessagesReturned removes messages from the inbox of a member that will never read them. They were returned to their senders. */
export interface MessagesReturnedEvent {
  kind: "messages_returned";
  member?: string;
  seqs?: number[];
}

/** ModeChanged sets the member's permission mode. Own is the one that it would have without the limit of its parent team; "" for the same. */
export interface ModeChangedEvent {
  kind: "mode_changed";
  member?: string;
  mode?: string;
  own?: string;
}

/** NoteAppended adds the Text to the note Key, on a line of its own, and makes the note if there is none. */
export interface NoteAppendedEvent {
  kind: "note_appended";
  key?: string;
  text?: string;
  seq?: number;
}

/** NoteDeleted deletes the note Key. */
export interface NoteDeletedEvent {
  kind: "note_deleted";
  key?: string;
  seq?: number;
}

/** NoteSet sets the note Key to the Text. Seq numbers the changes of all notes of the team. */
export interface NoteSetEvent {
  kind: "note_set";
  key?: string;
  text?: string;
  seq?: number;
}

/** ParentHeard says which message of the parent team the next message is. */
export interface ParentHeardEvent {
  kind: "parent_heard";
  seq?: number;
}

/** PathsChanged says that the owner of a task in progress added paths to it, or gave some back. */
export interface PathsChangedEvent {
  kind: "paths_changed";
  task?: string;
  by?: string;
  added?: string[];
  removed?: string[];
}

/** PermissionAnswered ends the request. Outcome is allowed, denied or timed_out. */
export interface PermissionAnsweredEvent {
  kind: "permission_answered";
  request?: string;
  member?: string;
  outcome?: string;
  by?: string;
  reason?: string;
}

/** PermissionRequested asks for a permission. The request waits for an answer until its deadline. */
export interface PermissionRequestedEvent {
  kind: "permission_requested";
  permission: Permission;
}

/** PlanAnswered approves the plan, or rejects it with feedback. */
export interface PlanAnsweredEvent {
  kind: "plan_answered";
  member?: string;
  request?: string;
  approved?: boolean;
  feedback?: string;
  /** empty where it got no answer in time */
  by?: string;
}

/** PlanSubmitted submits a plan to the lead. If it has a deadline, it is rejected then. */
export interface PlanSubmittedEvent {
  kind: "plan_submitted";
  member?: string;
  request?: string;
  plan?: string;
  deadline?: number;
}

/** RateLimitLifted says that the pool takes turns again: its model answered By, or a person decided it. */
export interface RateLimitLiftedEvent {
  kind: "rate_limit_lifted";
  pool?: string;
  by?: string;
}

/** RateLimited says that the pool takes no turn before Until. By was refused, for the Tries-th time in a row. If Ended is set, that ended its turn, and it continues by itself after the wait, with its tasks and its session. */
export interface RateLimitedEvent {
  kind: "rate_limited";
  pool?: string;
  until?: number;
  by?: string;
  text?: string;
  tries?: number;
  ended?: boolean;
}

/** ReportAsked asks the lead for its report: all work is done. */
export interface ReportAskedEvent {
  kind: "report_asked";
}

/** ReportGiven is the lead's report. */
export interface ReportGivenEvent {
  kind: "report_given";
  text?: string;
}

/** RuleAdded adds a permission rule: for the member, or for all without one. */
export interface RuleAddedEvent {
  kind: "rule_added";
  rule?: string;
  member?: string;
}

/** RuleRemoved removes a rule that was added for the member, or for all. */
export interface RuleRemovedEvent {
  kind: "rule_removed";
  rule?: string;
  member?: string;
}

/** ShutdownAnswered is the member's answer. The member ends at the deadline even if it refused. */
export interface ShutdownAnsweredEvent {
  kind: "shutdown_answered";
  member?: string;
  request?: string;
  approved?: boolean;
  reason?: string;
}

/** ShutdownRequested asks this incarnation of the member to end. */
export interface ShutdownRequestedEvent {
  kind: "shutdown_requested";
  member?: string;
  request?: string;
  incarnation?: number;
  reason?: string;
  deadline?: number;
}

/** ShutdownWithdrawn withdraws the request. */
export interface ShutdownWithdrawnEvent {
  kind: "shutdown_withdrawn";
  member?: string;
  request?: string;
}

/** TaskClaimed gives the task to the member. The member holds it under this fence until it completes, fails or releases it, or loses it. */
export interface TaskClaimedEvent {
  kind: "task_claimed";
  task?: string;
  member?: string;
  fence?: number;
}

/** TaskCompleted ends the task. Unblocked lists the tasks that are no longer blocked. Verified lists who accepted it, if others had to. Verdict is what came of a verification. */
export interface TaskCompletedEvent {
  kind: "task_completed";
  task?: string;
  by?: string;
  result?: string;
  unblocked?: string[];
  verified?: string[];
  verdict?: string;
}

/** TaskCreated adds a task. */
export interface TaskCreatedEvent {
  kind: "task_created";
  task?: Task;
}

/** TaskDeleted deletes the task. Its id is not used again. */
export interface TaskDeletedEvent {
  kind: "task_deleted";
  task?: string;
  unblocked?: string[];
}

/** TaskExpanded says that the group has made its tasks, and waits for them. */
export interface TaskExpandedEvent {
  kind: "task_expanded";
  task?: string;
  /** ids of the tasks, in the order of the items */
  tasks?: string[];
}

/** TaskFailed ends an attempt. The task returns to the queue, or has failed after its last retry. Unblocked lists the tasks with When always that are no longer blocked because of that. */
export interface TaskFailedEvent {
  kind: "task_failed";
  task?: string;
  by?: string;
  reason?: string;
  result?: string;
  unblocked?: string[];
}

/** TaskFolded says that a group is done again from its beginning: it no longer waits for the tasks that it made, which are deleted in the same record. */
export interface TaskFoldedEvent {
  kind: "task_folded";
  task?: string;
}

/** TaskRejected says that a result was sent back to the member, for the Count-th time in this attempt. At Limit the attempt has failed; the same record says so. */
export interface TaskRejectedEvent {
  kind: "task_rejected";
  task?: string;
  member?: string;
  by?: string;
  feedback?: string;
  count?: number;
  limit?: number;
}

/** TaskReleased returns a task to the queue. The task was in progress, out of retries, or completed with a result that no longer holds. Owner is the member that should do it now. */
export interface TaskReleasedEvent {
  kind: "task_released";
  task?: string;
  owner?: string;
  reason?: string;
}

/** TaskRevised sets the fields of a pending task that Fields names, and the digests of its part of the team file. It clears the failures of the task. */
export interface TaskRevisedEvent {
  kind: "task_revised";
  task?: Task;
  fields?: string[];
}

/** TaskRolledBack says that the work of the task was undone, and that the task returned to the queue. Owner is the member that it is meant for. */
export interface TaskRolledBackEvent {
  kind: "task_rolled_back";
  task?: string;
  owner?: string;
  commit?: string;
  reason?: string;
}

/** TaskSkipped ends a task that can never run, because its When cannot come true any more. Those that wait for it continue. Unblocked lists the tasks that are no longer blocked. */
export interface TaskSkippedEvent {
  kind: "task_skipped";
  task?: string;
  reason?: string;
  unblocked?: string[];
}

/** TaskSubmitted says that the result of a task waits for others to accept it. Tasks are their verifications, which the same record creates. */
export interface TaskSubmittedEvent {
  kind: "task_submitted";
  task?: string;
  by?: string;
  result?: string;
  round?: number;
  tasks?: string[];
}

/** TaskWas has the values that an update of a task replaced. A description is shortened, and null stands for metadata that the task did not have. */
export interface TaskWas {
  subject?: string;
  description?: string;
  activeForm?: string;
  owner?: string;
  priority?: string;
  run?: string;
  metadata?: { [key: string]: unknown };
}

/** TaskUpdated changes the fields that are not nil. An owner "" removes the owner; a null in the metadata deletes its key. */
export interface TaskUpdatedEvent {
  kind: "task_updated";
  task?: string;
  subject?: string;
  description?: string;
  activeForm?: string;
  owner?: string;
  priority?: string;
  run?: string;
  metadata?: { [key: string]: unknown };
  addBlockedBy?: string[];
  removeBlockedBy?: string[];
  addBlocks?: string[];
  removeBlocks?: string[];
  addPaths?: string[];
  removePaths?: string[];
  /** what it replaced; nil in older records */
  was?: TaskWas;
}

/** TasksSkipped says that this journal lacks the tasks with ids up to Through. Such a task may be created later. */
export interface TasksSkippedEvent {
  kind: "tasks_skipped";
  through?: number;
}

/** TeamCleanedUp is the last event of a team. Its files outside the journal are removed then. */
export interface TeamCleanedUpEvent {
  kind: "team_cleaned_up";
  forced?: boolean;
}

/** TeamConfined says what the parent of a nested team leaves it. */
export interface TeamConfinedEvent {
  kind: "team_confined";
  /** at most */
  budget?: Budget;
  /** the limits of it that the budget of the member sets */
  binds?: Budget;
  /** that the team has besides */
  own?: Budget;
  /** of its members, at most */
  mode?: string;
  /** permission rules that it loses */
  dropped?: string[];
}

/** TeamConsolidated says that HEAD has pointed at the commit. */
export interface TeamConsolidatedEvent {
  kind: "team_consolidated";
  attempt?: number;
}

/** TeamCreated is the first event of a team. The lead joins with it. */
export interface TeamCreatedEvent {
  kind: "team_created";
  team?: Team;
  lead?: Member;
}

/** TeamMoved says that the project moved from From to Dir, and which paths of the team change with it. */
export interface TeamMovedEvent {
  kind: "team_moved";
  dir?: string;
  top?: string;
  from?: string;
  origin?: string;
  report?: string;
  facts?: Fact[];
}

/** TeamReleased says that this machine released the team. */
export interface TeamReleasedEvent {
  kind: "team_released";
  machine?: string;
}

/** Strike counts how often in a row hooks rejected the thing that Key names. */
export interface Strike {
  key?: string;
  count?: number;
}

/** NoteEnd says that a note was deleted. */
export interface NoteEnd {
  key?: string;
  /** who deleted it */
  by?: string;
  /** number of the deletion, among the changes of all notes */
  seq?: number;
}

/** TeamRestored is the first event of a journal that continues the history of a lost one. It holds the team as its last checkpoint had it. */
export interface TeamRestoredEvent {
  kind: "team_restored";
  team?: Team;
  members?: Member[];
  messages?: Message[];
  messageSeq?: number;
  /** numbers up to `messageSeq` that belong to no message */
  unsent?: number;
  requestSeq?: number;
  permissions?: Permission[];
  strikes?: Strike[];
  tasks?: Task[];
  notes?: Note[];
  /** the last notes that were deleted */
  noteEnds?: NoteEnd[];
  /** number of the last change of a note */
  noteSeq?: number;
}

/** TeamRevised says that the team changed in its team file. It sets the fields of the team that Fields names, and always the digests of the file. */
export interface TeamRevisedEvent {
  kind: "team_revised";
  team?: Team;
  fields?: string[];
}

/** TeamStatusChanged changes the team's status. */
export interface TeamStatusChangedEvent {
  kind: "team_status_changed";
  status?: string;
  reason?: string;
  report?: string;
}

/** TeamTakenBack says that the team continues here, though this machine had released it. */
export interface TeamTakenBackEvent {
  kind: "team_taken_back";
}

/** TurnGranted lets the member start a turn, in a team that limits how many run at a time. It ends with that turn. */
export interface TurnGrantedEvent {
  kind: "turn_granted";
  member?: string;
}

/** UsageReported adds to the usage of the member and of the task. */
export interface UsageReportedEvent {
  kind: "usage_reported";
  member?: string;
  task?: string;
  usage?: Usage;
  /** percent of the session's context that is full; 0 where it is unknown */
  context?: number;
}

/** WordsRecorded says what a member said at the end of the turn in which it completed the task, which has no result. */
export interface WordsRecordedEvent {
  kind: "words_recorded";
  task?: string;
  member?: string;
  words?: string;
}

/** WorkFound says that the missing work of these tasks was found. */
export interface WorkFoundEvent {
  kind: "work_found";
  tasks?: string[];
}

/** WorkRecorded says where the task started, or what it did. */
export interface WorkRecordedEvent {
  kind: "work_recorded";
  task?: string;
  work?: Work;
}

/** WorkSaved saves with the task the unfinished work of an owner that could not continue. */
export interface WorkSavedEvent {
  kind: "work_saved";
  task?: string;
  saved?: Saved;
}

/** WorkStaged says what the commit will have: Tree on Parent, with the work of Branches, and how many files differ. From here on, the work tree may contain the changes of the branches. */
export interface WorkStagedEvent {
  kind: "work_staged";
  attempt?: number;
  parent?: string;
  tree?: string;
  before?: string;
  branches?: Branch[];
  files?: number;
}

/** WorktreesMerged says that the work of these members is on their branches now. */
export interface WorktreesMergedEvent {
  kind: "worktrees_merged";
  attempt?: number;
  members?: string[];
}

/** WritesFound says that a member changed files of another member's task; with Unsure, that perhaps it did. */
export interface WritesFoundEvent {
  kind: "writes_found";
  member?: string;
  task?: string;
  holder?: string;
  files?: string[];
  /** how many further files */
  more?: number;
  unsure?: boolean;
}

/** What happened in a record, told apart by its kind. */
export type Event =
  | BranchLeftEvent
  | BudgetAlertedEvent
  | BudgetChangedEvent
  | BudgetExhaustedEvent
  | CheckFailedEvent
  | CheckPassedEvent
  | ChildBeganEvent
  | ChildEndedEvent
  | ChildReportedEvent
  | CommitMadeEvent
  | ConsolidationAbandonedEvent
  | ConsolidationBeganEvent
  | DelegateChangedEvent
  | FactsRecordedEvent
  | GapNoticedEvent
  | HandoverRequestedEvent
  | HookRejectedEvent
  | HookSwitchedEvent
  | InterruptRequestedEvent
  | LeadAttachedEvent
  | LeadLostEvent
  | MailPassedOnEvent
  | MemberAttachedEvent
  | MemberBudgetChangedEvent
  | MemberBudgetExhaustedEvent
  | MemberDescribedEvent
  | MemberDetachedEvent
  | MemberFailedEvent
  | MemberOfflineEvent
  | MemberOnlineEvent
  | MemberReturnedEvent
  | MemberRevisedEvent
  | MemberSpawnedEvent
  | MemberStartedEvent
  | MemberStatusChangedEvent
  | MemberStoppedEvent
  | MemberTroubledEvent
  | MessageSentEvent
  | MessagesDeliveredEvent
  | MessagesLateEvent
  | MessagesReadEvent
  | MessagesResentEvent
  | MessagesReturnedEvent
  | ModeChangedEvent
  | NoteAppendedEvent
  | NoteDeletedEvent
  | NoteSetEvent
  | ParentHeardEvent
  | PathsChangedEvent
  | PermissionAnsweredEvent
  | PermissionRequestedEvent
  | PlanAnsweredEvent
  | PlanSubmittedEvent
  | RateLimitLiftedEvent
  | RateLimitedEvent
  | ReportAskedEvent
  | ReportGivenEvent
  | RuleAddedEvent
  | RuleRemovedEvent
  | ShutdownAnsweredEvent
  | ShutdownRequestedEvent
  | ShutdownWithdrawnEvent
  | TaskClaimedEvent
  | TaskCompletedEvent
  | TaskCreatedEvent
  | TaskDeletedEvent
  | TaskExpandedEvent
  | TaskFailedEvent
  | TaskFoldedEvent
  | TaskRejectedEvent
  | TaskReleasedEvent
  | TaskRevisedEvent
  | TaskRolledBackEvent
  | TaskSkippedEvent
  | TaskSubmittedEvent
  | TaskUpdatedEvent
  | TasksSkippedEvent
  | TeamCleanedUpEvent
  | TeamConfinedEvent
  | TeamConsolidatedEvent
  | TeamCreatedEvent
  | TeamMovedEvent
  | TeamReleasedEvent
  | TeamRestoredEvent
  | TeamRevisedEvent
  | TeamStatusChangedEvent
  | TeamTakenBackEvent
  | TurnGrantedEvent
  | UsageReportedEvent
  | WordsRecordedEvent
  | WorkFoundEvent
  | WorkRecordedEvent
  | WorkSavedEvent
  | WorkStagedEvent
  | WorktreesMergedEvent
  | WritesFoundEvent;

/** The routes: what each takes and answers. An error is answered with a Problem. */
export interface Routes {
  /** Say that the server answers. */
  "GET /v1/health": { path: {}; query: {}; body: undefined; answer: Health };
  /** Say who sends the request. */
  "GET /v1/caller": { path: {}; query: {}; body: undefined; answer: Caller };
  /** List the teams that the server keeps running. */
  "GET /v1/server/teams": { path: {}; query: {}; body: undefined; answer: SupervisorTeam[] };
  /** Keep a team running that another process has just started. */
  "PUT /v1/server/teams/{team}": { path: { team: string }; query: {}; body: undefined; answer: undefined };
  /** Keep a team running no longer. It is not stopped. */
  "DELETE /v1/server/teams/{team}": { path: { team: string }; query: {}; body: undefined; answer: undefined };
  /** Make a one-time code with which a browser logs in. */
  "POST /v1/login-codes": { path: {}; query: {}; body: CodeSpec; answer: LoginCode };
  /** List the teams of this machine, with what waits for a person in each. */
  "GET /v1/teams": { path: {}; query: { archive?: boolean }; body: undefined; answer: Overview[] };
  /** Create a team that works in the server's directory and is led by its user. */
  "POST /v1/teams": { path: {}; query: {}; body: TeamSpec; answer: Team };
  /** Show a team after any record. The ETag begins with the number of the record. */
  "GET /v1/teams/{team}": { path: { team: string }; query: { seq?: number }; body: undefined; answer: State };
  /** Show a team at a glance. */
  "GET /v1/teams/{team}/status": { path: { team: string }; query: {}; body: undefined; answer: Standing };
  /** Follow the records of a team. Each event has the number of its record as its id. A client that comes back continues after its Last-Event-ID. */
  "GET /v1/teams/{team}/events": { path: { team: string }; query: { after?: number }; body: undefined; answer: ReadableStream };
  /** List records of a team, at most 1000 at a time. */
  "GET /v1/teams/{team}/records": { path: { team: string }; query: { after?: number; member?: string[]; kind?: string[]; limit?: number }; body: undefined; answer: TeamRecord[] };
  /** List the records that are worth a look: failures, waits for a person, and commits. */
  "GET /v1/teams/{team}/marks": { path: { team: string }; query: {}; body: undefined; answer: Marks };
  /** Sum up what happened after a record. */
  "GET /v1/teams/{team}/since": { path: { team: string }; query: { after?: number }; body: undefined; answer: Since };
  /** End the sessions of a team until it is resumed. */
  "POST /v1/teams/{team}/pause": { path: { team: string }; query: {}; body: undefined; answer: Paused };
  /** Continue a team on this server. */
  "POST /v1/teams/{team}/resume": { path: { team: string }; query: {}; body: undefined; answer: Team };
  /** Restrict the lead to coordination, or lift that. */
  "POST /v1/teams/{team}/delegate": { path: { team: string }; query: { as?: string }; body: On; answer: Team };
  /** Let the team finish its tasks in progress and begin no others. */
  "POST /v1/teams/{team}/wind-down": { path: { team: string }; query: { as?: string }; body: undefined; answer: Team };
  /** End a team and all its sessions at once. Its record and its work stay. */
  "POST /v1/teams/{team}/abort": { path: { team: string }; query: { as?: string }; body: Reason; answer: Team };
  /** Remove a team and everything that belongs to it. */
  "POST /v1/teams/{team}/cleanup": { path: { team: string }; query: { as?: string }; body: Removal; answer: undefined };
  /** Reserve room for a teammate that joins within 45 seconds. It is refused if the server runs as many teammates as it may. */
  "PUT /v1/teams/{team}/rooms/{member}": { path: { team: string; member: string }; query: {}; body: undefined; answer: undefined };
  /** Give back the room of a teammate that does not join. */
  "DELETE /v1/teams/{team}/rooms/{member}": { path: { team: string; member: string }; query: {}; body: undefined; answer: undefined };
  /** List the lead and the teammates. */
  "GET /v1/teams/{team}/members": { path: { team: string }; query: {}; body: undefined; answer: Member[] };
  /** Add a teammate. The server keeps the team running from then on. The mode bypassPermissions needs the role admin, also where the member has it from the lead. */
  "POST /v1/teams/{team}/members": { path: { team: string }; query: { as?: string }; body: MemberSpec; answer: Member };
  /** Show a member. */
  "GET /v1/teams/{team}/members/{member}": { path: { team: string; member: string }; query: {}; body: undefined; answer: Member };
  /** Follow what the sessions of a member show. Each event has the number of its entry as its id, but the output of a running tool, which comes again to a client that comes back. The stream ends with the event end when the member has ended. */
  "GET /v1/teams/{team}/members/{member}/session": { path: { team: string; member: string }; query: { after?: number }; body: undefined; answer: ReadableStream };
  /** Ask a teammate to finish and end. It is ended at the deadline, whatever it answers. */
  "POST /v1/teams/{team}/members/{member}/shutdown": { path: { team: string; member: string }; query: { as?: string; wait?: number }; body: ShutdownSpec; answer: Member };
  /** Withdraw the request to a teammate to shut down. */
  "DELETE /v1/teams/{team}/members/{member}/shutdown": { path: { team: string; member: string }; query: { as?: string }; body: undefined; answer: Member };
  /** Answer a request to shut down as the member. It is for members that are a person or a program. */
  "POST /v1/teams/{team}/members/{member}/shutdown/answer": { path: { team: string; member: string }; query: {}; body: ShutdownAnswer; answer: Leaving };
  /** End a member's turn. The member keeps its tasks and waits for a message. */
  "POST /v1/teams/{team}/members/{member}/interrupt": { path: { team: string; member: string }; query: { as?: string }; body: undefined; answer: Member };
  /** Try the model of a rate-limited member again now, with all that share the limit. */
  "POST /v1/teams/{team}/members/{member}/lift": { path: { team: string; member: string }; query: { as?: string }; body: undefined; answer: Member };
  /** Replace a member's session by a fresh one. It continues the task and the mail. */
  "POST /v1/teams/{team}/members/{member}/handover": { path: { team: string; member: string }; query: { as?: string }; body: Reason; answer: Member };
  /** Change what a member may do without asking. The mode bypassPermissions needs the role admin. */
  "PUT /v1/teams/{team}/members/{member}/mode": { path: { team: string; member: string }; query: { as?: string }; body: ModeSpec; answer: Member };
  /** List the tasks of a team. */
  "GET /v1/teams/{team}/tasks": { path: { team: string }; query: { status?: string[]; owner?: string; role?: string; priority?: string; claimable?: string }; body: undefined; answer: Task[] };
  /** Add a task. */
  "POST /v1/teams/{team}/tasks": { path: { team: string }; query: { as?: string }; body: TaskSpec; answer: Task };
  /** Show a task. */
  "GET /v1/teams/{team}/tasks/{task}": { path: { team: string; task: string }; query: {}; body: undefined; answer: Task };
  /** Change a task. */
  "PATCH /v1/teams/{team}/tasks/{task}": { path: { team: string; task: string }; query: { as?: string }; body: TaskChange; answer: Task };
  /** Remove a task. */
  "DELETE /v1/teams/{team}/tasks/{task}": { path: { team: string; task: string }; query: { as?: string }; body: undefined; answer: undefined };
  /** Claim the next task as a member. The answer has the fence of the claim. */
  "POST /v1/teams/{team}/tasks/claim": { path: { team: string }; query: { as?: string; wait?: number }; body: undefined; answer: Task };
  /** Claim a task as a member. The answer has the fence of the claim. */
  "POST /v1/teams/{team}/tasks/{task}/claim": { path: { team: string; task: string }; query: { as?: string }; body: undefined; answer: Task };
  /** Complete a task as its owner. */
  "POST /v1/teams/{team}/tasks/{task}/complete": { path: { team: string; task: string }; query: { as?: string }; body: Outcome; answer: Task };
  /** Say as its owner that a task failed. */
  "POST /v1/teams/{team}/tasks/{task}/fail": { path: { team: string; task: string }; query: { as?: string }; body: Outcome; answer: Task };
  /** Return a task to the queue. A task that is out of retries is tried again. */
  "POST /v1/teams/{team}/tasks/{task}/release": { path: { team: string; task: string }; query: { as?: string }; body: Outcome; answer: Task };
  /** List the tasks in progress to which paths belong, and the tasks that wait for paths. */
  "GET /v1/teams/{team}/paths": { path: { team: string }; query: {}; body: undefined; answer: Task[] };
  /** Add paths to a task in progress. A path of another task is refused. */
  "POST /v1/teams/{team}/tasks/{task}/paths/claim": { path: { team: string; task: string }; query: { as?: string }; body: TaskPaths; answer: Task };
  /** Give back paths of a task in progress. */
  "POST /v1/teams/{team}/tasks/{task}/paths/release": { path: { team: string; task: string }; query: { as?: string }; body: TaskPaths; answer: Task };
  /** Give a task to another member, with the work on it so far. */
  "POST /v1/teams/{team}/tasks/{task}/reassign": { path: { team: string; task: string }; query: { as?: string }; body: Reassignment; answer: Task };
  /** Undo the work of a completed task in git. */
  "POST /v1/teams/{team}/tasks/{task}/rollback": { path: { team: string; task: string }; query: { as?: string }; body: Undoing; answer: Task };
  /** Show what was changed for a task. */
  "GET /v1/teams/{team}/tasks/{task}/diff": { path: { team: string; task: string }; query: {}; body: undefined; answer: Diff };
  /** List messages of a team, at most 1000 at a time. With a member, those that were sent to it, with when they were delivered and read. */
  "GET /v1/teams/{team}/messages": { path: { team: string }; query: { member?: string; from?: string; type?: string[]; unread?: boolean; since?: number; after?: number; limit?: number }; body: undefined; answer: MailboxMessage[] };
  /** Send a message to a member. */
  "POST /v1/teams/{team}/messages": { path: { team: string }; query: { as?: string }; body: MessageSpec; answer: SentMessage };
  /** Send a message to all other members. */
  "POST /v1/teams/{team}/broadcasts": { path: { team: string }; query: { as?: string }; body: BroadcastSpec; answer: SentMessage };
  /** Show the messages that were not delivered to a member yet. Nothing is recorded. */
  "GET /v1/teams/{team}/members/{member}/inbox": { path: { team: string; member: string }; query: { again?: boolean; wait?: number }; body: undefined; answer: MailboxMessage[] };
  /** Take the messages that were not delivered to a member yet. They are delivered with that, and read once they are marked as read. */
  "POST /v1/teams/{team}/members/{member}/inbox/receive": { path: { team: string; member: string }; query: { again?: boolean; wait?: number }; body: undefined; answer: MailboxMessage[] };
  /** Mark the messages of a member as read, up to one of them. */
  "POST /v1/teams/{team}/members/{member}/inbox/read": { path: { team: string; member: string }; query: {}; body: Reading; answer: Reading };
  /** Send messages again that wait for a member. */
  "POST /v1/teams/{team}/members/{member}/inbox/resend": { path: { team: string; member: string }; query: { as?: string }; body: Choice; answer: Resent };
  /** List the notes that a team shares. */
  "GET /v1/teams/{team}/notes": { path: { team: string }; query: {}; body: undefined; answer: Note[] };
  /** Show a note. The / in a key is written as %2F. The ETag is the number of its last change. */
  "GET /v1/teams/{team}/notes/{key}": { path: { team: string; key: string }; query: { seq?: number }; body: undefined; answer: Note };
  /** Set a note, or replace its text. An If-Match with the ETag of the note stands for ifSeq. */
  "PUT /v1/teams/{team}/notes/{key}": { path: { team: string; key: string }; query: { as?: string }; body: NoteText; answer: Note };
  /** Add a text to a note, on a line of its own, or make the note. */
  "POST /v1/teams/{team}/notes/{key}/append": { path: { team: string; key: string }; query: { as?: string }; body: NoteAddition; answer: Note };
  /** Delete a note. Its versions stay in the history. An If-Match with the ETag of the note stands for ifSeq. */
  "DELETE /v1/teams/{team}/notes/{key}": { path: { team: string; key: string }; query: { as?: string; ifSeq?: number }; body: undefined; answer: undefined };
  /** List the changes of a note, the oldest first. */
  "GET /v1/teams/{team}/notes/{key}/changes": { path: { team: string; key: string }; query: {}; body: undefined; answer: NoteChange[] };
  /** List the requests for permission that wait for an answer. */
  "GET /v1/teams/{team}/permissions": { path: { team: string }; query: {}; body: undefined; answer: Permission[] };
  /** Answer a request for permission. The first answer counts. */
  "POST /v1/teams/{team}/permissions/{request}/answer": { path: { team: string; request: string }; query: { as?: string }; body: PermissionAnswer; answer: Answered };
  /** List every plan that was submitted, with its answer. */
  "GET /v1/teams/{team}/plans": { path: { team: string }; query: { state?: string }; body: undefined; answer: HistoryPlan[] };
  /** Show a plan with its answer. */
  "GET /v1/teams/{team}/plans/{request}": { path: { team: string; request: string }; query: {}; body: undefined; answer: HistoryPlan };
  /** Approve or reject a plan. The first answer counts. */
  "POST /v1/teams/{team}/plans/{request}/answer": { path: { team: string; request: string }; query: { as?: string }; body: PlanAnswer; answer: Answered };
  /** Submit the plan of a member to the lead, as the member. */
  "POST /v1/teams/{team}/members/{member}/plan": { path: { team: string; member: string }; query: {}; body: PlanSpec; answer: Submitted };
  /** List the rules by which members use tools without asking. */
  "GET /v1/teams/{team}/rules": { path: { team: string }; query: {}; body: undefined; answer: PermissionRule[] };
  /** Let members use a tool without asking. Requests that wait and that the rule covers are allowed at once. */
  "POST /v1/teams/{team}/rules": { path: { team: string }; query: { as?: string }; body: RuleSpec; answer: PermissionRule };
  /** Remove a permission rule that was added. */
  "DELETE /v1/teams/{team}/rules": { path: { team: string }; query: { rule?: string; member?: string; as?: string }; body: undefined; answer: undefined };
  /** Show what a team and its members may spend, and what is spent. */
  "GET /v1/teams/{team}/budget": { path: { team: string }; query: { member?: string }; body: undefined; answer: Limit[] };
  /** Change what a team or a member may spend. A team whose budget was spent continues. */
  "PATCH /v1/teams/{team}/budget": { path: { team: string }; query: { as?: string }; body: BudgetChange; answer: Limit[] };
  /** List the checkpoints of a team in its repository. */
  "GET /v1/teams/{team}/checkpoints": { path: { team: string }; query: {}; body: undefined; answer: Checkpoint[] };
  /** Save the team and its work on a branch of its repository. */
  "POST /v1/teams/{team}/checkpoints": { path: { team: string }; query: {}; body: undefined; answer: ApiCheckpoint };
  /** Show what a consolidation would commit, path by path, and change nothing. */
  "POST /v1/teams/{team}/consolidation/plan": { path: { team: string }; query: { as?: string }; body: ConsolidationSpec; answer: ConsolidatePlan };
  /** Run the checks, and commit nothing. It stops if the client goes away. */
  "POST /v1/teams/{team}/consolidation/trial": { path: { team: string }; query: { as?: string }; body: ConsolidationSpec; answer: Trial };
  /** Check and commit what a team did, and complete the team. It stops if the client goes away; the same request continues. */
  "POST /v1/teams/{team}/consolidation": { path: { team: string }; query: { as?: string }; body: ConsolidationSpec; answer: Consolidated };
  /** Abandon an unfinished consolidation, or let a team continue that winds down. */
  "POST /v1/teams/{team}/consolidation/rollback": { path: { team: string }; query: { as?: string }; body: undefined; answer: Team };
  /** Show the files that all members rely on, and whether they changed. */
  "GET /v1/teams/{team}/facts": { path: { team: string }; query: {}; body: undefined; answer: InspectFact[] };
  /** Record the present state of the files that all members rely on. */
  "POST /v1/teams/{team}/facts/record": { path: { team: string }; query: { as?: string }; body: undefined; answer: InspectFact[] };
  /** Show which members are alive, and which files of the team are missing. */
  "GET /v1/teams/{team}/probe": { path: { team: string }; query: {}; body: undefined; answer: Examination };
  /** Show a team that has ended. */
  "GET /v1/teams/{team}/review": { path: { team: string }; query: {}; body: undefined; answer: Review };
  /** Read all files of a team, and report damage. Nothing is changed. */
  "GET /v1/teams/{team}/health": { path: { team: string }; query: {}; body: undefined; answer: UpkeepHealth };
  /** List the hooks of a team. */
  "GET /v1/teams/{team}/hooks": { path: { team: string }; query: {}; body: undefined; answer: Hooks };
  /** Switch a hook off for the team. */
  "POST /v1/teams/{team}/hooks/{hook}/disable": { path: { team: string; hook: string }; query: { as?: string }; body: undefined; answer: EngineHook };
  /** Switch a hook of the team on again. */
  "POST /v1/teams/{team}/hooks/{hook}/enable": { path: { team: string; hook: string }; query: { as?: string }; body: undefined; answer: EngineHook };
  /** Run a hook once, and show what it answers. Nothing changes in the team. */
  "POST /v1/teams/{team}/hooks/{hook}/try": { path: { team: string; hook: string }; query: {}; body: HookInput; answer: HookTrial };
  /** List what waits for a person in all teams. Teams with a deadline come first, then the others by name. */
  "GET /v1/attention": { path: {}; query: { wait?: number }; body: undefined; answer: AttentionItem[] };
  /** List what waits for a person in a team. */
  "GET /v1/teams/{team}/attention": { path: { team: string }; query: { wait?: number }; body: undefined; answer: AttentionItem[] };
  /** Follow all teams, with what waits for a person: the present state, and then each new one. A client that reads slowly skips states, and gets the newest. */
  "GET /v1/watch": { path: {}; query: {}; body: undefined; answer: ReadableStream };
  /** Find words in the texts of one team, or of all with the archived runs. */
  "GET /v1/search": { path: {}; query: { q?: string; team?: string; kind?: string[]; member?: string[]; task?: string[]; since?: number; until?: number; limit?: number }; body: undefined; answer: Found[] };
  /** List the team files that can be run by a name. Of several with one name, the first one counts. */
  "GET /v1/templates": { path: {}; query: { team?: string }; body: undefined; answer: Offer[] };
  /** Show a template, with its parameters, its commands and its text. */
  "GET /v1/templates/{template}": { path: { template: string }; query: { team?: string }; body: undefined; answer: Shown };
  /** Show the OpenAPI description of the API. */
  "GET /v1/openapi.json": { path: {}; query: {}; body: undefined; answer: { [key: string]: unknown } };
}

/** The streams of server-sent events: the data of each event, by its name. */
export interface Streams {
  /** Follow the records of a team. Each event has the number of its record as its id. A client that comes back continues after its Last-Event-ID. */
  "/v1/teams/{team}/events": { record: TeamRecord; end: {}; problem: Problem };
  /** Follow what the sessions of a member show. Each event has the number of its entry as its id, but the output of a running tool, which comes again to a client that comes back. The stream ends with the event end when the member has ended. */
  "/v1/teams/{team}/members/{member}/session": { entry: Entry; end: {}; problem: Problem };
  /** Follow all teams, with what waits for a person: the present state, and then each new one. A client that reads slowly skips states, and gets the newest. */
  "/v1/watch": { teams: Teams; end: {}; problem: Problem };
}
