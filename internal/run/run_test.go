package run_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/agent"
	"cadre/internal/agent/shell"
	"cadre/internal/engine"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/run"
	"cadre/internal/run/teamfile"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// office is a place to run team files in: a home and a directory.
type office struct {
	t    *testing.T
	home layout.Home
	dir  string
}

func newOffice(t *testing.T) office {
	t.Helper()
	return office{t: t, home: layout.Home{Root: filepath.Join(t.TempDir(), "cadre"), Claude: filepath.Join(t.TempDir(),
		"claude")}, dir: t.TempDir()}
}

func (o office) options(text string) run.Options {
	o.t.Helper()
	file, err := teamfile.Parse([]byte(text), "team.yaml", []teamfile.Agent{{Name: team.Shell, CommandsOnly: true},
		{Name: team.External}})
	if err != nil {
		o.t.Fatal(err)
	}
	return run.Options{Engine: &engine.Engine{Home: o.home, Log: func(text string) { o.t.Log(text) }}, File: file,
		Path: filepath.Join(o.dir, "team.yaml"), Dir: o.dir,
		Agent: func(name string) agent.Agent {
			if name != team.Shell {
				return nil
			}
			return shell.Agent{Ladder: proc.Ladder{Term: 100 * time.Millisecond}}
		}}
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 30*time.Second, errors.New("the test takes too long"))
	t.Cleanup(cancel)
	return ctx
}

func (o office) run(text string) run.Result {
	o.t.Helper()
	r, err := run.Run(within(o.t), o.options(text))
	if err != nil {
		o.t.Fatal(err)
	}
	return r
}

func (o office) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(o.dir, name))
	return string(text)
}

const three = `
name: demo
members: [{name: ann, agent: shell, count: 2}]
tasks:
  - {id: one, run: echo one}
  - {id: two, run: echo two}
  - {id: last, run: 'cat "$CADRE_RESULTS"/*', blockedBy: [one, two]}
`

