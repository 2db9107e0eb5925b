package teams

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cadre/internal/agent"
	"cadre/internal/engine"
	"cadre/internal/team"
)

// TeamConfig describes a team to create. Only Name must be set.
type TeamConfig struct {
	Name string // a letter or digit, then up to 63 letters, digits, _ or -
	Goal string // what the team should achieve; a lead that is an agent works towards it
	Dir  string // where its members work; "" for Options.Dir
	// Lead leads the team as long as the team exists. If its Agent is [External] or "", this
	// program leads. Otherwise the agent leads by itself, and the manager acts as the user. The
	// default Name is lead. A lead cannot be isolated, and its plans need no approval.
	Lead     MemberConfig
	Delegate bool // the lead may only coordinate
	// Members and Tasks are created together with the team, or not at all. The tasks get the ids
	// "1", "2" and so on, in their order. No hook runs for them.
	Members []MemberConfig
	Tasks   []TaskConfig

	Permissions PermissionRules
	Budget      Budget
	// HandoverAt is how full a session's context gets, in percent, before a fresh session continues
	// its work with a note; 0 means 80.
	HandoverAt int
	// MaxTeammates bounds the number of teammates at a time, without the lead. Adding one more
	// returns [ErrMaxTeammates]. 0 means 10 if an agent leads, and no limit if this program leads.
	MaxTeammates int
	// MaxParallel bounds how many teammates have a turn at a time. The others wait, by the priority
	// of their tasks. The lead's turns do not count. 0 means no limit.
	MaxParallel int
	// MaxDepth is how deep teams may be nested in the team, at most 3; 0 for no teams in it.
	MaxDepth int
	// Remote is the git remote through which the work of members travels between machines; "" for a
	// team on one machine. See [MemberConfig].RunsOn.
	Remote string

	// Checks have to pass before [Team.Consolidate] commits what the team did.
	Checks           []Check
	CleanCheckout    bool // the checks run in a clean checkout of the files to commit
	WithCheckChanges bool // what the checks change is committed, too
	// Commands are commands that tasks can name as their check, by their names. An agent that adds
	// a task can name these, and no others.
	Commands map[string]string
	// Facts are files that all members rely on. The team records their present state.
	Facts    []SharedFact
	Liveness Liveness

	// Hooks are commands that run like those of settings.json. Each process that works in the team
	// runs them, unless it has Options.NoSettingsHooks. The team's history records them.
	Hooks []HookCommand

	Metadata map[string]json.RawMessage // what the program stores with the team

	origin, digest string   // path and digest of the team file; "" for none
	fileDigests    []string // of the part of the file about the team itself
}

// MemberConfig describes a member to add, and how its sessions are started. The team's history
// records all of it, so pass secrets in Options.Env.
type MemberConfig struct {
	Name string // unique in the team, ignoring case; for its form see TeamConfig.Name
	// Agent is External, Shell, Claude, Codex, Gemini, OpenCode, ACP with a command, NestedTeam, or
	// a name in Options.Agents.
	Agent string
	// Role restricts which tasks the member takes. If the role has a definition in .claude/agents,
	// of the project or the user, the member gets its prompt, tools and model.
	Role string
	// Prompt is part of the first prompt of each new session, which does not see the lead's
	// conversation. For a NestedTeam it is the goal to which an agent leads its teams. Teams by
	// files and templates come with [LoadTeamFile].
	Prompt  string
	Model   string   // "" for the agent's own choice
	Program string   // executable, by its path or its name in PATH; "" for the agent's own
	Args    []string // added to the arguments of the agent
	Env     []string // added to its environment after Options.Env, each as "name=value"

	PermissionMode PermissionMode // what it may do without asking; "" for the lead's, and for the lead [ModeDefault]
	// PlanApproval means that the member may change nothing before the lead approved its plan.
	PlanApproval bool
	Isolation    Isolation // "" to work in the team's directory
	// RunsOn are labels of the machine that runs the member, for a team in a database with a
	// remote. It must have a worktree. None: it runs where the team is run.
	RunsOn []string
	Budget Budget // of its own, beside the team's; not for a lead

	fileDigests []string     // of the part of the team file about it; nil for no file
	nested      *team.Nested // what its teams are made from, if it is a team of a team file
}

