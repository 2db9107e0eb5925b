package access

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cadre/internal/layout"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

func given(names ...string) func(string) bool {
	return func(name string) bool { return slices.Contains(names, name) }
}

// TestWho: the host's records decide first, then the environment. The environment never contradicts
// the records.
func TestWho(t *testing.T) {
	ann := &proc.Record{Member: "ann"}
	hook := &proc.Record{Member: "ann", Trusted: true}
	for _, test := range []struct {
		name   string
		below  bool
		origin proc.Origin
		env    string // TEAM NAME HOOK
		is     string
		member string // who acts; "" for the user, and where it is not known
		team   string
	}{
		{name: "nothing", is: "the user"},
		{name: "a default team", env: "demo", is: "the user"},
		{name: "both variables", env: "demo ann", is: "the session of ann in team demo", member: "ann", team: "demo"},
		{name: "a member without a team", env: "- ann", is: "a session of a team"},
		{name: "the user by name", env: "demo @user", is: "a session of a team"},
		{name: "a host by name", env: "demo @host/x", is: "a session of a team"},
		{name: "a team that is a path", env: "../demo ann", is: "a session of a team"},
		{name: "a hook of a command", env: "demo ann TaskCreated", is: "the user"},

		{name: "a session", below: true, origin: proc.Origin{Record: ann, Teams: []string{"demo"}},
			is: "the session of ann in team demo", member: "ann", team: "demo"},
		{name: "its own name", below: true, origin: proc.Origin{Record: ann, Teams: []string{"demo"}}, env: "demo ann",
			is: "the session of ann in team demo", member: "ann", team: "demo"},
		{name: "another team's name", below: true, origin: proc.Origin{Record: ann, Teams: []string{"demo"}},
			env: "other ann", is: "the session of ann in team demo", member: "ann", team: "demo"},
		{name: "another's name", below: true, origin: proc.Origin{Record: ann, Teams: []string{"demo"}},
			env: "demo lead", is: "the session of ann in team demo", team: "demo"},
		{name: "a session that calls itself a hook", below: true, origin: proc.Origin{Record: ann,
			Teams: []string{"demo"}}, env: "demo lead TaskCreated", is: "the session of ann in team demo",
			member: "ann", team: "demo"},
		{name: "an orphan of a session", below: true, origin: proc.Origin{Left: true, Record: ann,
			Teams: []string{"demo"}}, is: "the session of ann in team demo", member: "ann", team: "demo"},
		{name: "an orphan", below: true, origin: proc.Origin{Left: true, Teams: []string{"demo"}}, env: "demo ann",
			is: "a session of team demo", team: "demo"},
		{name: "an orphan of a host of two teams", below: true, origin: proc.Origin{Left: true,
			Teams: []string{"demo", "other"}}, is: "a session of a team"},
		{name: "in a namespace", below: true, origin: proc.Origin{Hidden: true, Teams: []string{"demo"}},
			env: "demo ann", is: "a session of team demo", team: "demo"},
		{name: "in a namespace, of two teams", below: true, origin: proc.Origin{Hidden: true,
			Teams: []string{"demo", "other"}}, is: "a session of a team"},
		{name: "a hook", below: true, origin: proc.Origin{Record: hook, Teams: []string{"demo"}},
			env: "demo ann TaskCreated", is: "the user"},
		{name: "a check", below: true, origin: proc.Origin{Record: &proc.Record{Trusted: true, Check: true},
			Teams: []string{"demo"}}, env: "demo ann", is: "the user"},
		{name: "a hook that says it is a session", below: true, origin: proc.Origin{Record: hook,
			Teams: []string{"demo"}}, env: "demo ann", is: "the user"},
		{name: "what a hook left behind", below: true, origin: proc.Origin{Left: true, Record: hook,
			Teams: []string{"demo"}}, is: "a session of team demo", team: "demo"},
		{name: "a child of nobody's", below: true, origin: proc.Origin{Record: &proc.Record{}, Teams: []string{"demo"}},
			is: "a session of team demo", team: "demo"},
		{name: "the host's own program", below: true, origin: proc.Origin{Own: true, Teams: []string{"demo"}},
			is: "the user"},
		{name: "one that it restricts", below: true, origin: proc.Origin{Own: true, Teams: []string{"demo"}},
			env: "demo bob", is: "the session of bob in team demo", member: "bob", team: "demo"},
		{name: "a teammate of Claude Code's", below: true, origin: proc.Origin{Record: ann, Teams: []string{""}},
			env: "demo ann", is: "the session of ann in a team of Claude Code's", member: "ann"},
	} {
		t.Run(test.name, func(t *testing.T) {
			env := map[string]string{}
			for i, value := range strings.Fields(test.env) {
				if value != "-" {
					env[[]string{"CADRE_TEAM", "CADRE_MEMBER_NAME", "CADRE_HOOK_EVENT"}[i]] = value
				}
			}
			c := who(test.origin, test.below, func(name string) string { return env[name] })
			if c.String() != test.is || c.Member() != test.member || c.Team() != test.team ||
				c.IsUser() != (test.is == "the user") {
				t.Errorf("it is %s, member %q of team %q", c, c.Member(), c.Team())
			}
			actor, err := c.Actor("--as", "")
			switch {
			case c.IsUser() && (actor != team.User || err != nil):
				t.Errorf("%q acts: %v", actor, err)
			case !c.IsUser() && test.member == "" && (actor != "" || team.CodeOf(err) != team.Denied):
				t.Errorf("got the actor %q, want none: %v", actor, err)
			case test.member != "" && (actor != test.member || err != nil):
				t.Errorf("%q acts: %v", actor, err)
			}
			if !c.IsUser() {
				for _, row := range commands {
					if err := c.Command(row.Name, nil); row.Rule == User && team.CodeOf(err) != team.Denied {
						t.Errorf("cadre %s: %v", row.Name, err)
					}
				}
				if _, err := c.Actor("--as", "lead"); team.CodeOf(err) != team.Denied {
					t.Errorf("it acts as the lead: %v", err)
				}
				if err := c.Reach("elsewhere"); team.CodeOf(err) != team.Denied {
					t.Errorf("it reaches another team: %v", err)
				}
				if err := c.Reach(""); team.CodeOf(err) != team.Denied {
					t.Errorf("it reaches a team without a name: %v", err)
				}
				if err := c.Create("elsewhere"); team.CodeOf(err) != team.Denied {
					t.Errorf("it creates a team: %v", err)
				}
			}
			if err := c.Reach("demo"); (err == nil) != (c.IsUser() || test.team == "demo") {
				t.Errorf("its team: %v", err)
			}
		})
	}
}