func TestARun(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	options := o.options(three)
	var seqs []int64
	var began []bool
	options.Began = func(_ team.Team, again bool) { began = append(began, again) }
	options.Saw = func(r *team.Record, _ *engine.Team) { seqs = append(seqs, r.Seq) }
	r, err := run.Run(within(t), options)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Done() || r.Completed != 3 || r.Failed != 0 || r.Open != 0 || r.Team.Status != team.TeamComplete {
		t.Errorf("it ended with %+v", r)
	}
	if r.Report != filepath.Join(o.dir, "demo-report.md") || !strings.Contains(o.read("demo-report.md"), "one\ntwo") {
		t.Errorf("the report at %s is\n%s", r.Report, o.read("demo-report.md"))
	}
	for i, seq := range seqs {
		if seq != int64(i+1) {
			t.Fatalf("as record %d it was told %d", i+1, seq)
		}
	}
	j, _, err := o.home.Open("demo", nil)
	if err != nil {
		t.Fatal(err)
	}
	rep, err := replica.Open(t.Context(), j, replica.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer rep.Close()
	if last := rep.Seq(); int64(len(seqs)) != last {
		t.Errorf("it was told %d of %d records", len(seqs), last)
	}
	if len(began) != 1 || began[0] {
		t.Errorf("it was told of beginnings: %v", began)
	}
}

// TestFailedTasksAreTriedAnew: the next run tries failed tasks again, and nothing else.
func TestFailedTasksAreTriedAnew(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	const file = `
name: demo
members: [{name: ann, agent: shell}]
tasks:
  - {id: good, run: echo good >>ran}
  - {id: bad, run: echo bad >>ran; test -e repaired}
  - {id: after, run: echo after >>ran, blockedBy: [bad]}
`
	r := o.run(file)
	if r.Done() || r.Completed != 1 || r.Failed != 1 || r.Open != 1 || r.Team.Status != team.TeamActive {
		t.Errorf("it ended with %+v", r)
	}
	if r = o.run(file); r.Done() || o.read("ran") != "good\nbad\nbad\n" {
		t.Errorf("again it ended with %+v after %q", r, o.read("ran"))
	}
	if err := os.WriteFile(filepath.Join(o.dir, "repaired"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r = o.run(file); !r.Done() || o.read("ran") != "good\nbad\nbad\nbad\nafter\n" {
		t.Errorf("repaired it ended with %+v after %q", r, o.read("ran"))
	}
}

// TestARunIsCutShort: the end of its context ends a run, with that as the reason, and with a
// report.
func TestARunIsCutShort(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	ctx, cancel := context.WithCancelCause(within(t))
	options := o.options("name: demo\nmembers: [{name: ann, agent: shell}]\ntasks: [{id: a, subject: Hang, run: " +
		"sleep 1000}]\n")
	options.Saw = func(r *team.Record, _ *engine.Team) {
		if _, claimed := r.Events[0].(*team.TaskClaimed); claimed {
			cancel(errors.New("dinner is ready"))
		}
	}
	r, err := run.Run(ctx, options)
	if err != nil || r.Done() || r.Short.Error() != "dinner is ready" || r.Open != 1 {
		t.Errorf("it ended with %+v, %v", r, err)
	}
	if report := o.read("demo-report.md"); !strings.Contains(report, "Hang") ||
		!strings.Contains(report, "dinner is ready") {
		t.Errorf("the report is\n%s", report)
	}
}

// TestWhoseTeam checks which team a file continues, and which teams are in its way.
func TestWhoseTeam(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	const failing = "name: demo\nmembers: [{name: ann, agent: shell}]\ntasks: [{id: a, run: 'false'}]\n"
	for _, c := range []struct {
		name   string
		change func(o office, next *run.Options)
		code   team.Code
		says   string
	}{
		{"the same", func(office, *run.Options) {}, "", ""},
		{"changed", func(o office, next *run.Options) { next.File = o.options(failing + "goal: another\n").File },
			team.NotReady, "was changed"},
		{"another file", func(o office, next *run.Options) { next.Path = "/elsewhere/team.yaml" }, team.Taken,
			"give this one another name, or run it in its own directory, /elsewhere"},
		{"elsewhere in the project", func(o office, next *run.Options) {
			next.Dir = filepath.Join(o.dir, "below")
			if out, err := exec.Command("git", "init", "-q", next.Dir, "--separate-git-dir",
				filepath.Join(o.dir, ".git")).CombinedOutput(); err != nil {
				o.t.Fatalf("%v: %s", err, out)
			}
		}, team.NotReady, "not in "},
		{"in another project", func(o office, next *run.Options) { next.Dir = o.t.TempDir() }, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOffice(t)
			if r := o.run(failing); r.Done() {
				t.Fatalf("it is done: %+v", r)
			}
			next := o.options(failing)
			c.change(o, &next)
			_, err := run.Run(within(t), next)
			if team.CodeOf(err) != c.code || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("the next run: %v", err)
			}
		})
	}
}

// TestANameBeginsAnew: a team that has ended is archived under its id. A team that was cleaned up
// but not removed is removed.
func TestANameBeginsAnew(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	o := newOffice(t)
	first := o.run(three)
	second := o.run(three)
	if !second.Done() || first.Team.ID == second.Team.ID {
		t.Errorf("it ended with %+v", second)
	}
	if dir, err := o.home.Folder(first.Team.ID); err != nil || filepath.Base(filepath.Dir(dir)) != "archive" {
		t.Errorf("the first is at %s: %v", dir, err)
	}
	j, _, err := o.home.Open("demo", nil)
	if err != nil {
		t.Fatal(err)
	}
	rep, err := replica.Open(t.Context(), j, replica.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer rep.Close()
	// killed before the folder was removed
	if _, err := rep.Do(within(t), team.Command{Actor: team.User, Body: &team.CleanUp{}}); err != nil {
		t.Fatal(err)
	}
	if third := o.run(three); !third.Done() {
		t.Errorf("it ended with %+v", third)
	}
	if _, err := o.home.Folder(second.Team.ID); team.CodeOf(err) != team.NotFound {
		t.Errorf("the one that was cleaned up is still there: %v", err)
	}
}

// TestTheNameInAnotherProject: a run never takes over, archives or continues the team of another
// project that has the name, finished or not.
func TestTheNameInAnotherProject(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	const failing = "name: demo\nmembers: [{name: ann, agent: shell}]\ntasks: [{id: a, run: 'false'}]\n"
	for name, text := range map[string]string{"finished": three, "unfinished": failing} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			first := o.run(text)
			other := o
			other.dir = t.TempDir()
			second, again := other.run(text), other.run(text)
			if second.Team.ID == first.Team.ID || second.Done() != first.Done() || second.Team.Dir != other.dir {
				t.Errorf("the second is %+v", second.Team)
			}
			for id, archived := range map[string]bool{first.Team.ID: false, second.Team.ID: first.Done(),
				again.Team.ID: false} {
				dir, err := o.home.Folder(id)
				if err != nil || (filepath.Base(filepath.Dir(dir)) == "archive") != archived {
					t.Errorf("%s is at %s: %v", id, dir, err)
				}
			}
			if dir, err := o.home.In(o.dir).Folder("demo"); err != nil || filepath.Base(dir) != "demo" {
				t.Errorf("the first project's is at %s: %v", dir, err)
			}
		})
	}
}

