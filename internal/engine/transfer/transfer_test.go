package transfer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cadre/internal/consolidate"
	"cadre/internal/git/checkpoint"
	"cadre/internal/inspect"
	"cadre/internal/inspect/catalog"
	"cadre/internal/replica"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// TestThereAndBack moves a team to another machine and back. It arrives with all of its work each
// time, and without a warning if it was released.
func TestThereAndBack(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	l := newLab(t)
	from, to := l.laptop, l.desktop
	for round := range 4 {
		for _, member := range []string{"ann", "bob", "ann"} {
			l.must(l.work(from, member))
		}
		_, err := from.push(t.Context(), PushOptions{Yes: true, Release: true})
		l.must(err)
		if err := l.work(from, "ann"); team.CodeOf(err) != team.Denied {
			t.Errorf("after its release: %v", err)
		}
		pulled, err := to.pull(t.Context(), PullOptions{})
		l.must(err)
		if to.warned() || pulled.Arrived == nil || len(pulled.Arrived.Missing) > 0 {
			t.Errorf("round %d: %v, %+v", round, to.said, pulled.Arrived)
		}
		if completed, missing := l.whole(to); completed != 3*(round+1) || missing != 0 {
			t.Errorf("round %d: %d are completed, %d missing", round, completed, missing)
		}
		from, to = to, from
	}
}

// TestFinishedElsewhere checks that a team that another machine finished is complete here: nothing
// of its consolidation is left to do, and nothing warns that it may continue there.
func TestFinishedElsewhere(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	l.must(l.work(l.laptop, "ann"))
	var sent int64
	l.on(l.laptop, func(rep *replica.Replica, folder string) {
		for _, body := range []team.Body{
			&team.SendMessage{To: "bob", Body: "thanks"},
			&team.ReportStopped{Member: "ann"}, &team.ReportStopped{Member: "bob"}} {
			_, err := rep.Do(t.Context(), team.Command{Actor: team.User, Body: body})
			l.must(err)
		}
		_, err := consolidate.Run(t.Context(), consolidate.Options{Replica: rep, Dir: folder, Actor: team.User,
			NoCommit: true, Log: func(string) {}})
		l.must(err)
		rep.View(func(s *team.State) { sent = s.MessageCount() })
	})
	_, err := l.laptop.push(t.Context(), PushOptions{Yes: true})
	l.must(err)
	_, err = l.desktop.pull(t.Context(), PullOptions{})
	l.must(err)
	if l.desktop.warned() {
		t.Errorf("a finished team may continue elsewhere: %q", l.desktop.said)
	}
	l.on(l.desktop, func(rep *replica.Replica, folder string) {
		outside, err := (&inspect.Looker{Replica: rep, Dir: folder}).Look(t.Context(), time.Now())
		l.must(err)
		rep.View(func(s *team.State) {
			found := catalog.Summarize(l.desktop.home, s, outside)
			if found.State() != "complete" || found.Messages != sent || sent == 0 {
				t.Errorf("the team is %s, with %d messages; want complete, with %d", found.State(),
					found.Messages, sent)
			}
		})
	})
}

// TestForkWithoutOwnCheckpoint checks that a history of which no checkpoint is left is not chosen,
// and that the hint leads to a branch on which the other one stays.
func TestForkWithoutOwnCheckpoint(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	l := newLab(t)
	l.must(l.work(l.laptop, "ann"))
	_, err := l.laptop.push(t.Context(), PushOptions{Yes: true})
	l.must(err)
	_, err = l.desktop.pull(t.Context(), PullOptions{})
	l.must(err)
	l.must(l.work(l.desktop, "bob"))
	_, err = l.desktop.push(t.Context(), PushOptions{Yes: true})
	l.must(err)
	l.must(l.work(l.laptop, "bob"))
	dir := l.laptop.dir
	l.git(dir, "fetch", "-q", "origin")
	theirs := l.git(dir, "commit-tree", "-m", "theirs", "origin/cadre/demo^{tree}") // it has no parents
	l.git(dir, "update-ref", "refs/heads/cadre/demo", theirs)
	l.git(dir, "update-ref", "-d", "refs/remotes/origin/cadre/demo")
	l.on(l.laptop, func(rep *replica.Replica, folder string) {
		err := Here(t.Context(), rep, folder, true)
		want := team.Hint{Action: team.ActRenameBranch, Team: "demo", Name: "cadre/demo", Dir: dir}
		if got := team.HintsOf(err); !isFork(err) || len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("got %v with the hints %+v, want %+v", err, got, want)
		}
	})
}

