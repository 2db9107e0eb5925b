package projection

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"cadre/internal/team"
)

// TestManyProject changes and projects one team from several processes and goroutines at once. When
// the last has ended, the files show the last state without any further projection. In the meantime
// every file was complete, and the mark only grew.
func TestManyProject(t *testing.T) {
	const processes, goroutines, each = 3, 4, 15
	dir, claude := newFolder(t), filepath.Join(t.TempDir(), "claude")

	var working, watching sync.WaitGroup
	over := make(chan struct{})
	watching.Go(func() { watch(t, projectorOf(dir, claude), over) })
	var ends []func() error
	for n := range processes {
		ends = append(ends, childWork{Dir: dir, Claude: claude, Name: fmt.Sprintf("process%d", n),
			Count: each}.start(t))
	}
	shared := projectorOf(dir, claude)
	for n := range goroutines {
		h := openHistory(t, dir, fmt.Sprintf("goroutine%d", n))
		working.Go(func() {
			if err := h.work(t.Context(), shared, each); err != nil {
				t.Error(err)
			}
		})
	}
	for _, end := range ends {
		if err := end(); err != nil {
			t.Error(err)
		}
	}
	working.Wait()
	close(over)
	watching.Wait()

	h := openHistory(t, dir, "after")
	if got := highestID(h.state); got != (processes+goroutines)*each {
		t.Errorf("there are %d tasks", got)
	}
	same(t, claude, h)
}

// watch reads the files until over is closed.
func watch(t *testing.T, p *Projector, over <-chan struct{}) {
	last := int64(0)
	for {
		select {
		case <-over:
			return
		default:
		}
		if m, ok := readMark(p.Mark); ok {
			if m.Seq < last {
				t.Errorf("the mark went from %d to %d", last, m.Seq)
			}
			last = m.Seq
		}
		files, _ := filepath.Glob(p.Claude + "/t*s/health/*.json")
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err == nil && !json.Valid(data) {
				t.Errorf("%s was seen as %q", file, data)
				return
			}
		}
	}
}

// TestKilledAtEveryStep kills a projecting process at each of its steps. The next one corrects
// everything.
func TestKilledAtEveryStep(t *testing.T) {
	begin := func(t *testing.T, h *history) {
		h.do(t, "lead", &team.CreateTask{Subject: "a"})
		h.do(t, "lead", &team.CreateTask{Subject: "b", BlockedBy: []string{"1"}})
	}
	for _, what := range []struct {
		name   string
		before []team.Body // projected before
		then   []team.Body
	}{
		{"from nothing", nil, []team.Body{&team.ClaimTask{Task: "1"}}},
		{"changes", []team.Body{}, []team.Body{&team.DeleteTask{Task: "1"}, &team.CreateTask{Subject: "c",
			BlockedBy: []string{"2"}}}},
		{"the end", []team.Body{}, []team.Body{&team.SetStatus{Status: team.TeamAborted}}},
		{"clean-up", []team.Body{}, []team.Body{&team.CleanUp{}}},
	} {
		t.Run(what.name, func(t *testing.T) {
			killed := 0
			for step := 1; ; step++ {
				dir, claude := newFolder(t), t.TempDir()
				h, p := openHistory(t, dir, "test"), projectorOf(dir, claude)
				begin(t, h)
				if what.before != nil {
					project(t, p, h)
				}
				for _, body := range what.then {
					h.do(t, "lead", body)
				}
				end := childWork{Dir: dir, Claude: claude, KillAt: step}.start(t)()
				project(t, p, h)
				if h.state.Team().CleanedUp {
					if got := tree(t, claude); !slices.Equal(got, []string{"tasks", "teams"}) {
						t.Errorf("killed at step %d, it left %q", step, got)
					}
				} else {
					same(t, claude, h)
				}
				if t.Failed() {
					t.Fatalf("killed at step %d", step)
				}
				if end == nil {
					break
				}
				killed++
			}
			if killed < 3 {
				t.Errorf("it was killed at %d steps only", killed)
			}
		})
	}
}

// TestSharedFolder projects teams of the same name from two homes into one Claude folder. The newer
// team has it, whichever comes last.
func TestSharedFolder(t *testing.T) {
	claude := filepath.Join(t.TempDir(), "claude")
	old, young := newHistory(t, "T1", 1), newHistory(t, "T2", 2)
	first, second := projectorOf(t.TempDir(), claude), projectorOf(t.TempDir(), claude)
	for n := range 5 {
		for _, h := range []*history{old, young} {
			h.do(t, "lead", &team.CreateTask{Subject: fmt.Sprint(n)})
		}
		var both sync.WaitGroup
		both.Go(func() { _ = first.Project(t.Context(), old.journal, old.state) }) // it has the name, or loses it
		both.Go(func() { _ = second.Project(t.Context(), young.journal, young.state) })
		both.Wait()
	}
	project(t, second, young)
	same(t, claude, young)
}
