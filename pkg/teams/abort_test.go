package teams_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cadre/internal/team"
	"cadre/internal/testkit/soak"
	"cadre/pkg/teams"
)

// TestAbortWaits checks that no process of the team runs when an abort returns, whichever process
// hosted it. A second abort is allowed.
func TestAbortWaits(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	o, _ := repository(t)
	o.StopGrace = 200 * time.Millisecond
	m := manage(t, o)
	of, err := m.CreateTeam(limited(t), teams.TeamConfig{Name: "port",
		Members: []teams.MemberConfig{{Name: "ann", Agent: teams.Shell}},
		Tasks: []teams.TaskConfig{{Subject: "hang",
			Run: "trap '' TERM INT HUP; echo $$ >pid; while :; do sleep 1; done"}}})
	ok(t, err)
	other := manage(t, o)
	beside, err := other.OpenTeam(limited(t), "port")
	ok(t, err)
	first(t, of, any1[teams.TaskClaimed])
	pid, patience := 0, limited(t)
	for pid == 0 {
		text, _ := os.ReadFile(filepath.Join(o.Dir, "pid"))
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		select {
		case <-patience.Done():
			t.Fatal("the task does not run")
		case <-time.After(5 * time.Millisecond):
		}
	}
	ok(t, beside.Abort(limited(t), "enough"))
	if err := syscall.Kill(pid, 0); err == nil {
		t.Error("a process of the team still runs")
	}
	ok(t, of.Abort(limited(t), "enough"))
	info, err := of.Info(limited(t))
	ok(t, err)
	equal(t, "status", info.Status, teams.TeamStatusAborted)
}

// TestAbortTakesOut checks that an abort removes a killed consolidation from the work tree, even
// while the team is hosted. A complete team has nothing to abort.
func TestAbortTakesOut(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts hosts or runs git many times; not with -short")
	}
	t.Parallel()
	o, git := repository(t)
	m := manage(t, o)
	of := create(t, m, "port", "eve")
	hers := filepath.Join(o.Dir, "hers.txt")
	ok(t, os.WriteFile(hers, []byte("hers\n"), 0o600))
	git("add", "hers.txt")
	tree, head := git("write-tree"), git("rev-parse", "HEAD")
	git("rm", "-q", "--cached", "hers.txt")
	always := func(body team.Body) func(team.Team) team.Body { return func(team.Team) team.Body { return body } }
	beside(t, o, "port", always(&team.Consolidate{}), always(&team.ReportMerged{Attempt: 1}),
		always(&team.ReportStaged{Attempt: 1, Parent: head, Tree: tree, Before: git("rev-parse", "HEAD^{tree}"),
			Files:    1,
			Branches: []team.Branch{{Member: "eve", Name: "cadre/port/eve", Commit: head}}}))
	ok(t, of.Abort(limited(t), "enough"))
	if _, err := os.Stat(hers); !os.IsNotExist(err) {
		t.Errorf("the files of the consolidation are still there: %v", err)
	}
	equal(t, "status of the work tree", git("status", "--porcelain"), "")
	ok(t, m.Cleanup(limited(t)))

	done := create(t, m, "done", "eve")
	ok(t, done.Complete(limited(t), ""))
	want(t, done.Abort(limited(t), "enough"), teams.ErrFinished)
}