// TestForks continues a team on two machines. Every command reports the two histories, and after
// the user's choice no work of either is lost.
func TestForks(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	for _, chosen := range []string{"theirs", "ours", "resume"} {
		t.Run(chosen, func(t *testing.T) {
			l := newLab(t)
			l.must(l.work(l.laptop, "ann"))
			_, err := l.laptop.push(t.Context(), PushOptions{Yes: true})
			l.must(err)
			_, err = l.desktop.pull(t.Context(), PullOptions{})
			l.must(err)
			if !l.desktop.warned() {
				t.Errorf("it was not released, and the messages are: %v", l.desktop.said)
			}
			l.must(l.work(l.desktop, "bob"))
			_, err = l.desktop.push(t.Context(), PushOptions{Yes: true})
			l.must(err)
			l.must(l.work(l.laptop, "bob")) // bob's machine does not know of the other history
			l.must(l.work(l.laptop, "ann"))

			_, err = l.laptop.push(t.Context(), PushOptions{Yes: true})
			fork, ok := errors.AsType[*checkpoint.ForkError](err)
			if !ok || len(fork.Sides) != 2 || fork.Sides[0].Ref != "" || fork.Sides[1].Ref != "origin/cadre/demo" ||
				fork.Sides[0].Records < 8 || fork.Sides[1].Records < 5 || fork.Since < 8 {
				t.Fatalf("%v: %+v", err, fork)
			}
			if err := l.work(l.laptop, "ann"); !isFork(err) {
				t.Errorf("it continues: %v", err)
			}
			if _, err = l.laptop.pull(t.Context(), PullOptions{}); !isFork(err) {
				t.Errorf("pull: %v", err)
			}
			left := l.git(l.laptop.dir, "rev-parse", "cadre/demo")
			theirs := l.git(l.laptop.dir, "rev-parse", "origin/cadre/demo")
			switch chosen {
			case "theirs":
				pulled, err := l.laptop.pull(t.Context(), PullOptions{Theirs: true})
				l.must(err)
				if pulled.Aside == "" {
					t.Error("the former copy is lost")
				}
			case "ours":
				_, err := l.laptop.push(t.Context(), PushOptions{Ours: true})
				l.must(err)
			case "resume":
				l.on(l.laptop, func(rep *replica.Replica, folder string) {
					l.must(Here(t.Context(), rep, folder, true))
				})
				l.must(l.work(l.laptop, "ann"))
			}
			l.must(l.work(l.laptop, "ann"))
			_, err = l.laptop.push(t.Context(), PushOptions{Yes: true})
			l.must(err)
			l.whole(l.laptop)
			for _, commit := range []string{left, theirs} {
				if out, err := l.try(l.laptop.dir, "", "merge-base", "--is-ancestor", commit,
					"origin/cadre/demo"); err != nil {
					t.Errorf("commit %s is lost: %s", commit, out)
				}
			}
			// The other machine notices, too.
			if chosen == "theirs" {
				l.must(l.work(l.desktop, "ann")) // ann's machine does not know of it yet
			}
			if _, err := l.desktop.push(t.Context(), PushOptions{}); !isFork(err) {
				t.Errorf("the other one pushes: %v", err)
			}
			if err := l.work(l.desktop, "ann"); !isFork(err) {
				t.Errorf("the other one continues: %v", err)
			}
			_, err = l.desktop.pull(t.Context(), PullOptions{Theirs: true})
			l.must(err)
			l.must(l.work(l.desktop, "bob"))
			l.whole(l.desktop)
		})
	}
}