// TestGate checks what each kind of caller may call.
func TestGate(t *testing.T) {
	ann := Caller{session: true, team: "demo", member: "ann"}
	orphan := Caller{session: true, team: "demo", unknown: "it is an orphan"}
	liar := Caller{session: true, team: "demo", member: "ann", unknown: "it says lead"}
	session := Caller{session: true, member: "ann"}
	for _, test := range []struct {
		path  string
		flags []string
		may   string // of u(ser), a(nn), o(rphan), l(iar), s(eat)
	}{
		{"version", nil, "uaols"},
		{"mcp", []string{"socket"}, "uaols"},
		{"mcp", nil, "ua"},
		{"mcp", []string{"as", "team"}, "ua"},
		{"status", nil, "uao"},
		{"plan", nil, "uao"},
		{"plan", []string{"approve"}, "ua"},
		{"send", nil, "ua"},
		{"task add", nil, "ua"},
		{"task add", []string{"run"}, "u"},
		{"task add", []string{"run", "owner"}, "u"},
		{"observe", nil, "uaols"},
		{"observe", []string{"as-team"}, "u"},
		{"fsck", nil, "uao"},
		{"fsck", []string{"mend"}, "u"},
		{"trust", []string{"list"}, "u"},
		{"no such command", nil, "u"},
	} {
		for letter, c := range map[string]Caller{"u": {}, "a": ann, "o": orphan, "l": liar, "s": session} {
			err := c.Command(test.path, given(test.flags...))
			if may := strings.Contains(test.may, letter); (err == nil) != may {
				t.Errorf("%s calls cadre %s %v: %v", c, test.path, test.flags, err)
			}
			if err != nil && team.CodeOf(err) != team.Denied {
				t.Errorf("%s calls cadre %s: code %q", c, test.path, team.CodeOf(err))
			}
		}
	}
}

