package teams_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/access"
	"cadre/pkg/teams"
)

// passive lists the types of the library whose methods do not touch a cadre team: values, an
// agent's reports to its host, and the observer.
var passive = []string{"AmbiguousError", "Code", "Error", "Hint", "MemberStatus", "Observer", "Options", "Slot",
	"TeamStatus",
	"Worker"}

// exported returns the functions of the library and the methods of its other types.
func exported(t *testing.T) (names []string) {
	t.Helper()
	packages, err := parser.ParseDir(token.NewFileSet(), source,
		func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range packages["teams"].Files {
		for _, d := range file.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is || !f.Name.IsExported() {
				continue
			}
			name := f.Name.Name
			if f.Recv != nil {
				of := f.Recv.List[0].Type
				if star, is := of.(*ast.StarExpr); is {
					of = star.X
				}
				receiver := of.(*ast.Ident).Name
				if !ast.IsExported(receiver) || slices.Contains(passive, receiver) {
					continue
				}
				name = receiver + "." + name
			}
			names = append(names, name)
		}
	}
	return names
}

// TestEveryEntryIsInTheTable checks that internal/access says for every entry who may call it.
func TestEveryEntryIsInTheTable(t *testing.T) {
	names := exported(t)
	rows := access.Entries()
	for _, name := range names {
		if !slices.ContainsFunc(rows, func(r access.Row) bool { return r.Name == name }) {
			t.Errorf("%s is not in the table of internal/access: say who may call it", name)
		}
	}
	for _, r := range rows {
		if !slices.Contains(names, r.Name) {
			t.Errorf("the table has a row for %s, but the entry does not exist", r.Name)
		}
	}
}

// session puts the test into the session of a member. It returns a manager that was created there.
func session(t *testing.T, o teams.Options, team, member string) *teams.Manager {
	t.Helper()
	t.Setenv("CADRE_TEAM", team)
	t.Setenv("CADRE_MEMBER_NAME", member)
	m, err := teams.New(o)
	ok(t, err)
	t.Cleanup(func() { m.Close() })
	return m
}