// TestOneLeads: of two runs at once one leads and the other gets an error.
func TestOneLeads(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	const file = "name: demo\nmembers: [{name: ann, agent: shell}]\ntasks: [{id: a, run: 'until test -e go; do sleep " +
		"0.01; done'}]\n"
	options := o.options(file)
	var second error
	options.Saw = func(r *team.Record, _ *engine.Team) {
		if _, claimed := r.Events[0].(*team.TaskClaimed); claimed {
			_, second = run.Run(within(t), o.options(file))
			if err := os.WriteFile(filepath.Join(o.dir, "go"), nil, 0o600); err != nil {
				t.Error(err)
			}
		}
	}
	if r, err := run.Run(within(t), options); err != nil || !r.Done() {
		t.Errorf("the first ended with %+v, %v", r, err)
	}
	if team.CodeOf(second) != team.NotReady || !strings.Contains(second.Error(), "is being run already") {
		t.Errorf("the second: %v", second)
	}
}

// TestHooks: the hooks of a team file block what they reject, until they accept it.
func TestHooks(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	options := o.options(`
name: demo
members: [{name: ann, agent: shell}]
tasks: [{id: a, run: echo try >>tries, retries: 2}]
hooks:
  TaskCompleted: [{hooks: [{type: command, command: 'test "$(wc -l <tries)" -ge 3 || { echo try again >&2; exit 2; }'}]}]
`)
	if r, err := run.Run(within(t), options); err != nil || !r.Done() || o.read("tries") != "try\ntry\ntry\n" {
		t.Errorf("it ended with %+v, %v, after %q", r, err, o.read("tries"))
	}
}

