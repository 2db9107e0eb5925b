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

// TeamConfig says which team to create. Only Name must be set.
type TeamConfig struct {
	Name string // a letter or digit, then up to 63 letters, digits, _ or -
	Goal string // what the team is for; a lead that is an agent works towards it
	Dir  string // where its members work; "" for Options.Dir
	// Lead leads the team for its life. Its Agent is [External], or "", where this program leads;
	// an agent leads by itself, and the manager acts as the user then. Its Name is lead where it
	// has none. It cannot be isolated, and nobody approves its plans.
	Lead     MemberConfig
	Delegate bool // the lead may only coordinate
	// Members and Tasks are there from the beginning: with the team or not at all. The ids of the
	// tasks are "1", "2" and so on, in their order. No hook is asked about them.
	Members []MemberConfig
	Tasks   []TaskConfig

	Permissions PermissionRules
	Budget      Budget
	// HandoverAt is how full a session's context gets, in percent, before a fresh session continues
	// for it with a note; 0 for 80.
	HandoverAt int
	// MaxTeammates is how many teammates the team may have at a time, the lead not counted; one
	// more is refused with the code [ErrMaxTeammates]. 0 is for 10 that a lead that is an agent
	// spawns, and any number that this program does.
	MaxTeammates int

	// Checks have to pass before [Team.Consolidate] commits what the team did.
	Checks           []Check
	CleanCheckout    bool // the checks run in a clean checkout of what is to be committed
	WithCheckChanges bool // what the checks change is committed, too
	// Facts are files that everybody relies on. The team takes note of them as they are now.
	Facts    []SharedFact
	Liveness Liveness

	// Hooks are commands that are asked as those of settings.json are, by whichever process works
	// in the team, unless it has Options.NoSettingsHooks. They are kept in its history.
	Hooks []HookCommand

	Metadata map[string]json.RawMessage // what the program keeps with the team

	origin, digest string   // path and digest of the team file; "" for none
	fileDigests    []string // of what the file says of the team itself
}

// MemberConfig says who to add to a team, and how its sessions are started. All of it is kept in
// the team's history; secrets belong into Options.Env.
type MemberConfig struct {
	Name  string // unique in the team, in lower and upper case; as TeamConfig.Name
	Agent string // External, Shell, Claude, Codex, Gemini, OpenCode, ACP with a command, or a name in Options.Agents
	// Role is what tasks can be meant for. A role that has a definition in .claude/agents, of the
	// project or the user, brings its prompt, its tools and its model.
	Role    string
	Prompt  string   // what its first session is told; of the lead's own conversation it gets nothing
	Model   string   // "" for the agent's own choice
	Program string   // executable, by its path or its name in PATH; "" for the agent's own
	Args    []string // added to the arguments of the agent
	Env     []string // added to its environment after Options.Env, each as "name=value"

	PermissionMode PermissionMode // what it may do without asking; "" for the lead's, and for the lead [ModeDefault]
	// PlanApproval means that it may change nothing before the lead approved a plan of it.
	PlanApproval bool
	Isolation    Isolation // "" to work in the team's directory
	Budget       Budget    // of its own, beside the team's; not for a lead

	fileDigests []string // of what the team file says of it; nil for no file
}

// PermissionMode is what a member may do without asking, by the names that Claude Code gives them;
// other agents do what comes closest.
type PermissionMode string

// The permission modes.
const (
	ModeDefault     PermissionMode = "default"     // it asks before it changes anything
	ModeAcceptEdits PermissionMode = "acceptEdits" // it edits files without asking
	ModeAuto        PermissionMode = "auto"        // its agent decides what to ask about
	// it asks nothing; only for teammates of a lead that is in this mode, unless the user gives it
	ModeBypass  PermissionMode = "bypassPermissions"
	ModeDontAsk PermissionMode = "dontAsk" // what no rule allows is denied
	ModePlan    PermissionMode = "plan"    // it changes nothing
)

// PermissionRules say what the members of a team may do without asking, and who is asked about the
// rest.
type PermissionRules struct {
	// Allow are rules for tools, as Claude Code writes them: Edit, Bash(go test:*), Read(docs/**),
	// mcp__server__tool.
	Allow []string
	// Policy is who settles a request that no rule settles. "" is PolicyUser where an agent leads,
	// and else PolicyLead: this program.
	Policy PermissionPolicy
	// Timeout is how long what a coding agent asks waits for its answer, also a plan, in whole
	// milliseconds; 0 for 5 minutes. What nobody answers is denied.
	Timeout time.Duration
}