// PermissionMode is what a member may do without asking, with Claude Code's names. Other agents use
// the closest mode that they have.
type PermissionMode string

// The permission modes.
const (
	ModeDefault     PermissionMode = "default"     // it asks before it changes anything
	ModeAcceptEdits PermissionMode = "acceptEdits" // it edits files without asking
	ModeAuto        PermissionMode = "auto"        // its agent decides what to ask about
	// it does not ask; only for teammates of a lead in this mode, unless the user sets it
	ModeBypass  PermissionMode = "bypassPermissions"
	ModeDontAsk PermissionMode = "dontAsk" // it denies what no rule allows
	ModePlan    PermissionMode = "plan"    // it changes nothing
)

// PermissionRules say what the members of a team may do without asking, and who decides the rest.
type PermissionRules struct {
	// Allow are rules for tools, as Claude Code writes them: Edit, Bash(go test:*), Read(docs/**),
	// mcp__server__tool.
	Allow []string
	// Policy selects who answers a request that no rule decides. "" means PolicyUser if an agent
	// leads, and PolicyLead if this program leads.
	Policy PermissionPolicy
	// Timeout bounds the wait for an answer to a coding agent's request or plan, in whole
	// milliseconds; 0 for 5 minutes. A request without an answer is denied.
	Timeout time.Duration
}

// PermissionPolicy selects who answers requests that no rule decides.
type PermissionPolicy string

// The policies. Under the first two, the user answers the lead's own requests.
const (
	PolicyUser  PermissionPolicy = "user"  // the user, with [Team.Questions]
	PolicyLead  PermissionPolicy = "lead"  // the lead, which gets each request as a message
	PolicyAllow PermissionPolicy = "allow" // every request is allowed
	PolicyDeny  PermissionPolicy = "deny"  // every request is denied
)

// Budget limits what a team, or a member, may spend; zero fields mean no limit. When the budget of
// the team is spent, nothing more is started, and running sessions end. When the budget of a member
// is spent, its session ends, and it gets no new work. Tasks that another member assigned to it
// stay assigned; a task that it claimed itself returns to the queue. An external member may still
// complete the task that it holds. The lead is notified when 50, 80 and 95 percent are spent.
type Budget struct {
	Tokens       int64
	CostMicroUSD int64         // millionths of a US dollar, as far as agents report it
	Time         time.Duration // since the team was created or the member joined, in whole milliseconds
}

