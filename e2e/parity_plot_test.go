package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cadre/internal/journal/store/filestore"
	"cadre/internal/layout"
	"cadre/internal/liveness/heartbeat"
	"cadre/internal/team"
)

// waits is one thing that waits for a person.
type waits struct {
	kind   team.ItemKind
	team   string
	begins func()
	ends   func() // what the person does about it
}

// plot returns something of each kind that waits, most of them in team demo. Others have a team of
// their own: they would end the items of other kinds, or hide them.
func (w *world) plot() []waits {
	w.repository()
	w.settings()
	w.must("create", "demo", "--fact", "the guide=docs/guide.md")
	w.must("spawn", "demo", "eve", "--agent", "external", "--plan-approval")
	for _, name := range []string{"gus", "fay"} {
		w.must("spawn", "demo", name, "--agent", "external")
	}
	for _, name := range []string{"ann", "cleo"} {
		w.must("spawn", "demo", name, "--agent", "shell", "--isolation", "worktree")
	}
	for _, name := range []string{"bob", "rob"} {
		w.must("spawn", "demo", name, "--agent", "shell")
	}
	return slices.Concat(w.requestsThatWait(), w.membersThatWait(), w.tasksThatWait(), w.teamsThatWait(), w.deadTeams())
}

// settings writes a hook of the user, which rejects a task that was not reviewed.
func (w *world) settings() {
	w.t.Helper()
	check := "test \"$CADRE_TASK_NAME\" != reviewed || test -e " + filepath.Join(w.dir, "review") +
		" || { echo not reviewed >&2; exit 2; }"
	w.put(filepath.Join(w.root, "claude", "settings.json"),
		fmt.Sprintf(`{"hooks": {"TaskCompleted": [{"hooks": [{"type": "command", "command": %q}]}]}}`, check))
}

// as carries out a command as a member of team demo, which is not in a session of its own.
func (w *world) as(member string, body team.Body) {
	w.t.Helper()
	w.in("demo", member, body)
}

// hostOf returns the actor that hosts a member of the team.
func (w *world) hostOf(name, member string) (host string) {
	w.t.Helper()
	rep := w.replica(name)
	defer rep.Close()
	rep.View(func(s *team.State) {
		m, _ := s.Member(member)
		host = team.Host(m.Host)
	})
	return host
}

// in carries out a command as an actor of that team.
func (w *world) in(name, actor string, body team.Body) {
	w.t.Helper()
	rep := w.replica(name)
	defer rep.Close()
	if _, err := rep.Do(w.t.Context(), team.Command{Actor: actor, Body: body}); err != nil {
		w.t.Fatal(err)
	}
}

// request returns the id of what waits in team demo of that kind.
func (w *world) request(kind team.ItemKind) string {
	w.t.Helper()
	for _, i := range read[[]item](w, "attention", "demo") {
		if i.Kind == string(kind) {
			return i.Request
		}
	}
	w.t.Fatalf("nothing of the kind %s waits", kind)
	return ""
}

func (w *world) requestsThatWait() []waits {
	return []waits{
		{team.ItemPermission, "demo", func() {
			w.as("gus", &team.RequestPermission{Tool: "Bash", Input: `{"command":"make clean"}`,
				Deadline: team.Time(time.Now().Add(time.Hour).UnixMilli())})
		}, func() { w.must("permit", "demo", w.request(team.ItemPermission)) }},
		{team.ItemPlan, "demo", func() { w.must("plan", "submit", "demo", "--as", "eve", "1. Look.") },
			func() { w.must("plan", "demo", w.request(team.ItemPlan), "--approve") }},
		{team.ItemQuestion, "demo", func() {
			w.must("send", "demo", "--as", "gus", "--to", "lead", "--intent", "question", "Which one?")
		}, func() { w.must("inbox", "demo", "lead") }},
	}
}