// TestInTheWay checks that files of the user are kept, that the task whose work they block is
// named, and that the team cannot be completed until this work is there.
func TestInTheWay(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	l.must(l.work(l.laptop, "ann"))
	l.must(l.work(l.laptop, "ann"))
	_, err := l.laptop.push(t.Context(), PushOptions{Yes: true, Release: true})
	l.must(err)
	l.write(filepath.Join(l.desktop.dir, "ann-2.txt"), "of the person\n")
	pulled, err := l.desktop.pull(t.Context(), PullOptions{})
	l.must(err)
	if m := pulled.Arrived.Missing; len(m) != 1 || m[0].Task != "2" || m[0].Path != "ann-2.txt" ||
		!strings.Contains(m[0].What, "has the team's version") {
		t.Errorf("%+v", m)
	} else if hints := m[0].Advice(team.Team{}, "2").Hints; len(hints) != 1 || hints[0].Action != team.ActShowFile ||
		hints[0].From != m[0].Commit || !slices.Equal(hints[0].Paths, []string{"ann-2.txt"}) {
		t.Errorf("the hints are %+v, want one that shows the file", hints)
	}
	if text, _ := os.ReadFile(filepath.Join(l.desktop.dir, "ann-2.txt")); string(text) != "of the person\n" {
		t.Errorf("the person's file is %q", text)
	}
	l.whole(l.desktop)
	l.on(l.desktop, func(rep *replica.Replica, _ string) {
		for _, name := range []string{"ann", "bob"} {
			_, err := rep.Do(t.Context(), team.Command{Actor: team.User, Body: &team.ReportStopped{Member: name}})
			l.must(err)
		}
		_, err := rep.Do(t.Context(), team.Command{Actor: team.User, Body: &team.Consolidate{NoCommit: true}})
		if hints := team.HintsOf(err); team.CodeOf(err) != team.NotReady || len(hints) != 2 ||
			hints[1].Action != team.ActGoWithout || !slices.Equal(hints[1].Tasks, []string{"2"}) {
			t.Errorf("the team was completed without the work: %v, %+v", err, hints)
		}
		var missing []team.Missing
		rep.View(func(s *team.State) { missing = s.Missing() })
		procs := l.procs()
		if found, err := Recheck(t.Context(), procs, rep.Team(), missing); err != nil || len(found) > 0 {
			t.Errorf("%v, %v", found, err)
		}
		l.write(filepath.Join(l.desktop.dir, "ann-2.txt"),
			l.git(l.desktop.dir, "show", missing[0].Commit+":ann-2.txt")+"\n")
		found, err := Recheck(t.Context(), procs, rep.Team(), missing)
		if err != nil || fmt.Sprint(found) != "[2]" {
			t.Errorf("%v, %v", found, err)
		}
		_, err = rep.Do(t.Context(), team.Command{Actor: team.User, Body: &team.ReportFound{Tasks: found}})
		l.must(err)
		_, err = rep.Do(t.Context(), team.Command{Actor: team.User, Body: &team.Consolidate{NoCommit: true}})
		l.must(err)
	})
}

