package projection

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/journal"
	"cadre/internal/team"
)

// randomBody returns a command that may or may not be accepted.
func randomBody(r *rand.Rand) team.Body {
	id := func() string { return fmt.Sprint(1 + r.IntN(12)) }
	member := fmt.Sprintf("m%d", r.IntN(4))
	text := fmt.Sprint("text ", r.IntN(100))
	switch r.IntN(19) {
	case 18:
		return &team.MoveTeam{Dir: fmt.Sprintf("/moved%d", r.IntN(3))}
	case 15:
		return &team.AttachLead{Session: text, TakeOver: true}
	case 16:
		return &team.SaveWork{Task: id(), Saved: team.Saved{Member: member, Output: text}}
	case 17:
		return &team.RecordFacts{Facts: []team.Fact{{Name: text, Path: text}}}
	case 0, 1:
		return &team.CreateTask{Subject: text, BlockedBy: []string{id()}}
	case 2:
		return &team.CreateTask{Subject: text}
	case 3:
		return &team.UpdateTask{Task: id(), Subject: &text}
	case 4:
		return &team.UpdateTask{Task: id(), AddBlocks: []string{id()}}
	case 5:
		return &team.UpdateTask{Task: id(), AddBlockedBy: []string{id()}}
	case 6:
		return &team.UpdateTask{Task: id(), RemoveBlocks: []string{id()}, RemoveBlockedBy: []string{id()}}
	case 7:
		return &team.UpdateTask{Task: id(), Owner: &member}
	case 8:
		return &team.ClaimTask{Task: id(), Member: member}
	case 9:
		return &team.CompleteTask{Task: id()}
	case 10:
		return &team.ReleaseTask{Task: id()}
	case 11:
		return &team.DeleteTask{Task: id()}
	case 12:
		return &team.SpawnMember{Name: member, Agent: team.External}
	case 13:
		return &team.ReportStatus{Member: member, Status: []team.MemberStatus{team.Idle, team.Active}[r.IntN(2)]}
	default:
		return &team.ReportStopped{Member: member}
	}
}

// TestChangesAreEnough checks that following the history step by step gives the same files as
// comparing everything.
func TestChangesAreEnough(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		p, h := newProjector(t), newHistory(t, "T1", 1)
		project(t, p, h)
		for range 12 {
			for range random.IntN(10) {
				actor := []string{"lead", team.User, "m0", "m1"}[random.IntN(4)]
				_, err := h.send(t.Context(), actor, randomBody(random))
				if refusal := new(team.Error); err != nil && !errors.As(err, &refusal) {
					t.Fatal(err)
				}
			}
			looked := false
			p.step = func(step string) { looked = looked || step == "write "+ownerName }
			project(t, p, h)
			if looked {
				t.Fatal("it started over")
			}
			same(t, p.Claude, h)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestEveryKindIsListed checks that only the first and the last event of a team cause a comparison
// of everything. A kind missing in the list would do so for each of its records.
func TestEveryKindIsListed(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "team", "testdata", "events", "*.json"))
	if err != nil || len(files) < 50 {
		t.Fatalf("%d kinds of events, %v", len(files), err)
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		record, err := team.DecodeRecord(1, strings.TrimSpace(string(line)))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, e := range record.Events {
			var whole bool
			switch e.(type) {
			case *team.TeamCreated, *team.TeamRestored, *team.TeamCleanedUp:
				whole = true
			}
			c := &changes{tasks: map[string]bool{}}
			if c.add(&team.State{}, e); c.all != whole {
				t.Errorf("%s has everything looked at: %t", e.Kind(), c.all)
			}
		}
	}
}

// working returns a projected team with a few tasks.
func working(t *testing.T) (*Projector, *history) {
	t.Helper()
	p, h := newProjector(t), newHistory(t, "T1", 1)
	for _, body := range []team.Body{
		&team.SpawnMember{Name: "alice", Agent: team.External},
		&team.CreateTask{Subject: "a"}, &team.CreateTask{Subject: "b", BlockedBy: []string{"1"}},
		&team.CreateTask{Subject: "c"},
		&team.DeleteTask{Task: "3"},
	} {
		h.do(t, "lead", body)
	}
	project(t, p, h)
	return p, h
}

// stepsOf counts the file operations of a projection.
func stepsOf(t *testing.T, p *Projector, h *history) int {
	t.Helper()
	steps := 0
	counting := &Projector{Claude: p.Claude, Mark: p.Mark, step: func(string) { steps++ }}
	project(t, counting, h)
	return steps
}

