package consolidate

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"cadre/internal/replica"
	"cadre/internal/team"
)

// finish has the team finish: its only member ends, and nothing new starts. It returns when the
// clock of files is past that.
func (l *lab) finish() {
	l.Helper()
	l.do(team.User, &team.ReportStopped{Member: "ann"})
	l.do(team.User, &team.SetStatus{Status: team.TeamConsolidating})
	for at := l.replica.Team().EndingAt; replica.Now() <= at+10; {
		time.Sleep(time.Millisecond) // files have the clock of the kernel, which is coarse
	}
}

// commitsOnlyNew checks that new.txt alone is the team's pending work, and that the consolidation
// commits it alone. It returns what the consolidation noted.
func (l *lab) commitsOnlyNew() (notes []team.Advice) {
	l.Helper()
	p, err := LookPending(l.ctx, l.options())
	if err != nil {
		l.Fatal(err)
	}
	l.want(p.Files, "new.txt")
	o := l.options()
	o.Advise = func(n team.Advice) { notes = append(notes, n) }
	if _, err := Run(l.ctx, o); err != nil {
		l.Fatal(err)
	}
	l.want(l.committed(), "A:new.txt")
	return notes
}

// TestStrangers checks that a file that appeared or changed after the team finished is named and
// not committed, unless it is included or a task of the team had changed it.
func TestStrangers(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.found(team.Check{Name: "sees", Command: "test -f later.txt"})
	l.write("new.txt", "the team's\n")
	l.finish()
	l.write("later.txt", "a person's\n")
	l.write("b.txt", "a person's change\n")
	notes := l.commitsOnlyNew()
	if len(notes) == 0 || notes[0].Text != "not committed, because it changed after the team finished: b.txt, "+
		"later.txt" || notes[0].Hints[0].Action != team.ActIncludeFiles || len(notes[0].Hints[0].Paths) != 0 {
		t.Errorf("noted: %+v", notes)
	}
}

// TestForeignReportOfBefore checks that the report of another team does not count as work that is
// not committed, if it was there before this team and its own team has run again.
func TestForeignReportOfBefore(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.write("other-report.md", "another team's\n")
	l.found()
	l.write("new.txt", "the team's\n")
	l.write("other-report.md", "another team's, written again\n")
	o := l.options()
	o.Foreign = func() []string { return []string{filepath.Join(l.project, "other-report.md")} }
	if _, err := Run(l.ctx, o); err != nil {
		t.Fatal(err)
	}
	l.want(l.committed(), "A:new.txt")
}

// TestTeamFileIsTheUsers checks that a team file that was not committed when the team was created,
// and was changed since, is not the team's work, unless it is included.
func TestTeamFileIsTheUsers(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.origin = filepath.Join(l.project, "demo.yaml")
	l.write("demo.yaml", "name: demo\n")
	l.found(team.Check{Name: "sees", Command: "test -f new.txt"})
	l.write("new.txt", "the team's\n")
	l.write("demo.yaml", "name: demo # mended\n")
	l.finish()
	notes := l.commitsOnlyNew()
	if len(notes) == 0 || notes[0].Text != "not committed, because it is the team file: demo.yaml" ||
		!slices.Equal(notes[0].Hints[0].Paths, []string{"demo.yaml"}) {
		t.Errorf("noted: %+v", notes)
	}
}

// TestStrangersIncluded checks that a named file is committed whenever it changed.
func TestStrangersIncluded(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.found()
	l.write("new.txt", "the team's\n")
	l.finish()
	l.write("later.txt", "a person's\n")
	o := l.options()
	o.Include = []string{"later.txt"}
	if _, err := Run(l.ctx, o); err != nil {
		t.Fatal(err)
	}
	l.want(l.committed(), "A:later.txt", "A:new.txt")
}

// TestForeignFiles checks that the report and the team file of another team are named and not
// committed, even if they appeared while this team worked.
func TestForeignFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.found()
	l.write("new.txt", "the team's\n")
	l.write("other-report.md", "another team's\n")
	o := l.options()
	o.Foreign = func() []string { return []string{filepath.Join(l.project, "other-report.md"), "/elsewhere/team.yaml"} }
	var notes []team.Advice
	o.Advise = func(n team.Advice) { notes = append(notes, n) }
	if _, err := Run(l.ctx, o); err != nil {
		t.Fatal(err)
	}
	l.want(l.committed(), "A:new.txt")
	if len(notes) == 0 || notes[0].Text != "not committed, because it belongs to another team: other-report.md" {
		t.Errorf("noted: %+v", notes)
	}
}