// TestBranchInTheWay checks that a member's branch with other commits stays as it is, and that its
// tasks are named.
func TestBranchInTheWay(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	l.must(l.work(l.laptop, "bob"))
	_, err := l.laptop.push(t.Context(), PushOptions{Yes: true, Release: true})
	l.must(err)
	own := l.git(l.desktop.dir, "commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "of the person")
	l.git(l.desktop.dir, "update-ref", "refs/heads/cadre/demo@bob", own)
	pulled, err := l.desktop.pull(t.Context(), PullOptions{})
	l.must(err)
	if m := pulled.Arrived.Missing; len(m) != 1 || m[0].Task != "1" || m[0].Branch != "cadre/demo@bob" ||
		m[0].Commit == "" {
		t.Errorf("%+v", m)
	}
	if now := l.git(l.desktop.dir, "rev-parse", "cadre/demo@bob"); now != own {
		t.Errorf("the branch was moved to %s", now)
	}
	l.whole(l.desktop)
}

// TestAnotherCommitCheckedOut checks a clone that is behind the team's commit: this is named, and
// nothing is overwritten.
func TestAnotherCommitCheckedOut(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	l.write(filepath.Join(l.laptop.dir, "committed.txt"), "by ann\n")
	l.must(l.work(l.laptop, "ann"))
	l.on(l.laptop, func(rep *replica.Replica, _ string) {
		_, err := rep.Do(t.Context(), team.Command{Actor: team.User, Body: &team.CreateTask{Subject: "commits"}})
		l.must(err)
		_, err = rep.Do(t.Context(), team.Command{Actor: team.User, Body: &team.ClaimTask{Task: "2", Member: "ann"}})
		l.must(err)
		base := l.git(l.laptop.dir, "rev-parse", "HEAD")
		var task team.Task
		rep.View(func(s *team.State) { task, _ = s.Task("2") })
		w := team.Work{Member: "ann", Base: base, Fence: task.Fence}
		_, err = rep.Do(t.Context(), team.Command{Actor: team.User, Body: &team.RecordWork{Task: "2", Work: w}})
		l.must(err)
		l.git(l.laptop.dir, "add", "committed.txt")
		l.git(l.laptop.dir, "commit", "-q", "-m", "by ann")
		_, err = rep.Do(t.Context(), team.Command{Actor: team.User, Body: &team.CompleteTask{Task: "2", Member: "ann",
			Result: "file|committed.txt|by ann\n"}})
		l.must(err)
		w.Commit, w.Files = l.git(l.laptop.dir, "rev-parse", "HEAD"), []string{"committed.txt"}
		_, err = rep.Do(t.Context(), team.Command{Actor: team.User, Body: &team.RecordWork{Task: "2", Work: w}})
		l.must(err)
	})
	_, err := l.laptop.push(t.Context(), PushOptions{Yes: true, Release: true})
	l.must(err)
	pulled, err := l.desktop.pull(t.Context(), PullOptions{})
	l.must(err)
	var tasks []string
	for _, m := range pulled.Arrived.Missing {
		tasks = append(tasks, m.Task)
		if !strings.Contains(m.What, "is not checked out; merge it") {
			t.Errorf("it does not say what to do: %s", m.What)
		}
	}
	if fmt.Sprint(tasks) != "[2]" {
		t.Fatalf("%+v", pulled.Arrived.Missing)
	}
	if text, err := os.ReadFile(filepath.Join(l.desktop.dir, "ann-1.txt")); err != nil ||
		!strings.HasPrefix(string(text), "task 1") {
		t.Errorf("what was not committed is %q, %v", text, err)
	}
	l.git(l.desktop.dir, "merge", "-q", "--ff-only", l.git(l.laptop.dir, "rev-parse", "HEAD"))
	l.on(l.desktop, func(rep *replica.Replica, _ string) {
		found, err := Recheck(t.Context(), l.procs(), rep.Team(), pulled.Arrived.Missing)
		if err != nil || fmt.Sprint(found) != "[2]" {
			t.Errorf("after the merge: %v, %v", found, err)
		}
	})
}

// TestRunning checks that a pull does not replace a running team.
func TestRunning(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	l.must(l.work(l.laptop, "ann"))
	_, err := l.laptop.push(t.Context(), PushOptions{Yes: true})
	l.must(err)
	folder, err := l.laptop.home.Folder("demo")
	l.must(err)
	unlock := l.lead(folder)
	if _, err := l.laptop.pull(t.Context(), PullOptions{}); team.CodeOf(err) != team.NotReady {
		t.Errorf("pull of a team that is led: %v", err)
	}
	if _, err := l.laptop.push(t.Context(), PushOptions{Release: true}); team.CodeOf(err) != team.NotReady {
		t.Errorf("release of a team that is led: %v", err)
	}
	unlock()
	if _, err := l.laptop.pull(t.Context(), PullOptions{}); err != nil {
		t.Error(err)
	}
}

// TestFirstPush checks that the user agrees to a first push, once for each remote, and that commits
// with secrets are refused.
func TestFirstPush(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	l.must(l.work(l.laptop, "bob"))
	_, err := l.laptop.push(t.Context(), PushOptions{})
	first, ok := errors.AsType[*UnconfirmedError](err)
	if !ok || first.Records < 5 || first.Tasks != 1 || len(first.Branches) != 1 || first.Files != 1 ||
		first.Commits != 1 {
		t.Fatalf("%v: %+v", err, first)
	}
	if out := l.git(l.laptop.dir, "ls-remote", "origin"); strings.Contains(out, "cadre") {
		t.Errorf("it was pushed all the same: %s", out)
	}
	_, err = l.laptop.push(t.Context(), PushOptions{Yes: true})
	l.must(err)
	l.must(l.work(l.laptop, "ann"))
	_, err = l.laptop.push(t.Context(), PushOptions{})
	l.must(err)
	other := filepath.Join(l.root, "other.git")
	l.git(l.root, "init", "-q", "--bare", other)
	l.git(l.laptop.dir, "remote", "add", "other", other)
	if _, err = l.laptop.push(t.Context(), PushOptions{Remote: "other"}); err == nil {
		t.Error("the user was not asked about another remote")
	}
	l.git(l.laptop.dir, "remote", "add", "third", "https://someone:pass-word@localhost:1/x.git")
	if _, err = l.laptop.push(t.Context(), PushOptions{Remote: "third"}); err == nil ||
		strings.Contains(err.Error(), "pass-word") {
		t.Errorf("an error with a password: %v", err)
	}
	if out := l.git(l.laptop.dir, "for-each-ref", "refs/remotes/origin", "--format=%(refname)"); !strings.Contains(out,
		"refs/remotes/origin/cadre/demo") || strings.Contains(out, "@bob") {
		t.Errorf("the remote has\n%s", out)
	}
}

// TestKilled kills a command at any step and at any git command. The same command called again ends
// as if it had not been interrupted. Until then no work is lost, and the user's files and index are
// unchanged.
func TestKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("many processes; not with -short")
	}
	prepare := map[string]func(l *lab) *machine{
		"release": func(l *lab) *machine { return l.laptop },
		"pull": func(l *lab) *machine {
			_, err := l.laptop.push(t.Context(), PushOptions{Yes: true, Release: true})
			l.must(err)
			return l.desktop
		},
		"theirs": func(l *lab) *machine {
			l.fork()
			return l.laptop
		},
		"ours": func(l *lab) *machine {
			l.fork()
			return l.laptop
		},
	}
	for what, make := range prepare {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			most := 0
			end := func(l *lab, m *machine, label string) {
				l.Helper()
				l.whole(m)
				var err error
				switch what {
				case "release":
					_, err = m.push(t.Context(), PushOptions{Yes: true, Release: true})
				case "pull":
					_, err = m.pull(t.Context(), PullOptions{})
				case "theirs":
					_, err = m.pull(t.Context(), PullOptions{Theirs: true})
				case "ours":
					_, err = m.push(t.Context(), PushOptions{Yes: true, Ours: true})
				}
				if err != nil {
					t.Fatalf("%s: %v", label, err)
				}
				if completed, missing := l.whole(m); completed < 2 || missing > 0 {
					t.Fatalf("%s: %d are completed, %d missing", label, completed, missing)
				}
				if out, err := l.try(m.dir, "", "fsck", "--no-dangling"); err != nil {
					t.Errorf("%s: %s", label, out)
				}
				if locks, _ := filepath.Glob(filepath.Join(m.dir, ".git", "*.lock")); len(locks) > 0 {
					t.Errorf("%s: %v is left", label, locks)
				}
				if what == "release" {
					if _, err := l.desktop.pull(t.Context(), PullOptions{}); err != nil || l.desktop.warned() {
						t.Fatalf("%s: %v, %v", label, err, l.desktop.said)
					}
					l.whole(l.desktop)
					return
				}
				if err := l.work(m, "ann"); err != nil {
					t.Fatalf("%s: it does not continue: %v", label, err)
				}
			}
			l := newLab(t)
			l.must(l.work(l.laptop, "ann"))
			l.must(l.work(l.laptop, "bob"))
			m := make(l)
			restore := l.save()
			every := map[string]int{"step": soak.Of(7, 1), "before": soak.Of(67, 1), "after": soak.Of(67, 1)}
			for i, how := range []string{"step", "before", "after"} {
				for n := 1 + i; ; n += every[how] {
					restore()
					step, command := strconv.Itoa(n), ""
					if how != "step" {
						step, command = "", strconv.Itoa(n)
					}
					dead := l.killed(m, what, step, command, how)
					end(l, m, fmt.Sprint(how, " ", n))
					if !dead {
						most = n
						break
					}
				}
				t.Logf("%s: killed at up to %d places", how, most)
				if most < 3 {
					t.Errorf("there were only %d places to be killed at", most)
				}
			}
		})
	}
}