func (w *world) membersThatWait() []waits {
	return []waits{
		{team.ItemHeld, "demo", func() {
			w.must("task", "add", "demo", "hold", "--owner", "bob", "--retries", "9",
				"--run", "touch held; until test -e go; do sleep 0.1; done")
			eventually(w.t, "the task runs", func() bool { return has(w.dir, "held") })
			w.must("interrupt", "demo", "bob")
		}, func() { w.write("go", ""); w.must("send", "demo", "--to", "bob", "go on") }},
		{team.ItemOffline, "demo", func() {
			fay := w.mcp("mcp", "--team", "demo", "--as", "fay")
			eventually(w.t, "fay sends heartbeats", func() bool {
				_, there, err := w.beats().Of(w.t.Context(), "fay")
				return err == nil && there
			})
			fay.dies()
		}, func() { w.mcp("mcp", "--team", "demo", "--as", "fay") }},
		{team.ItemFailed, "demo", func() { w.must("spawn", "demo", "max", "--agent", "acp:false") },
			func() { w.must("spawn", "demo", "mia", "--agent", "external") }},
	}
}

// addTask adds a task of that name to team demo.
func (w *world) addTask(name string, args ...string) {
	w.t.Helper()
	w.must(append([]string{"task", "add", "demo", name, "--name", name}, args...)...)
}

func (w *world) tasksThatWait() []waits {
	return []waits{
		{team.ItemTaskFailed, "demo", func() {
			w.addTask("broken", "--owner", "rob", "--run", "false")
		},
			func() { w.must("task", "update", "demo", "broken", "--run", "true") }},
		{team.ItemTaskYours, "demo", func() { w.addTask("yours", "--owner", "lead") },
			func() { w.must("task", "done", "demo", "yours") }},
		{team.ItemUnassigned, "demo", func() { w.addTask("think", "--role", "thinker") },
			func() { w.must("task", "update", "demo", "think", "--owner", "gus") }},
		{team.ItemHook, "demo", func() {
			w.addTask("reviewed", "--owner", "gus")
			w.must("task", "claim", "demo", "reviewed", "--as", "gus")
			for range team.MaxStrikes {
				w.refused(w.cadre("task", "done", "demo", "reviewed", "--as", "gus"), 1, "not reviewed")
			}
		}, func() { w.write("review", ""); w.must("task", "done", "demo", "reviewed", "--as", "gus") }},
		{team.ItemConflict, "demo", func() {
			w.addTask("hers", "--owner", "ann", "--run", "echo hers >same")
			w.addTask("his", "--owner", "cleo", "--run", "echo his >same")
			w.addTask("both", "--owner", "cleo", "--run", "true", "--blocked-by", "hers,his")
		}, func() {
			w.must("task", "rm", "demo", "both")
			for _, i := range read[[]item](w, "attention", "demo") {
				if i.Kind == string(team.ItemConflict) {
					w.must("task", "done", "demo", i.Task)
				}
			}
		}},
		{team.ItemFacts, "demo", func() { w.write("docs/guide.md", "# Another guide\n") },
			func() { w.must("facts", "demo", "--record") }},
	}
}

// id returns the id of a team.
func (w *world) id(name string) string {
	w.t.Helper()
	for _, one := range list[struct{ ID, Name string }](w, "ls") {
		if one.Name == name {
			return one.ID
		}
	}
	w.t.Fatalf("there is no team %s", name)
	return ""
}