// founding returns the commands that create the team of the config.
func (m *Manager) founding(ctx context.Context, c TeamConfig) ([]team.Command, error) {
	if m.opts.As != "" { // the core refuses it
		return []team.Command{engine.Command(m.opts.As, &team.CreateTeam{TeamID: c.Name, Name: c.Name, Dir: m.opts.Dir,
			TeammateOf: "another team"})}, nil
	}
	dir := m.opts.Dir
	if c.Dir != "" {
		var err error
		if dir, err = filepath.Abs(c.Dir); err != nil {
			return nil, err
		}
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, refuse(ErrInvalid, fmt.Sprintf("a team cannot work in %s: it is not a directory", dir))
	}
	lead := c.Lead
	if lead.Agent == "" {
		lead.Agent = External
	}
	if lead.PlanApproval || lead.Isolation != "" || lead.Budget != (Budget{}) {
		return nil, refuse(ErrInvalid, "the lead works in the team's directory, and its plans need no approval: "+
			"PlanApproval, Isolation and Budget are for teammates")
	}
	for _, s := range append([]MemberConfig{lead}, c.Members...) {
		if err := m.opts.check(ctx, s, dir); err != nil {
			return nil, err
		}
	}
	facts := make([]team.Fact, 0, len(c.Facts))
	for _, f := range c.Facts {
		facts = append(facts, team.Fact{Name: f.Name, Path: f.Path})
	}
	create := &team.CreateTeam{Hooks: hooksOf(c.Hooks), Timing: c.Liveness.core(), Facts: facts,
		Checks: checksOf(c.Checks), Commands: commandsOf(c.Commands), Clean: c.CleanCheckout,
		Changes: c.WithCheckChanges, Origin: c.origin, OriginDigest: c.digest, FileDigests: c.fileDigests,
		LeadDigests: lead.fileDigests, Name: c.Name, Goal: c.Goal, Dir: dir, Lead: lead.Name, LeadAgent: lead.Agent,
		LeadModel: lead.Model, LeadProgram: lead.Program, LeadArgs: lead.Args, LeadEnv: lead.Env,
		LeadPrompt: lead.Prompt, LeadRole: lead.Role,
		PermissionMode: string(lead.PermissionMode), Delegate: c.Delegate, Budget: team.Budget(c.Budget),
		Permissions: c.Permissions.core(), HandoverAt: int64(c.HandoverAt), MaxTeammates: int64(c.MaxTeammates),
		MaxParallel: int64(c.MaxParallel), MaxDepth: int64(c.MaxDepth), Remote: c.Remote, Metadata: c.Metadata}
	if err := m.engine.Founding(ctx, create); err != nil {
		return nil, &Error{Code: ErrInvalid, Text: err.Error(), cause: err}
	}
	all := []team.Command{engine.Command(team.User, create)}
	founder := team.User
	if lead.Agent == External {
		if founder = lead.Name; founder == "" {
			founder = team.DefaultLead
		}
	}
	for _, s := range c.Members {
		all = append(all, engine.Command(founder, s.core()))
	}
	for _, t := range c.Tasks {
		all = append(all, engine.Command(founder, t.core()))
	}
	return all, nil
}

// check refuses a member before it is added, if a manager with these options could not start its
// session in that directory. It checks only what takes no time. The core refuses other mistakes.
func (o Options) check(ctx context.Context, s MemberConfig, dir string) error {
	if len(s.RunsOn) > 0 { // its machine has the agent, or does not take it
		return nil
	}
	if s.Agent != "" && !o.knows(s.Agent) {
		return refuse(ErrInvalid, fmt.Sprintf("no agent named %q; there are: %s", s.Agent,
			strings.Join(o.agentWords(), ", ")))
	}
	if o.Agents[s.Agent] == nil {
		if err := agent.Missing(o.drivers().Agent(s.Agent), s.Program); err != nil {
			return refuse(ErrInvalid, fmt.Sprintf("%s cannot work here: %v", s.Agent, err))
		}
	}
	return public(engine.Placed(ctx, s.core(), dir))
}

// able returns an error for a member whose agent is not installed or not logged in. An agent of the
// program itself shows that only when it starts.
func (o Options) able(ctx context.Context, s MemberConfig, dir string) error {
	if o.Agents[s.Agent] != nil || s.Agent == External || len(s.RunsOn) > 0 {
		return nil
	}
	m := s.core()
	m.Env = slices.Concat(o.Env, m.Env)
	return public(engine.Able(ctx, m, dir))
}

func (s MemberConfig) core() *team.SpawnMember {
	return &team.SpawnMember{Nested: s.nested,
		Name: s.Name, Agent: s.Agent, Model: s.Model, Role: s.Role, Prompt: s.Prompt,
		Mode:         string(s.PermissionMode),
		PlanApproval: s.PlanApproval, Program: s.Program, Args: s.Args, Env: s.Env, Isolation: string(s.Isolation),
		RunsOn: s.RunsOn, Budget: team.Budget(s.Budget), FileDigests: s.fileDigests}
}

func (r PermissionRules) core() team.Permissions {
	return team.Permissions{Allow: r.Allow, Policy: string(r.Policy), Timeout: r.Timeout}
}

func rulesOf(p team.Permissions) PermissionRules {
	return PermissionRules{Allow: append([]string(nil), p.Allow...), Policy: PermissionPolicy(p.Policy),
		Timeout: p.Timeout}
}