// fork lets both machines continue without knowledge of each other. Then the laptop learns of the
// desktop's checkpoint.
func (l *lab) fork() {
	_, err := l.laptop.push(l.Context(), PushOptions{Yes: true})
	l.must(err)
	_, err = l.desktop.pull(l.Context(), PullOptions{})
	l.must(err)
	l.must(l.work(l.desktop, "ann"))
	l.must(l.work(l.desktop, "bob"))
	_, err = l.desktop.push(l.Context(), PushOptions{Yes: true})
	l.must(err)
	l.must(l.work(l.laptop, "ann"))
	l.must(l.work(l.laptop, "bob"))
}

// TestTwoMachines plays random histories of two machines with a bare repository between them: work,
// pushes, fetches, pulls, kills, in any order. At all times the work of every completed task on a
// machine is there or named as missing, a team that was not released is adopted only with a
// warning, and the machine that comes second gets an error about two histories.
func TestTwoMachines(t *testing.T) {
	histories, moves := soak.Of(3, 60), 14
	if testing.Short() {
		histories, moves = 1, 6
	}
	for seed := range histories {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(uint64(seed), 7))
			l := newLab(t)
			var told []string
			defer func() {
				if t.Failed() {
					t.Log(strings.Join(told, "\n"))
				}
			}()
			l.must(l.work(l.laptop, "ann"))
			for range moves {
				m := []*machine{l.laptop, l.desktop}[random.IntN(2)]
				what := []string{"work", "work", "work", "push", "release", "pull", "pull", "fetch", "kill", "theirs",
					"ours", "back"}[random.IntN(12)]
				released := l.released(m)
				var err error
				switch what {
				case "work":
					err = l.work(m, []string{"ann", "bob"}[random.IntN(2)])
					if err == nil && released {
						t.Errorf("on %s it continues after its release", m.name)
					}
				case "push":
					_, err = m.push(t.Context(), PushOptions{Yes: true})
				case "release":
					_, err = m.push(t.Context(), PushOptions{Yes: true, Release: true})
				case "pull", "theirs":
					var pulled *Pulled
					before := l.remoteReleased()
					pulled, err = m.pull(t.Context(), PullOptions{Theirs: what == "theirs"})
					if err == nil && pulled.Arrived != nil && !pulled.There.Released && !m.warned() {
						t.Errorf("on %s it was adopted without a warning: %v", m.name, m.said)
					}
					if err == nil && pulled.Arrived != nil && before && m.warned() {
						t.Errorf("on %s there was a warning about a released team", m.name)
					}
				case "fetch":
					l.git(m.dir, "fetch", "-q", "origin")
				case "ours":
					l.on(m, func(rep *replica.Replica, folder string) { err = Here(t.Context(), rep, folder, true) })
				case "back":
					l.on(m, func(rep *replica.Replica, folder string) {
						if err = Here(t.Context(), rep, folder, false); err == nil {
							_, err = rep.Do(t.Context(), team.Command{Actor: team.User, Body: &team.TakeBackTeam{}})
						}
					})
				case "kill":
					what = []string{"push", "pull", "release", "theirs"}[random.IntN(4)]
					l.killed(m, what, "", strconv.Itoa(1+random.IntN(40)), []string{"before", "after"}[random.IntN(2)])
					what = "killed " + what
				}
				told = append(told, fmt.Sprint(m.name, " ", what, ": ", err))
				if err != nil && !isFork(err) && team.CodeOf(err) == "" && !errors.Is(err, checkpoint.ErrNone) {
					t.Fatalf("%s", told[len(told)-1])
				}
				l.whole(l.laptop)
				l.whole(l.desktop)
				l.noticed(told)
			}
			// At the end the user lets both machines meet.
			for _, m := range []*machine{l.laptop, l.desktop} {
				l.on(m, func(rep *replica.Replica, folder string) {
					if err := Here(t.Context(), rep, folder, true); err != nil {
						t.Errorf("on %s: %v", m.name, err)
					}
					rep.Do(t.Context(), team.Command{Actor: team.User, Body: &team.TakeBackTeam{}})
				})
			}
			_, err := l.laptop.push(t.Context(), PushOptions{Yes: true, Ours: true, Release: true})
			if team.CodeOf(err) == team.NotFound {
				return
			}
			l.must(err)
			_, err = l.desktop.pull(t.Context(), PullOptions{Theirs: true})
			l.must(err)
			there, _ := l.whole(l.laptop)
			if here, missing := l.whole(l.desktop); here != there {
				t.Errorf("one calls %d tasks completed, the other %d, of which %d are missing", there, here, missing)
			}
			l.must(l.work(l.desktop, "bob"))
		})
	}
}