func onDisk(t *testing.T) teams.Options {
	dir := t.TempDir()
	for _, name := range []string{"project", "claude", "cadre"} {
		ok(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	return teams.Options{Home: filepath.Join(dir, "cadre"), ClaudeHome: filepath.Join(dir, "claude"),
		Dir: filepath.Join(dir, "project")}
}

// TestASessionsManager checks that the library acts as the member in a member's session, and only
// in that member's team. No entry lets it act as another member. The lead's session is refused the
// user's entries too.
func TestASessionsManager(t *testing.T) {
	o := onDisk(t)
	for _, name := range []string{"core", "other"} {
		user, err := teams.New(o)
		ok(t, err)
		_, err = user.CreateTeam(limited(t), teams.TeamConfig{Name: name,
			Members: []teams.MemberConfig{{Name: "ann", Agent: teams.External}, {Name: "bob", Agent: teams.External}},
			Tasks:   []teams.TaskConfig{{Subject: "look"}}})
		ok(t, err)
		ok(t, user.Close())
	}
	for _, member := range []string{"ann", "lead"} {
		t.Run(member, func(t *testing.T) {
			m := session(t, o, "core", member)
			for _, as := range []string{"bob", "lead", "ann", "nobody"} {
				other := o
				if other.As = as; as == member {
					continue
				}
				_, err := teams.New(other)
				want(t, err, teams.ErrDenied)
			}
			_, err := m.OpenTeam(limited(t), "other")
			want(t, err, teams.ErrDenied)
			_, err = m.OpenTeam(limited(t), "nowhere")
			want(t, err, teams.ErrDenied)
			team, err := m.OpenTeam(limited(t), "core")
			ok(t, err)

			denied := usersEntries(m, team)
			for _, row := range access.Entries() {
				call, there := denied[row.Name]
				if row.Rule == access.User && !there {
					t.Errorf("only the user may call %s, but the test does not call it in a session", row.Name)
				}
				if !there {
					continue
				}
				delete(denied, row.Name)
				t.Run(row.Name, func(t *testing.T) { want(t, call(limited(t)), teams.ErrDenied) })
			}
			if len(denied) > 0 {
				t.Errorf("the test calls entries that are in no table: %v", denied)
			}
			for _, as := range []string{"bob", "lead", "ann"} {
				if _, err := team.As(as); as == member {
					ok(t, err)
				} else {
					want(t, err, teams.ErrDenied)
				}
			}
			want(t, send(limited(t), m, "bob", "lead", "not mine"), teams.ErrDenied)
			want(t, send(limited(t), m, teams.User, "bob", "not mine"), teams.ErrDenied)

			// Acting as itself works.
			ok(t, send(limited(t), m, "", "bob", "from "+member))
			task, err := team.Tasks().Create(limited(t), teams.TaskConfig{Subject: "look again"})
			ok(t, err)
			equal(t, "who created it", task.CreatedBy, member)
			members, err := team.Members(limited(t))
			ok(t, err)
			equal(t, "members", len(members), 3)
		})
	}
	for _, name := range []string{"core", "other"} {
		user, err := teams.New(o)
		ok(t, err)
		team, err := user.OpenTeam(limited(t), name)
		ok(t, err)
		info, err := team.Info(limited(t))
		ok(t, err)
		if info.Delegate || info.Budget != (teams.Budget{}) || info.Status != teams.TeamStatusActive {
			t.Errorf("team %s was changed: %+v", name, info)
		}
		ok(t, user.Close())
	}
}

// usersEntries maps entries that a session is refused to calls of them.
func usersEntries(m *teams.Manager, team *teams.Team) map[string]func(context.Context) error {
	spawn := func(s teams.MemberConfig) func(context.Context) error {
		return func(ctx context.Context) error { _, err := team.Spawn(ctx, s); return err }
	}
	return map[string]func(context.Context) error{
		"Manager.CreateTeam": func(ctx context.Context) error {
			_, err := m.CreateTeam(ctx, teams.TeamConfig{Name: "new"})
			return err
		},
		"Manager.Cleanup": m.Cleanup,
		"Manager.PushTeam": func(ctx context.Context) error {
			_, err := m.PushTeam(ctx, "core", teams.PushOptions{})
			return err
		},
		"Manager.PullTeam": func(ctx context.Context) error {
			_, err := m.PullTeam(ctx, "core", teams.PullOptions{})
			return err
		},
		"Team.Spawn": spawn(teams.MemberConfig{Name: "eve", Agent: teams.Shell, Program: "/bin/false"}),
		"Team.Questions": func(ctx context.Context) error {
			for _, err := range team.Questions(ctx) {
				return err
			}
			return nil
		},
		"Team.AddRule": func(ctx context.Context) error {
			return team.AddRule(ctx, teams.PermissionRule{Rule: "Bash(make)"})
		},
		"Team.RemoveRule": func(ctx context.Context) error {
			return team.RemoveRule(ctx, teams.PermissionRule{Rule: "Bash(make)"})
		},
		"Team.SetMode":     func(ctx context.Context) error { return team.SetMode(ctx, "bob", teams.ModeBypass) },
		"Team.DisableHook": func(ctx context.Context) error { return team.DisableHook(ctx, "TaskCreated") },
		"Team.EnableHook":  func(ctx context.Context) error { return team.EnableHook(ctx, "TaskCreated") },
		"Team.TryHook": func(ctx context.Context) error {
			_, err := team.TryHook(ctx, "TaskCreated", nil)
			return err
		},
		"Team.EnterDelegateMode": team.EnterDelegateMode,
		"Team.LeaveDelegateMode": team.LeaveDelegateMode,
		"Team.UserMail":          func(context.Context) error { _, err := team.UserMail(); return err },
		"Team.SetMemberBudget": func(ctx context.Context) error {
			return team.SetMemberBudget(ctx, "y", teams.Budget{Tokens: 1 << 40})
		},
		"Team.SetBudget": func(ctx context.Context) error {
			return team.SetBudget(ctx, teams.Budget{Tokens: 1, Time: time.Hour})
		},
		"Team.Interrupt": func(ctx context.Context) error { return team.Interrupt(ctx, "bob") },
		"Team.HandOver":  func(ctx context.Context) error { return team.HandOver(ctx, "bob", "") },
		"Team.Run":       func(ctx context.Context) error { _, err := team.Run(ctx, teams.RunOptions{}); return err },
		"Team.Retry":     team.Retry,
		"Team.Consolidate": func(ctx context.Context) error {
			_, err := team.Consolidate(ctx, teams.ConsolidateOptions{})
			return err
		},
		"Team.TryChecks": func(ctx context.Context) error {
			_, err := team.TryChecks(ctx, teams.ConsolidateOptions{})
			return err
		},
		"Team.RollBackConsolidation": func(ctx context.Context) error { return team.RollBackConsolidation(ctx, "") },
		"Team.WindDown":              team.WindDown,
		"Team.Checkpoint":            func(ctx context.Context) error { _, err := team.Checkpoint(ctx); return err },
		"Team.RecordFacts":           func(ctx context.Context) error { return team.RecordFacts(ctx) },
		"Team.Reassign": func(ctx context.Context) error {
			_, err := team.Reassign(ctx, teams.Reassignment{Task: "1", To: "bob"})
			return err
		},
		"Manager.MendTeam":     func(ctx context.Context) error { _, err := m.MendTeam(ctx, "core"); return err },
		"Manager.Machines":     func(ctx context.Context) error { _, err := m.Machines(ctx); return err },
		"Manager.DrainMachine": func(ctx context.Context) error { return m.DrainMachine(ctx, "one") },
		"Manager.ServeMachine": func(ctx context.Context) error { return m.ServeMachine(ctx, teams.MachineConfig{}) },
		"Manager.PauseTeam":    func(ctx context.Context) error { _, err := m.PauseTeam(ctx, "core"); return err },
		"Manager.ShowPanes": func(ctx context.Context) error {
			_, err := m.ShowPanes(ctx, "core", teams.DisplayTmux)
			return err
		},
		"Manager.ClosePanes": func(ctx context.Context) error { _, err := m.ClosePanes(ctx, "core"); return err },
		"Manager.RemoveTeam": func(ctx context.Context) error {
			_, err := m.RemoveTeam(ctx, "core", teams.RemoveOptions{Force: true})
			return err
		},
		"Manager.ResumeTeam": func(ctx context.Context) error {
			_, _, err := m.ResumeTeam(ctx, "core", teams.ResumeOptions{TakeOver: true})
			return err
		},
		"Manager.RestoreTeam": func(ctx context.Context) error {
			_, err := m.RestoreTeam(ctx, "core", teams.RestoreOptions{})
			return err
		},
		"Team.RollBackTask": func(ctx context.Context) error {
			_, err := team.RollBackTask(ctx, "1", "")
			return err
		},
		"Team.Complete": func(ctx context.Context) error { return team.Complete(ctx, "") },
		"Team.Abort":    func(ctx context.Context) error { return team.Abort(ctx, "") },
		"TaskList.Update": func(ctx context.Context) error {
			_, err := team.Tasks().Update(ctx, "1", teams.TaskUpdate{Run: new("touch ran")})
			return err
		},
		"TaskList.Create": func(ctx context.Context) error {
			_, err := team.Tasks().Create(ctx, teams.TaskConfig{Subject: "run it", Run: "touch ran"})
			return err
		},
		"TaskList.CreateAll": func(ctx context.Context) error {
			_, err := team.Tasks().CreateAll(ctx, []teams.TaskConfig{{Subject: "look"},
				{Subject: "run it", Run: "touch ran"}})
			return err
		},
	}
}

// TestALeadsSessionSpawns checks that a lead's session can spawn only what the lead's tools allow.
func TestALeadsSessionSpawns(t *testing.T) {
	o := onDisk(t)
	user, err := teams.New(o)
	ok(t, err)
	_, err = user.CreateTeam(limited(t), teams.TeamConfig{Name: "core"})
	ok(t, err)
	ok(t, user.Close())
	m := session(t, o, "core", "lead")
	_, err = m.OpenTeam(limited(t), "core")
	ok(t, err)
	for _, s := range []teams.MemberConfig{
		{Agent: teams.ACP + "sh -c id"}, {Agent: teams.Shell, Program: "/bin/false"},
		{Agent: teams.Shell, Args: []string{"-v"}},
		{Agent: teams.Shell, Env: []string{"PATH=."}}, {Agent: teams.Shell, PermissionMode: teams.ModeBypass},
	} {
		s.Name = "eve"
		_, err := m.Team().Spawn(limited(t), s)
		want(t, err, teams.ErrDenied)
	}
	_, err = m.Team().Spawn(limited(t), teams.MemberConfig{Name: "bob", Agent: teams.External})
	ok(t, err)
}

// TestHalfASession checks that variables that do not name a member of a team give no access.
func TestHalfASession(t *testing.T) {
	o := onDisk(t)
	t.Setenv("CADRE_TEAM", "")
	t.Setenv("CADRE_MEMBER_NAME", "ann")
	_, err := teams.New(o)
	want(t, err, teams.ErrDenied)
	t.Setenv("CADRE_MEMBER_NAME", "")
	m, err := teams.New(o)
	ok(t, err)
	ok(t, m.Close())
}