// TestChecks: a check acts as the user, except for calls that give power away. A hook is not
// restricted.
func TestChecks(t *testing.T) {
	check := who(proc.Origin{Record: &proc.Record{Trusted: true, Check: true}, Teams: []string{"demo"}}, true,
		func(string) string { return "" })
	hook := who(proc.Origin{Record: &proc.Record{Trusted: true}, Teams: []string{"demo"}}, true,
		func(string) string { return "" })
	for _, test := range []struct {
		path  string
		flags []string
		may   bool
	}{
		{"trust", []string{"yes"}, false}, {"mode", nil, false}, {"permit", nil, false}, {"budget", nil, true},
		{"budget", []string{"tokens"}, false}, {"budget", []string{"unlimited"}, false},
		{"spawn", nil, false}, {"mcp", nil, false},
		{"task add", []string{"run"}, false}, {"task add", []string{"owner", "run"}, false},
		{"task update", []string{"run"}, false}, {"plan", []string{"approve"}, false},
		{"run", nil, false}, {"pull", nil, false}, {"push", nil, false}, {"push", []string{"release"}, false},
		{"handover", nil, false}, {"resume", []string{"take-back"}, false},
		{"task done", nil, false}, {"task done", []string{"as", "verdict"}, false}, {"task rm", nil, false},
		{"task claim", nil, true}, {"task fail", nil, true}, {"task release", nil, true},
		{"claude-teammate", nil, false}, {"no such command", nil, false},
		{"mcp", []string{"socket"}, true}, {"plan", nil, true}, {"plan", []string{"reject"}, true},
		{"task add", nil, true}, {"task update", []string{"owner"}, true},
		{"send", nil, true}, {"status", nil, true}, {"version", nil, true}, {"abort", nil, true},
		{"fsck", []string{"mend"}, true},
	} {
		err := check.Command(test.path, given(test.flags...))
		if (err == nil) != test.may || err != nil && (team.CodeOf(err) != team.Denied || !strings.Contains(err.Error(),
			"cadre "+test.path) || !strings.Contains(err.Error(), "refused in a check")) {
			t.Errorf("a check calls cadre %s %v: %v", test.path, test.flags, err)
		}
		if err := hook.Command(test.path, given(test.flags...)); err != nil {
			t.Errorf("a hook calls cadre %s %v: %v", test.path, test.flags, err)
		}
	}
	if err := check.Entry("TaskList.Create", given("Run")); team.CodeOf(err) != team.Denied {
		t.Errorf("a check creates a task with a command: %v", err)
	}
	if err := check.Entry("TaskList.Create", nil); err != nil {
		t.Errorf("a check creates a task: %v", err)
	}
	for _, entry := range []string{"Manager.PullTeam", "Manager.PushTeam", "Manager.OpenTeam", "Team.HandOver",
		"TaskList.Complete", "TaskList.Decide", "TaskList.Delete"} {
		if err := check.Entry(entry, nil); team.CodeOf(err) != team.Denied || !strings.Contains(err.Error(),
			"refused in a check") {
			t.Errorf("a check calls %s: %v", entry, err)
		}
		if err := hook.Entry(entry, nil); err != nil {
			t.Errorf("a hook calls %s: %v", entry, err)
		}
	}
}

// TestEveryRowHasAVerdictForChecks: a new command or entry with the rule User or Acts needs a
// verdict on whether a check may call it. So does a new flag with such a rule in a row that a check
// may call.
func TestEveryRowHasAVerdictForChecks(t *testing.T) {
	for _, one := range []struct {
		table    []Row
		dash     string
		verdicts map[string]string
	}{{commands, " --", inChecks}, {entries, " ", entriesInChecks}} {
		known := map[string]bool{}
		for _, row := range one.table {
			because, there := one.verdicts[row.Name]
			if known[row.Name] = true; !there && row.Rule >= Acts {
				t.Errorf("%q: say in check.go whether a check may call it", row.Name)
			}
			for _, f := range row.Flags {
				key := row.Name + one.dash + f.Name
				known[key] = true
				if _, there := one.verdicts[key]; !there && because == may && f.Rule >= Acts {
					t.Errorf("%q: say in check.go whether a check may call it", key)
				}
			}
		}
		for key := range one.verdicts {
			if !known[key] {
				t.Errorf("%q is in no table", key)
			}
		}
	}
}