// TestNoPlaceForTheReport: a path at which no report can be written is refused before the work. A
// report that cannot be written later is an error, and the team does not count as complete.
func TestNoPlaceForTheReport(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	if err := os.WriteFile(filepath.Join(o.dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, why := range map[string]string{"file/report.md": "/file is not a directory",
		"file/new/report.md": "/file is not a directory", ".": "is a directory"} {
		options := o.options(three)
		options.Report = path
		if _, err := run.Run(within(t), options); team.CodeOf(err) != team.Invalid ||
			!strings.Contains(err.Error(), why) {
			t.Errorf("with %s it ended with %v, want: %s", path, err, why)
		}
		if p, err := run.Look(within(t), options); err != nil || p.Does != "create" ||
			!strings.Contains(p.Refused, why) {
			t.Errorf("with %s it would %s, refused: %s, %v", path, p.Does, p.Refused, err)
		}
	}
	options := o.options("{name: late, members: [{name: ann}], tasks: [{id: one, run: touch later}]}")
	options.Report = "later/report.md"
	if _, err := run.Run(within(t), options); err == nil || !strings.Contains(err.Error(),
		"the report was not written") {
		t.Errorf("it ended with %v", err)
	}
	options = o.options(three)
	options.Report = "new/folder/report.md"
	r, err := run.Run(within(t), options)
	if err != nil || !r.Done() || o.read("new/folder/report.md") == "" {
		t.Errorf("with a place it ended with %+v, %v", r, err)
	}
}

// TestAlwaysRunsAgain: a report of a failure does not stand once the failed task is tried again.
func TestAlwaysRunsAgain(t *testing.T) {
	t.Parallel()
	const file = `
name: demo
members: [{name: ann, agent: shell}]
tasks:
  - {id: test, run: test -f ok}
  - {id: sum, run: 'if test -f ok; then echo good; else echo bad; fi', when: always, blockedBy: [test]}
  - {id: mail, run: 'cat "$CADRE_RESULTS"/*', blockedBy: [sum]}
`
	o := newOffice(t)
	if r := o.run(file); r.Done() || r.Completed != 2 || !strings.Contains(r.Text, "bad") {
		t.Fatalf("the first run ended with %+v", r)
	}
	if err := os.WriteFile(filepath.Join(o.dir, "ok"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := o.run(file); !r.Done() || r.Completed != 3 || !strings.Contains(r.Text, "good") ||
		strings.Contains(r.Text, "bad") {
		t.Errorf("the second run ended with %+v", r)
	}
}

// TestAQuestionWaitsForAPerson: a run whose user leads takes its other mail and leaves a question
// unread.
func TestAQuestionWaitsForAPerson(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	options := o.options(`
name: demo
members: [{name: ann, agent: shell}]
tasks: [{id: a, run: 'until test -e go; do sleep 0.05; done'}]
`)
	var asked []team.Item
	send := func(t *engine.Team, intent, body string) {
		if _, err := t.Do(within(o.t), team.Command{Actor: "ann", Body: &team.SendMessage{To: t.Team().Lead,
			Intent: intent, Body: body}}); err != nil {
			o.t.Error(err)
		}
	}
	options.Saw = func(r *team.Record, tm *engine.Team) {
		for _, e := range r.Events {
			switch e := e.(type) {
			case *team.TaskClaimed:
				send(tm, "question", "Left or right?")
				send(tm, "", "I begin.")
			case *team.MessagesDelivered:
				if e.Member != tm.Team().Lead || len(asked) > 0 {
					continue
				}
				tm.View(func(s *team.State) { asked = s.Attention(tm.Now(), nil) })
				if err := os.WriteFile(filepath.Join(o.dir, "go"), nil, 0o600); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if r, err := run.Run(within(t), options); err != nil || !r.Done() {
		t.Errorf("it ended with %+v, %v", r, err)
	}
	if len(asked) != 1 || asked[0].Kind != team.ItemQuestion || asked[0].Member != "ann" {
		t.Errorf("after the lead's mail was taken, these wait: %+v", asked)
	}
}

// TestAnotherProcessEndsTheTeam ends a new team at several moments: before the run takes its lead,
// and after. The run always says that another process ended it, and does not begin a second team.
func TestAnotherProcessEndsTheTeam(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	abort := func(o office) error {
		e := &engine.Engine{Home: o.home, Log: func(text string) { t.Log(text) }}
		return e.Act(within(t), "demo", team.User, &team.SetStatus{Status: team.TeamAborted},
			func(*engine.Team, *team.Record) error { return nil })
	}
	check := func(o office, r run.Result, err error) {
		t.Helper()
		if err != nil || team.CodeOf(r.Short) != team.Finished || r.Team.Status != team.TeamAborted {
			t.Errorf("the run ended with %+v, %v", r, err)
		}
		if archived, err := o.home.Archive(); err != nil || len(archived) > 0 {
			t.Errorf("archived: %q, %v", archived, err)
		}
	}
	const slow = "name: demo\nmembers: [{name: ann, agent: shell}]\ntasks: [{id: one, run: sleep 20}]\n"
	for range 4 {
		o := newOffice(t)
		done := make(chan error, 1)
		go func() {
			for t.Context().Err() == nil {
				if _, err := o.home.Folder("demo"); err == nil {
					break
				}
			}
			done <- abort(o)
		}()
		r, err := run.Run(within(t), o.options(slow))
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		check(o, r, err)
	}
	o := newOffice(t)
	options := o.options(slow)
	options.Began = func(team.Team, bool) {
		if err := abort(o); err != nil {
			t.Error(err)
		}
	}
	r, err := run.Run(within(t), options)
	check(o, r, err)
}

// TestReportSaysHowItWasChecked: the report has how a task was checked, and why another one was
// skipped.
func TestReportSaysHowItWasChecked(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	r, err := run.Run(within(t), o.options(`
name: demo
members: [{name: ann, agent: shell}]
tasks:
  - {id: one, run: echo one, check: test -d .}
  - {id: mourn, run: echo sad, blockedBy: [one], when: failed}
`))
	if err != nil {
		t.Fatal(err)
	}
	if report := o.read("demo-report.md"); !r.Done() || !strings.Contains(report, "its check \"test -d .\" passed") ||
		!strings.Contains(report, "1 skipped") ||
		!strings.Contains(report, "## Skipped\n\n- **mourn** (`mourn`): none of the tasks that it waits for has failed\n") {
		t.Errorf("the report is\n%s", report)
	}
}
