package projection

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cadre/internal/journal"
	"cadre/internal/journal/filejournal"
	"cadre/internal/journal/memjournal"
	"cadre/internal/team"
)

// history is a team's journal with the state at some point of it, as a replica has them.
type history struct {
	journal journal.Journal
	state   *team.State
	name    string // part of the ids of the commands
	sent    int
}

// newHistory returns a new team in memory, led by lead.
func newHistory(t testing.TB, id string, at team.Time) *history {
	t.Helper()
	h := &history{journal: memjournal.New(id).Open(), state: &team.State{}, name: id}
	t.Cleanup(func() { h.journal.Close() })
	h.do(t, "@user", founding(id), at)
	return h
}

func founding(id string) *team.CreateTeam {
	return &team.CreateTeam{TeamID: id, Name: "health", Goal: "Audit <this> & that", Dir: "/repo"}
}

func (h *history) do(t testing.TB, actor string, body team.Body, at ...team.Time) *team.Record {
	t.Helper()
	r, err := h.send(t.Context(), actor, body, at...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (h *history) send(ctx context.Context, actor string, body team.Body, at ...team.Time) (*team.Record, error) {
	h.sent++
	c := team.Command{ID: fmt.Sprintf("%s-%d", h.name, h.sent), Actor: actor,
		At: team.Time(1_795_000_000_000 + h.sent*1000), Body: body}
	if len(at) > 0 {
		c.At = at[0]
	}
	var d team.Decision
	_, err := h.journal.Append(ctx, h.state.Seq(), h.see, func() ([]byte, error) {
		var err error
		if d, err = team.Decide(h.state, c); err != nil || d.Record == nil {
			return nil, err
		}
		return team.AppendRecord(nil, d.Record), nil
	})
	if err == nil && d.Record != nil {
		h.state.Apply(d.Record)
	}
	return d.Record, err
}

func (h *history) see(r journal.Record) error {
	record, err := team.DecodeRecord(r.Seq, string(r.Data))
	if err == nil {
		h.state.Apply(record)
	}
	return err
}

func (h *history) refresh(ctx context.Context) error {
	for r, err := range h.journal.Read(ctx, h.state.Seq()) {
		if err == nil {
			err = h.see(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// at returns the state after the record seq.
func (h *history) at(t testing.TB, seq int64) *team.State {
	t.Helper()
	past := &history{journal: h.journal, state: &team.State{}}
	for r, err := range h.journal.Read(t.Context(), 0) {
		if err == nil && r.Seq <= seq {
			err = past.see(r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return past.state
}

// work creates, claims and deletes tasks, and projects after each command.
func (h *history) work(ctx context.Context, p *Projector, count int) error {
	for n := range count {
		r, err := h.send(ctx, "lead", &team.CreateTask{Subject: fmt.Sprintf("%s %d", h.name, n)})
		if err != nil {
			return err
		}
		if err := p.Project(ctx, h.journal, h.state); err != nil {
			return err
		}
		id := r.Events[0].(*team.TaskCreated).Task.ID
		var next team.Body = &team.ClaimTask{Task: id}
		if n%3 == 2 {
			next = &team.DeleteTask{Task: id}
		}
		if _, err := h.send(ctx, "lead", next); err != nil {
			return err
		}
		if err := p.Project(ctx, h.journal, h.state); err != nil {
			return err
		}
	}
	return nil
}

// newFolder creates a team on disk and returns its folder.
func newFolder(t testing.TB) string {
	t.Helper()
	d, err := team.Decide(&team.State{}, team.Command{ID: "found", Actor: team.User, At: 1_795_000_000_000,
		Body: founding("T1")})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "own")
	if err := filejournal.Create(dir, "T1", [][]byte{team.AppendRecord(nil, d.Record)},
		filejournal.Options{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// openHistory opens a team on disk.
func openHistory(t testing.TB, dir, name string) *history {
	t.Helper()
	j, err := filejournal.Open(dir, filejournal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	h := &history{journal: j, state: &team.State{}, name: name}
	if err := h.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h
}

func projectorOf(dir, claude string) *Projector {
	return &Projector{Claude: claude, Mark: filepath.Join(dir, MarkFile)}
}

// newProjector returns a projector with folders of its own; the Claude folder does not exist yet.
func newProjector(t testing.TB) *Projector {
	t.Helper()
	return projectorOf(t.TempDir(), filepath.Join(t.TempDir(), "claude"))
}

func project(t testing.TB, p *Projector, h *history) {
	t.Helper()
	if err := p.Project(t.Context(), h.journal, h.state); err != nil {
		t.Fatal(err)
	}
}

// tree lists the content of a folder: "path" for folders, "path: content" for files.
func tree(t testing.TB, root string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		name, _ := filepath.Rel(root, path)
		if e.IsDir() {
			all = append(all, name)
			return nil
		}
		data, err := os.ReadFile(path)
		all = append(all, name+": "+string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// same checks that the content of the Claude folder equals that of a projection from scratch. Only
// the seqs in config.json and .cadre may differ, because they say when the file was written.
func same(t testing.TB, claude string, h *history) {
	t.Helper()
	p := newProjector(t)
	for _, folder := range []string{"tasks", "teams"} { // they stay when a team is removed
		if err := os.MkdirAll(filepath.Join(p.Claude, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	project(t, p, h)
	got, want := withoutSeq(tree(t, claude)), withoutSeq(tree(t, p.Claude))
	if !slices.Equal(got, want) {
		for _, one := range got {
			if !slices.Contains(want, one) {
				t.Errorf("too much: %s", one)
			}
		}
		for _, one := range want {
			if !slices.Contains(got, one) {
				t.Errorf("missing: %s", one)
			}
		}
	}
}

func withoutSeq(files []string) []string {
	var out []string
	for _, file := range files {
		if name, data, ok := strings.Cut(file, `"seq":`); ok {
			file = name + strings.TrimLeft(data, " 0123456789")
		}
		out = append(out, file)
	}
	return out
}