// TestTheTableIsWhole: each name is there once, and each refusal for the user alone has its reason.
// No flag relaxes the rule of its row, except one that makes the command a helper.
func TestTheTableIsWhole(t *testing.T) {
	for _, table := range [][]Row{commands, entries} {
		seen := map[string]bool{}
		for _, row := range table {
			if seen[row.Name] {
				t.Errorf("%q has two rows", row.Name)
			}
			seen[row.Name] = true
			if row.Rule < Anyone || row.Rule > User {
				t.Errorf("%q has no rule", row.Name)
			}
			if (row.Rule == User) != (row.Because != "") {
				t.Errorf("%q: the rule %s with the reason %q", row.Name, row.Rule, row.Because)
			}
			for _, f := range row.Flags {
				if f.Rule <= row.Rule && f.Rule != Anyone || (f.Rule == User) != (f.Because != "") {
					t.Errorf("%q with %s: the rule %s with the reason %q", row.Name, f.Name, f.Rule, f.Because)
				}
			}
		}
	}
}

func TestSpawns(t *testing.T) {
	lead := Caller{session: true, team: "demo", member: "lead"}
	for agent, may := range map[string]bool{"claude": true, "shell": true, "external": true, "acp:sh -c id": false,
		"codex": false, "": false} {
		if err := lead.Spawns(agent, []string{"claude"}); (err == nil) != may {
			t.Errorf("%q: %v", agent, err)
		}
		if err := (Caller{}).Spawns(agent, nil); err != nil {
			t.Errorf("the user spawns %q: %v", agent, err)
		}
	}
}

// TestWhoInThisHome: a home without hosts has no sessions, whatever runs above this process. A home
// whose list cannot be read admits no process.
func TestWhoInThisHome(t *testing.T) {
	for _, name := range []string{"CADRE_TEAM", "CADRE_MEMBER_NAME", "CADRE_SESSION_HOME", "CADRE_HOOK_EVENT"} {
		t.Setenv(name, "")
	}
	h := layout.Home{Root: t.TempDir()}
	if c, err := Who(h); err != nil || !c.IsUser() {
		t.Errorf("%s, %v", c, err)
	}
	t.Setenv("CADRE_TEAM", "demo")
	t.Setenv("CADRE_MEMBER_NAME", "ann")
	for session, member := range map[string]string{"": "ann", h.Root: "ann", h.Root + "/.": "ann", t.TempDir(): "",
		"/nowhere": ""} {
		t.Setenv("CADRE_SESSION_HOME", session)
		if c, err := Who(h); err != nil || c.Member() != member {
			t.Errorf("a session of %q: %s, %v", session, c, err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(h.Root, link); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CADRE_SESSION_HOME", h.Root)
	if c, err := Who(layout.Home{Root: link}); err != nil || c.Member() != "ann" {
		t.Errorf("by a link: %s, %v", c, err)
	}
	if err := os.MkdirAll(h.Running(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.Running(), fmt.Sprintf("%d-x.json", os.Getppid())), []byte("{"),
		0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := Who(h); err == nil {
		t.Errorf("a damaged entry of a parent: %s", c)
	}
	if h = (Caller{}).Scoped(h); h.Scope != nil {
		t.Error("the user's home is restricted")
	}
	if h = (Caller{session: true, team: "demo", member: "ann"}).Scoped(h); h.Scope == nil {
		t.Error("a session's home is not restricted")
	}
}

func TestUnnamed(t *testing.T) {
	env := []string{"A=1", "CADRE_TEAM=x", "CADRE_MEMBER_NAME=y", "CADRE_HOOK_EVENT=z", "CADRE_SESSION_HOME=h",
		"CADRE_TEAM_NAME=kept"}
	if got := Unnamed(env); !slices.Equal(got, []string{"A=1", "CADRE_TEAM_NAME=kept"}) || len(env) != 6 {
		t.Errorf("got %q", got)
	}
}