// TestOnlyWhatChanged checks that a projection writes only the files that changed, and none without
// a change.
func TestOnlyWhatChanged(t *testing.T) {
	p, h := working(t)
	if n := stepsOf(t, p, h); n != 0 {
		t.Errorf("a projection of nothing new took %d steps", n)
	}
	long := time.Unix(1000, 0)
	files := []string{"tasks/health/1.json", "tasks/health/2.json", "tasks/health/.highwatermark", "tasks/health/.lock",
		"tasks/health/.cadre", "teams/health/config.json"}
	for _, file := range files {
		if err := os.Chtimes(filepath.Join(p.Claude, file), long, long); err != nil {
			t.Fatal(err)
		}
	}
	h.do(t, "lead", &team.ClaimTask{Task: "1"})
	project(t, p, h)
	for _, file := range files {
		info, err := os.Stat(filepath.Join(p.Claude, file))
		if err != nil {
			t.Fatal(err)
		}
		if changed := !info.ModTime().Equal(long); changed != (file == files[0]) {
			t.Errorf("%s: changed %v", file, changed)
		}
	}
	for range 3 {
		h.do(t, "lead", &team.SendMessage{To: "alice", Body: "no file of ours"})
	}
	if n := stepsOf(t, p, h); n != 1 {
		t.Errorf("messages took %d steps, and only the mark is to move", n)
	}
}