// PermissionPolicy is who settles what no rule does.
type PermissionPolicy string

// The policies. The lead's own requests are the user's to answer under each of the first two.
const (
	PolicyUser  PermissionPolicy = "user"  // the human whose team it is, for whom [Team.Questions] is
	PolicyLead  PermissionPolicy = "lead"  // the lead, which gets each request as a message
	PolicyAllow PermissionPolicy = "allow" // every request is allowed
	PolicyDeny  PermissionPolicy = "deny"  // every request is denied
)

// Budget limits what a team, or a member, may spend; zero fields mean no limit. When the budget of
// the team is spent, nothing more is started, and running sessions end. When the budget of a member
// is spent, its session ends, and it gets no new work. Tasks that were assigned to it stay assigned
// to it; a task that it claimed itself returns to the queue. An external member may still complete
// the task that it holds. The lead is notified when 50, 80 and 95 percent are spent.
type Budget struct {
	Tokens       int64
	CostMicroUSD int64         // millionths of a US dollar, as far as agents say what they cost
	Time         time.Duration // since the team was created or the member joined, in whole milliseconds
}

// founding is the config as the commands that make the team.
func (m *Manager) founding(ctx context.Context, c TeamConfig) ([]team.Command, error) {
	if m.opts.As != "" { // the refusal is the core's
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
		return nil, refuse(ErrInvalid, fmt.Sprintf("a team cannot work in %s, which is no directory", dir))
	}
	lead := c.Lead
	if lead.Agent == "" {
		lead.Agent = External
	}
	if lead.PlanApproval || lead.Isolation != "" || lead.Budget != (Budget{}) {
		return nil, refuse(ErrInvalid, "the lead works in the team's directory, and nobody approves its plans: "+
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
		Checks: checksOf(c.Checks), Clean: c.CleanCheckout, Changes: c.WithCheckChanges, Origin: c.origin,
		OriginDigest: c.digest, FileDigests: c.fileDigests, LeadDigests: lead.fileDigests, Name: c.Name, Goal: c.Goal, Dir: dir, Lead: lead.Name,
		LeadAgent: lead.Agent, LeadModel: lead.Model, LeadProgram: lead.Program, LeadArgs: lead.Args, LeadEnv: lead.Env,
		LeadPrompt: lead.Prompt, LeadRole: lead.Role,
		PermissionMode: string(lead.PermissionMode), Delegate: c.Delegate, Budget: c.Budget.core(),
		Permissions: c.Permissions.core(), HandoverAt: int64(c.HandoverAt), MaxTeammates: int64(c.MaxTeammates),
		Metadata: c.Metadata}
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

// check refuses a member whose session a manager with these options could not start in that
// directory, before it is one, as far as that can be told at once. What else makes no sense the core
// refuses.
func (o Options) check(ctx context.Context, s MemberConfig, dir string) error {
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

// able refuses a member whose agent is not installed, or to which nobody is logged in. The agents of
// the program itself are asked by starting them alone.
func (o Options) able(ctx context.Context, s MemberConfig, dir string) error {
	if o.Agents[s.Agent] != nil || s.Agent == External {
		return nil
	}
	m := s.core()
	m.Env = slices.Concat(o.Env, m.Env)
	return public(engine.Able(ctx, m, dir))
}

func (s MemberConfig) core() *team.SpawnMember {
	return &team.SpawnMember{Name: s.Name, Agent: s.Agent, Model: s.Model, Role: s.Role, Prompt: s.Prompt,
		Mode:         string(s.PermissionMode),
		PlanApproval: s.PlanApproval, Program: s.Program, Args: s.Args, Env: s.Env, Isolation: string(s.Isolation),
		Budget: s.Budget.core(), FileDigests: s.fileDigests}
}

func (r PermissionRules) core() team.Permissions {
	return team.Permissions{Allow: r.Allow, Policy: string(r.Policy), Timeout: r.Timeout}
}

func rulesOf(p team.Permissions) PermissionRules {
	return PermissionRules{Allow: append([]string(nil), p.Allow...), Policy: PermissionPolicy(p.Policy),
		Timeout: p.Timeout}
}

func (b Budget) core() team.Budget {
	return team.Budget{Tokens: b.Tokens, CostMicroUSD: b.CostMicroUSD, Time: b.Time}
}

func budgetOf(b team.Budget) Budget {
	return Budget{Tokens: b.Tokens, CostMicroUSD: b.CostMicroUSD, Time: b.Time}
}