// project makes a folder for a team of that name, and returns it.
func (w *world) project(name string) string {
	w.t.Helper()
	dir := filepath.Join(w.root, "projects", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	return dir
}

// found creates a team in its own folder.
func (w *world) found(name string, args ...string) {
	w.t.Helper()
	w.must(append([]string{"create", name, "--dir", w.project(name)}, args...)...)
}

func (w *world) teamsThatWait() []waits {
	var file, whole string // of the damaged team
	return []waits{
		{team.ItemLate, "slow", func() {
			w.found("slow", "--liveness", "undelivered=1s")
			w.must("spawn", "slow", "gus", "--agent", "external")
			w.must("send", "slow", "--to", "gus", "are you there?")
		}, func() { w.must("inbox", "slow", "gus") }},
		{team.ItemCheck, "checked", func() {
			w.git("-C", w.project("checked"), "init", "-q")
			w.found("checked", "--check", "strict: test -e "+filepath.Join(w.root, "strict"))
			w.must("spawn", "checked", "eve", "--agent", "external")
			w.write("../projects/checked/new", "")
			w.refused(w.cadre("consolidate", "checked", "--json"), 1, "the check strict failed")
		}, func() {
			w.write("../strict", "")
			w.must("consolidate", "checked")
		}},
		{team.ItemRateLimit, "limited", func() {
			w.found("limited")
			w.must("spawn", "limited", "gus", "--agent", "shell", "--wait")
			eventually(w.t, "the first turn of gus, which would end the trouble, is over", func() (idle bool) {
				rep := w.replica("limited")
				defer rep.Close()
				rep.View(func(s *team.State) { m, _ := s.Member("gus"); idle = m.Status == team.Idle })
				return idle
			})
			w.in("limited", w.hostOf("limited", "gus"), &team.ReportTrouble{Member: "gus", Trouble: "limit",
				Text: "429", Pool: "a model, login",
				Until: team.Time(time.Now().Add(300 * time.Hour).UnixMilli())})
		}, func() { w.in("limited", team.User, &team.LiftLimit{Member: "gus"}) }},
		{team.ItemMachine, "far", func() {
			create := &team.CreateTeam{Name: "far", Dir: w.project("far"), Remote: "origin"}
			ann := &team.SpawnMember{Name: "ann", Agent: team.Shell, Isolation: team.Worktree, RunsOn: []string{"gpu"}}
			home := layout.Home{Root: w.home}
			ago := time.Now().Add(-time.Minute)
			if err := home.Create("far", append(founding(ago, create), command(ago, ann))); err != nil {
				w.t.Fatal(err)
			}
		}, func() { w.must("shutdown", "far", "ann") }},
		{team.ItemBudget, "spent", func() { w.old("spent", 300*time.Hour) },
			func() { w.must("budget", "spent", "--unlimited") }},
		{team.ItemBudgetLow, "low", func() { w.old("low", 600*time.Hour) },
			func() { w.must("budget", "low", "--unlimited") }},
		{team.ItemUntrusted, "hooked", func() {
			w.put(filepath.Join(w.project("hooked"), ".claude", "settings.json"),
				`{"hooks": {"TaskCreated": [{"hooks": [{"type": "command", "command": "true"}]}]}}`)
			w.found("hooked")
		}, func() { w.must("trust", "--yes", "--dir", w.project("hooked")) }},
		{team.ItemConsolidate, "done", func() {
			w.found("done")
			w.must("spawn", "done", "eve", "--agent", "external")
			w.must("task", "add", "done", "one", "--name", "one", "--owner", "eve")
			w.must("task", "claim", "done", "one", "--as", "eve")
			w.must("task", "done", "done", "one", "--as", "eve")
		}, func() { w.must("consolidate", "done", "--no-commit", "--complete") }},
		{team.ItemDirectory, "moved", func() {
			w.found("moved")
			w.move("moved", "gone")
		}, func() { w.move("gone", "moved") }},
		{team.ItemDamaged, "damaged", func() { file, whole = w.damage("damaged") },
			func() { w.put(file, whole) }},
	}
}

// damage puts a damaged team into the home, and returns the file and what it has to be. A process
// that has read a team before does not notice.
func (w *world) damage(name string) (file, whole string) {
	w.t.Helper()
	other := filepath.Join(w.root, "other")
	if r := w.with([]string{"CADRE_HOME=" + other}, "create", name, "--dir", w.project(name)); r.code != 0 {
		w.t.Fatal(r.err)
	}
	segments, err := filepath.Glob(filepath.Join(other, "teams", name, "journal", "*.jsonl"))
	if err != nil || len(segments) != 1 {
		w.t.Fatalf("got the segments %v (%v), want one", segments, err)
	}
	text, err := os.ReadFile(segments[0])
	if err != nil {
		w.t.Fatal(err)
	}
	w.put(segments[0], strings.Replace(string(text), "team_created", "team_crested", 1))
	folder := filepath.Join(w.home, "teams", name)
	if err := os.Rename(filepath.Join(other, "teams", name), folder); err != nil {
		w.t.Fatal(err)
	}
	return filepath.Join(folder, "journal", filepath.Base(segments[0])), string(text)
}

// put writes a file of the user alone.
func (w *world) put(file, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// old creates a team that was created 350 hours ago, with that budget of time. What is spent of it
// stays at the same percentage for hours: the faces are looked at one after the other.
func (w *world) old(name string, budget time.Duration) {
	w.t.Helper()
	body := &team.CreateTeam{Name: name, Dir: w.project(name), Budget: team.Budget{Time: budget}}
	home := layout.Home{Root: w.home}
	if err := home.Create(name, founding(time.Now().Add(-350*time.Hour), body)); err != nil {
		w.t.Fatal(err)
	}
}

// move renames the folder of a team.
func (w *world) move(from, to string) {
	w.t.Helper()
	projects := filepath.Join(w.root, "projects")
	if err := os.Rename(filepath.Join(projects, from), filepath.Join(projects, to)); err != nil {
		w.t.Fatal(err)
	}
}

// deadTeams are teams of which a process has ended, or is on another machine.
func (w *world) deadTeams() []waits {
	leads := map[string]*client{}
	lead := func(name string) {
		w.found(name)
		leads[name] = w.mcp("mcp", "--team", name)
	}
	session := func(name string) { w.must("spawn", name, "ann", "--wait") }
	dies := func(name string) {
		if w.killHosts(filepath.Join(w.home, "teams", name)) != 1 {
			w.t.Fatalf("team %s has not one host", name)
		}
	}
	hold := mark()
	var consolidation *process
	return []waits{
		{team.ItemDormant, "dead", func() { w.found("dead"); session("dead"); dies("dead") },
			func() { w.must("resume", "dead") }},
		{team.ItemUnhosted, "alone", func() { lead("alone"); session("alone"); dies("alone") },
			func() { w.must("resume", "alone") }},
		{team.ItemLeadLost, "lost", func() { lead("lost"); session("lost"); leads["lost"].dies() },
			func() { w.must("resume", "lost") }},
		{team.ItemElsewhere, "away", func() {
			lead("away")
			w.must("spawn", "away", "eve", "--agent", "external")
			beats := heartbeat.In(filestore.Team(filepath.Join(w.home, "teams", "away")))
			var b heartbeat.Beat
			eventually(w.t, "the lead sends heartbeats", func() (there bool) {
				b, there, _ = beats.Of(w.t.Context(), "lead")
				return there
			})
			leads["away"].kill()
			leads["away"].wait()
			if err := beats.Write(w.t.Context(), heartbeat.Beat{Member: "lead",
				At: time.Now().UnixMilli(), Session: b.Session, Machine: "elsewhere", Count: b.Count + 1}); err != nil {
				w.t.Fatal(err)
			}
		}, func() { w.must("resume", "away", "--take-over") }},
		{team.ItemLeadFailed, "stuck", func() {
			body := &team.CreateTeam{Name: "stuck", Dir: w.project("stuck"), LeadAgent: "acp:false"}
			if err := (layout.Home{Root: w.home}).Create("stuck", founding(time.Now(), body)); err != nil {
				w.t.Fatal(err)
			}
			session("stuck")
		}, func() { w.must("abort", w.id("stuck"), "--yes") }},
		{team.ItemInterrupted, "cut", func() {
			w.git("-C", w.project("cut"), "init", "-q")
			w.found("cut", "--check", "slow: sleep "+hold)
			w.must("spawn", "cut", "eve", "--agent", "external")
			consolidation = w.start("consolidate", "cut")
			eventually(w.t, "the check runs", func() bool { return len(marked(w.t, hold)) > 0 })
			consolidation.kill()
		}, func() { w.must("consolidate", "cut", "--rollback"); noneLeft(w.t, hold) }},
	}
}