// TestRebuilt checks that the next projection restores missing and wrong files.
func TestRebuilt(t *testing.T) {
	remove := func(t *testing.T, path string) {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	write := func(t *testing.T, path, data string) {
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, harm := range map[string]func(t *testing.T, p *Projector, h *history){
		"tasks swept": func(t *testing.T, p *Projector, _ *history) { remove(t, p.Claude+"/tasks/health") },
		"config removed": func(t *testing.T, p *Projector, _ *history) {
			remove(t, p.Claude+"/teams/health/config.json")
		},
		"everything removed": func(t *testing.T, p *Projector, _ *history) { remove(t, p.Claude) },
		"mark removed": func(t *testing.T, p *Projector, _ *history) {
			remove(t, p.Mark)
			remove(t, p.Claude+"/tasks/health/1.json")
			write(t, p.Claude+"/tasks/health/7.json", "{}")
			write(t, p.Claude+"/tasks/health/.highwatermark", "1")
		},
		"mark torn": func(t *testing.T, p *Projector, _ *history) {
			write(t, p.Mark, `00000000 {"cadre-projection":1,"team":"T1","seq":6}`+"\n")
			write(t, p.Claude+"/tasks/health/1.json", "")
		},
		"mark of another history": func(t *testing.T, p *Projector, h *history) {
			lock, err := lockMark(t.Context(), p.Mark)
			if err != nil {
				t.Fatal(err)
			}
			defer lock.unlock()
			if err := lock.write(mark{Team: "T1", Seq: 1000}); err != nil {
				t.Fatal(err)
			}
			write(t, p.Claude+"/tasks/health/1.json", "")
		},
		"config garbled": func(t *testing.T, p *Projector, h *history) {
			write(t, p.Claude+"/teams/health/config.json", "")
			write(t, p.Claude+"/tasks/health/.cadre", "")
			h.do(t, "lead", &team.ClaimTask{Task: "1"})
		},
		"a task removed": func(t *testing.T, p *Projector, _ *history) { remove(t, p.Claude+"/tasks/health/1.json") },
		"a task added": func(t *testing.T, p *Projector, _ *history) {
			write(t, p.Claude+"/tasks/health/9.json", "{}")
		},
		"a task replaced": func(t *testing.T, p *Projector, _ *history) {
			write(t, p.Claude+"/tasks/health/new", "{}")
			if err := os.Rename(p.Claude+"/tasks/health/new", p.Claude+"/tasks/health/1.json"); err != nil {
				t.Fatal(err)
			}
		},
		"far behind": func(t *testing.T, p *Projector, h *history) {
			for range 1100 {
				h.do(t, "lead", &team.SendMessage{To: "alice", Body: "again"})
				h.do(t, "alice", &team.ReceiveMessages{})
			}
			h.do(t, "lead", &team.ClaimTask{Task: "1"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, h := working(t)
			harm(t, p, h)
			project(t, p, h)
			same(t, p.Claude, h)
			if n := stepsOf(t, p, h); n != 0 {
				t.Errorf("the next projection took %d steps again", n)
			}
		})
	}
}

// TestRepair checks that a projection does not notice a file modified in place, and that Repair
// corrects and counts it.
func TestRepair(t *testing.T) {
	p, h := working(t)
	for _, file := range []string{"tasks/health/1.json", "teams/health/config.json"} {
		path := filepath.Join(p.Claude, file)
		data, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, append(data, ' '), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(p.Claude, "tasks/health/2.json")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{3, 0} {
		if n, err := p.Repair(t.Context(), h.journal, h.state); n != want || err != nil {
			t.Errorf("%d files were put right, %v; want %d", n, err, want)
		}
		same(t, p.Claude, h)
	}
}

// TestFolderInTheWay checks that a folder in place of any file is moved away with its content,
// stays when the team is removed, and does not prevent the projection.
func TestFolderInTheWay(t *testing.T) {
	for _, file := range []string{"tasks/health/1.json", "tasks/health/9.json", "tasks/health/.cadre",
		"tasks/health/.highwatermark", "teams/health/config.json"} {
		t.Run(file, func(t *testing.T) {
			p, h := working(t)
			var logged []string
			p.Log = func(what string) { logged = append(logged, what) }
			path := filepath.Join(p.Claude, file)
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			if err := errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "mine"), []byte("keep"),
				0o600)); err != nil {
				t.Fatal(err)
			}
			h.do(t, "lead", &team.ClaimTask{Task: "1"})
			project(t, p, h)
			if _, err := p.Repair(t.Context(), h.journal, h.state); err != nil {
				t.Fatal(err)
			}
			if len(logged) != 1 {
				t.Fatalf("logged: %q", logged)
			}
			aside := logged[0][strings.LastIndex(logged[0], " ")+1:]
			h.do(t, "lead", &team.CleanUp{Force: true})
			project(t, p, h)
			if data, err := os.ReadFile(filepath.Join(aside, "mine")); err != nil || string(data) != "keep" {
				t.Errorf("what was in the folder: %q, %v", data, err)
			}
			if err := os.RemoveAll(aside); err != nil {
				t.Fatal(err)
			}
			if got := tree(t, p.Claude); !slices.Equal(got, []string{"tasks", "teams"}) {
				t.Errorf("left is %q", got)
			}
		})
	}
}

// TestNeverBackwards checks that a process with an older state does not change a newer projection,
// even if a file is missing.
func TestNeverBackwards(t *testing.T) {
	p, h := working(t)
	h.do(t, "lead", &team.ClaimTask{Task: "1"})
	project(t, p, h)
	past := h.at(t, h.state.Seq()-1)
	if err := p.Project(t.Context(), h.journal, past); err != nil {
		t.Fatal(err)
	}
	same(t, p.Claude, h)

	h.do(t, "lead", &team.CleanUp{Force: true})
	past = h.at(t, h.state.Seq()-1)
	project(t, p, h)
	if err := p.Project(t.Context(), h.journal, past); err != nil {
		t.Fatal(err)
	}
	if got := tree(t, p.Claude); !slices.Equal(got, []string{"tasks", "teams"}) {
		t.Errorf("a past state brought back %q", got)
	}
}

// TestEndOfTeam checks that a finished team keeps its roster until the clean-up, and that a
// clean-up can be repeated, even without the team's own folder.
func TestEndOfTeam(t *testing.T) {
	p, h := working(t)
	h.do(t, "@user", &team.SetStatus{Status: team.TeamAborted})
	project(t, p, h)
	if !missing(p.Claude+"/tasks/health") || missing(p.Claude+"/teams/health/config.json") {
		t.Errorf("the team is aborted, and there is %q", tree(t, p.Claude))
	}
	if n := stepsOf(t, p, h); n != 0 {
		t.Errorf("the next projection took %d steps", n)
	}
	inbox := filepath.Join(p.Claude, "teams/health/inboxes")
	if err := os.Mkdir(inbox, 0o700); err != nil {
		t.Fatal(err)
	}
	h.do(t, "lead", &team.CleanUp{})
	for range 2 {
		project(t, p, h)
		if got := tree(t, p.Claude); !slices.Equal(got, []string{"tasks", "teams"}) {
			t.Errorf("after the clean-up there is %q", got)
		}
		if err := os.RemoveAll(filepath.Dir(p.Mark)); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Project(t.Context(), h.journal, h.at(t, 2)); !errors.Is(err, journal.ErrGone) {
		t.Errorf("projecting a live team without its folder: %v", err)
	}
}

// TestForeignFolders checks that a foreign folder is never changed, and that this is reported once.
func TestForeignFolders(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"a team of Claude Code's": {"teams/health/config.json": `{"name":"health","members":[]}`},
		"its tasks alone":         {"tasks/health/.lock": "", "tasks/health/1.json": `{"id":"1"}`},
		"something garbled":       {"teams/health/config.json": `{"name":`},
		"a newer team of ours":    {"teams/health/config.json": `{"cadre":{"teamId":"T9","createdAt":99,"seq":4}}`},
		"a file":                  {"tasks/health": "?"},
	} {
		t.Run(name, func(t *testing.T) {
			p, h := newProjector(t), newHistory(t, "T1", 1)
			for path, data := range files {
				path = filepath.Join(p.Claude, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			before := tree(t, p.Claude)
			err := p.Project(t.Context(), h.journal, h.state)
			if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), filepath.Join(p.Claude)) {
				t.Errorf("the error is %v", err)
			}
			h.do(t, "lead", &team.CreateTask{Subject: "a"})
			for _, end := range []team.Body{nil, &team.SetStatus{Status: team.TeamAborted}, &team.CleanUp{}} {
				if end != nil {
					h.do(t, "@user", end)
				}
				project(t, p, h) // and says nothing
			}
			if after := tree(t, p.Claude); !slices.Equal(before, after) {
				t.Errorf("it was %q and is %q", before, after)
			}
		})
	}
}

// TestForeignFolderGoes checks that the team is projected as soon as its name is free.
func TestForeignFolderGoes(t *testing.T) {
	p, h := newProjector(t), newHistory(t, "T1", 1)
	if err := os.MkdirAll(p.Claude+"/tasks/health/sub", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := p.Project(t.Context(), h.journal, h.state); !errors.Is(err, ErrForeign) {
		t.Fatal(err)
	}
	if err := os.RemoveAll(p.Claude + "/tasks/health"); err != nil {
		t.Fatal(err)
	}
	project(t, p, h)
	same(t, p.Claude, h)
}

// TestNameUsedAgain checks that a newer team takes over the folders of an older one, and that the
// older one's clean-up leaves them alone.
func TestNameUsedAgain(t *testing.T) {
	p, old := working(t)
	old.do(t, "@user", &team.SetStatus{Status: team.TeamAborted})
	project(t, p, old)
	again, young := projectorOf(t.TempDir(), p.Claude), newHistory(t, "T0", 2)
	project(t, again, young)
	same(t, p.Claude, young)
	if n := stepsOf(t, p, old); n != 0 {
		t.Errorf("the old team took %d steps", n)
	}
	old.do(t, "lead", &team.CleanUp{})
	project(t, p, old)
	same(t, p.Claude, young)
}

// TestClaudeFolderCannotBeWritten checks that an unwritable folder is an error, that the mark does
// not change, and that a later projection succeeds.
func TestClaudeFolderCannotBeWritten(t *testing.T) {
	p, h := newProjector(t), newHistory(t, "T1", 1)
	if err := os.WriteFile(p.Claude, nil, 0o600); err != nil { // a file in place of the folder; this also stops root
		t.Fatal(err)
	}
	err := p.Project(t.Context(), h.journal, h.state)
	if err == nil || !strings.Contains(err.Error(), p.Claude) || !strings.Contains(err.Error(), "not affected") {
		t.Errorf("the error is %v", err)
	}
	if err := os.Remove(p.Claude); err != nil {
		t.Fatal(err)
	}
	project(t, p, h)
	same(t, p.Claude, h)
}

// TestWaitIsBounded checks that a process stuck in a projection does not block others for ever.
func TestWaitIsBounded(t *testing.T) {
	p, h := working(t)
	lock, err := lockMark(t.Context(), p.Mark)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.unlock()
	project(t, p, h) // nothing to do, so it needs no lock
	h.do(t, "lead", &team.ClaimTask{Task: "1"})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := p.Project(ctx, h.journal, h.state); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
}

// TestModes checks that only the owner can read the files.
func TestModes(t *testing.T) {
	p, _ := working(t)
	err := filepath.WalkDir(p.Claude, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		want := fs.FileMode(0o600)
		if e.IsDir() {
			want = 0o700
		}
		if err == nil && info.Mode().Perm() != want {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