// released reports whether the machine has released its copy.
func (l *lab) released(m *machine) (released bool) {
	l.on(m, func(rep *replica.Replica, _ string) { released = rep.Team().Released != team.Released{} })
	return released
}

// remoteReleased reports whether the team is released in the remote's checkpoint.
func (l *lab) remoteReleased() bool {
	out, err := l.try(filepath.Join(l.root, "remote.git"), "", "show", "cadre/demo:.claude/teams/demo/state.json")
	return err == nil && strings.Contains(out, `"released": true`)
}

// noticed checks that a machine that knows of another history of its team does not continue.
func (l *lab) noticed(told []string) {
	l.Helper()
	for _, m := range []*machine{l.laptop, l.desktop} {
		l.on(m, func(rep *replica.Replica, folder string) {
			procs := l.procs()
			store, err := checkpoint.Open(l.Context(), procs, m.dir, "demo", folder)
			l.must(err)
			found, err := store.Found(l.Context())
			if err != nil {
				return
			}
			for _, f := range found {
				var relation checkpoint.Relation
				rep.View(func(s *team.State) { relation, _ = f.Compare(s, found) })
				if relation == checkpoint.Behind {
					continue
				}
				settled := false
				for _, own := range found {
					if in, err := store.Leads(l.Context(), f.Commit, own.Commit); own.Own && in && err == nil &&
						own.Commit != f.Commit {
						settled = true // the user has chosen
					}
				}
				if err := Here(l.Context(), rep, folder, false); err == nil && !settled {
					l.Errorf("on %s %s is another history, and no message says so:\n%s", m.name, f.Ref,
						strings.Join(told, "\n"))
				}
			}
		})
	}
}
