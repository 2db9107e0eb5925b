package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/agent/drivers"
	"cadre/internal/layout"
	"cadre/internal/observe"
	"cadre/internal/observe/model"
	"cadre/internal/observe/present"
	"cadre/internal/observe/protocol"
	"cadre/internal/observe/session"
	"cadre/internal/observe/source"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// keeping returns a watch that is kept and journaled under a name, and a function that closes both
// without saving, as a kill does.
func keeping(t *testing.T, h layout.Home, name string) (*Watch, func()) {
	t.Helper()
	kept, err := OpenKept(h.Observation(name))
	if err != nil {
		t.Fatal(err)
	}
	book, err := OpenBook(t.Context(), h, name, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	return &Watch{Now: func() team.Time { return 1795219500000 }, Kept: kept, Book: book}, func() {
		if err := errors.Join(book.Close(), kept.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

func begin(t *testing.T, w *Watch, name string) {
	t.Helper()
	if err := w.Begin(t.Context(), Team(observe.Options{Name: name})); err != nil {
		t.Fatal(err)
	}
}

// journaled returns the history of a team without times, and its state.
func journaled(t *testing.T, h layout.Home, name string) (history []string, state string) {
	t.Helper()
	j, _, err := h.Open(name, func(what string) { t.Error(what) })
	if err != nil {
		t.Fatal(err)
	}
	rep, err := replica.Open(t.Context(), j, replica.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer rep.Close()
	for r, err := range rep.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		history = append(history, fmt.Sprint(r.Seq, " ", r.ID, " ", jsonOf(r.Events)))
	}
	rep.View(func(s *team.State) { state = jsonOf(present.StateOf(s)) })
	return history, state
}

// TestKilledAtAnyLine kills the observer after any line, with the journal behind by any number of
// lines. The observation continues as if nothing had happened, with the next lines or with all of
// them again.
func TestKilledAtAnyLine(t *testing.T) {
	data := recording(t, "2.1.47/stream.jsonl")
	lines := bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
	whole := layout.Home{Root: t.TempDir()}
	w, leave := keeping(t, whole, "fx")
	begin(t, w, "fx")
	for _, line := range lines {
		w.Line("lead", line, source.Place{})
	}
	leave()
	want, _ := journaled(t, whole, "fx")
	if len(want) < 30 {
		t.Fatalf("only %d records", len(want))
	}
	for _, replay := range []bool{false, true} {
		h := layout.Home{Root: t.TempDir()}
		for at := 0; at < len(lines); {
			w, leave := keeping(t, h, "fx")
			begin(t, w, "fx")
			from := at
			if replay {
				from = 0
			}
			at = min(len(lines), at+7)
			if at%2 == 0 { // the journal gets nothing, as if killed before
				book := w.Book
				w.Book = nil
				defer func() { w.Book = book }()
			}
			for _, line := range lines[from:at] {
				w.Line("lead", line, source.Place{})
			}
			leave()
		}
		w, leave := keeping(t, h, "fx")
		begin(t, w, "fx")
		leave()
		got, _ := journaled(t, h, "fx")
		// A record that comes from no call has an id with a count of lines. Each kill loses some
		// irrelevant lines, and a replay adds some.
		got, want := withoutIDs(got), withoutIDs(want)
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("replay %v: journaled:\n%s\nwithout kills:\n%s", replay, strings.Join(got, "\n"),
				strings.Join(want, "\n"))
		}
	}
}

// TestResultsThatCameMeanwhile checks that a result which arrives while no observer runs still
// matches its call: that time does not count as waiting, for kept and for saved data.
func TestResultsThatCameMeanwhile(t *testing.T) {
	before := []byte(`{"type":"assistant","session_id":"s","message":{"id":"a","content":[{"type":"tool_use","id":"t1","name":"TeamCreate","input":{"team_name":"fx"}}]}}
{"type":"user","session_id":"s","tool_use_result":{"team_name":"fx"},"message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":""}]}}
{"type":"assistant","session_id":"s","message":{"id":"b","content":[{"type":"tool_use","id":"t2","name":"TaskCreate","input":{"subject":"A"}}]}}
`)
	after := []byte(`{"type":"user","session_id":"s","tool_use_result":{"task":{"id":"1","subject":"A"}},"message":{"content":[{"type":"tool_result","tool_use_id":"t2","content":""}]}}
`)
	const started = team.Time(1795219500000)
	for _, c := range []struct {
		name       string
		kept, book bool
		away       team.Time
	}{
		{"journaled", true, true, 3_600_000},
		{"kept", true, false, 3_600_000},
		{"saved", false, false, 3_600_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, now := layout.Home{Root: t.TempDir()}, started
			var saved []byte
			show := func(lines []byte, late team.Time) int {
				w, leave := &Watch{Saved: saved}, func() {}
				if c.kept {
					w, leave = keeping(t, h, "fx")
					if !c.book {
						book := w.Book
						w.Book = nil
						defer book.Close()
						leave = func() { w.Kept.Close() }
					}
				}
				w.Now = func() team.Time { return now }
				begin(t, w, "fx")
				now += late
				for line := range bytes.Lines(lines) {
					w.Line("lead", line, source.Place{})
				}
				var tasks int
				w.View(func(o Observer) {
					tasks = len(present.StateOf(o.Team()).Tasks)
					var err error
					if saved, err = o.Save(); err != nil {
						t.Fatal(err)
					}
				})
				leave()
				return tasks
			}
			show(before, 0)
			now += c.away
			show(nil, 0) // an observer ran without any input
			now += c.away
			if got := show(after, model.CallTTL); got != 1 {
				t.Errorf("%d tasks", got)
			}
		})
	}
	t.Run("while an observer runs the time counts", func(t *testing.T) {
		now := started
		w := &Watch{Now: func() team.Time { return now }}
		begin(t, w, "fx")
		for line := range bytes.Lines(before) {
			w.Line("lead", line, source.Place{})
		}
		now += model.CallTTL + 1
		if seen := w.Show("lead", after); len(seen.Records) > 0 || len(seen.Warnings) != 1 {
			t.Errorf("%+v", seen)
		}
	})
}

// TestLastEventIsKept checks that a stream that cannot be read again is identified by its last
// event, also after a kill, and also if that event was irrelevant.
func TestLastEventIsKept(t *testing.T) {
	h := layout.Home{Root: t.TempDir()}
	lines := func(w *Watch, from, to int) {
		for i := from; i < to; i++ {
			w.Line("relay", fmt.Appendf(nil, `{"type":"stream_event","uuid":"e%d"}`, i),
				source.Place{Event: fmt.Sprint("e", i)})
		}
	}
	w, leave := keeping(t, h, "fx")
	begin(t, w, "fx")
	lines(w, 0, 3)
	w.Show("relay",
		[]byte(
			`{"type":"assistant","session_id":"s","message":{"id":"m","content":[{"type":"tool_use","id":"t1","name":"TeamCreate","input":{"team_name":"fx"}}]}}`))
	lines(w, 3, 7)
	counted := int64(8)
	for range 2 { // without saving, as if killed
		leave()
		w, leave = keeping(t, h, "fx")
		begin(t, w, "fx")
		w.View(func(o Observer) {
			if c := o.Counts(); c.Lines != counted || c.Pending != 1 {
				t.Errorf("%+v", c)
			}
		})
		if got := w.Place("relay").Event; got != "e6" {
			t.Errorf("it continues behind %q", got)
		}
	}
	leave()
}

// TestLineThatIsBeingWritten checks that a file with an incomplete last line is read again from the
// beginning of that line.
func TestLineThatIsBeingWritten(t *testing.T) {
	h := layout.Home{Root: t.TempDir()}
	path := filepath.Join(t.TempDir(), "grows.jsonl")
	line := `{"type":"assistant","session_id":"s","message":{"id":"m","content":[{"type":"tool_use","id":"t1","name":"TeamCreate","input":{"team_name":"fx"}}]}}` + "\n" +
		`{"type":"user","session_id":"s","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]},"tool_use_result":{"team_name":"fx","team_file_path":"/x","lead_agent_id":"l"}}` + "\n"
	first := strings.Index(line, "\n") + 1
	for _, there := range []int{first, first + 60, len(line) - 2, len(line) - 1, len(line)} {
		if err := os.WriteFile(path, []byte(line[:there]), 0o600); err != nil {
			t.Fatal(err)
		}
		w, leave := keeping(t, h, "fx")
		begin(t, w, "fx")
		var warned []string
		w.Look = func(_ Observer, seen observe.Seen) error {
			warned = append(warned, seen.Warnings...)
			return nil
		}
		if err := w.Run(t.Context(), &source.File{Path: path}); err != nil {
			t.Fatal(err)
		}
		whole := there >= len(line)-1
		if w.observer.Team() != nil != whole || whole &&
			w.observer.Counts().Garbage+w.observer.Counts().Truncated != 2 || whole && len(warned) > 0 {
			t.Errorf("with %d of %d bytes: %+v %q", there, len(line), w.observer.Counts(), warned)
		}
		leave()
	}
}

// TestInvalidNames checks that an observed team's name, which an agent chose, is never used as
// a path, and never makes one that is too long.
func TestInvalidNames(t *testing.T) {
	root := t.TempDir()
	h := layout.Home{Root: filepath.Join(root, "a", "b", "c")}
	w, leave := keeping(t, h, "fx")
	begin(t, w, "fx")
	names := []string{"../../../evil", "/evil", strings.Repeat("n", 400), "..", "a/b", "two\nlines\x00", "ümlaut",
		"-x", ".", "ok"}
	show := func(id, tool string, input, result any) {
		w.Line("lead", []byte(jsonOf(map[string]any{"type": "assistant", "session_id": "s",
			"message": map[string]any{"id": id, "content": []any{
				map[string]any{"type": "tool_use", "id": id, "name": tool, "input": input}}}})), source.Place{})
		w.Line("lead", []byte(jsonOf(map[string]any{"type": "user", "session_id": "s", "tool_use_result": result,
			"message": map[string]any{"content": []any{
				map[string]any{"type": "tool_result", "tool_use_id": id, "content": ""}}}})), source.Place{})
	}
	var ids []string
	for i, name := range names {
		show(fmt.Sprint("create", i), "TeamCreate", map[string]any{"team_name": name},
			map[string]any{"team_name": name})
		w.View(func(o Observer) {
			if s := o.Team(); s == nil || !s.Exists() || s.Team().Observed != name {
				t.Fatalf("team %q is not observed", name)
			}
			ids = append(ids, o.Team().Team().ID)
		})
		show(fmt.Sprint("delete", i), "TeamDelete", map[string]any{}, map[string]any{"success": true,
			"team_name": name})
	}
	leave()
	for i, id := range ids {
		if i == len(ids)-1 {
			id = "fx"
		}
		dir, err := h.Folder(id)
		if err != nil {
			t.Errorf("%q has the id %q: %v", names[i], id, err)
		} else if place := filepath.Dir(filepath.Dir(dir)); place != h.Root {
			t.Errorf("%q is at %s", names[i], dir)
		}
	}
	err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() && !strings.HasPrefix(path, h.Root+string(filepath.Separator)) {
			t.Errorf("%s is outside", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestStreamsEnd checks that the end of a stream in the middle of a turn is kept and journaled
// once, wherever its observer was killed, and that the next stream continues.
func TestStreamsEnd(t *testing.T) {
	data, err := os.ReadFile("../../agent/headless/testdata/codex-0.169.0/interrupted.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	restore := func(saved []byte, newer *team.State) (Observer, error) {
		return session.Restore(session.Options{Agent: team.Codex, Name: "lone",
			Reader: drivers.Reader(team.Codex)}, saved, newer)
	}
	h := layout.Home{Root: t.TempDir()}
	stream := &source.Stream{Source: "stdin", Reader: bytes.NewReader(data)}
	w, leave := keeping(t, h, "lone")
	if err := w.Begin(t.Context(), restore); err != nil {
		t.Fatal(err)
	}
	book := w.Book
	w.Book = nil // the journal gets nothing, as if killed before
	if err := stream.Run(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	w.Book = book
	leave()
	for n := range 2 { // the second time there is nothing to add
		w, leave := keeping(t, h, "lone")
		if err := w.Begin(t.Context(), restore); err != nil {
			t.Fatal(err)
		}
		w.End("stdin")
		if m := member(t, w.observer.Team()); m.Status != team.Failed || m.Incarnation != 1 {
			t.Errorf("started again %d times, it is %+v", n+1, m)
		}
		leave()
		history, _ := journaled(t, h, "lone")
		if last := history[len(history)-1]; strings.Count(strings.Join(history, ""), "in the middle") != 1 ||
			!strings.Contains(last, "in the middle") {
			t.Errorf("started again %d times, journaled is\n%s", n+1, strings.Join(history, "\n"))
		}
	}
	w, leave = keeping(t, h, "lone")
	defer leave()
	if err := w.Begin(t.Context(), restore); err != nil {
		t.Fatal(err)
	}
	w.Line("stdin", []byte(`{"type":"thread.started","thread_id":"another"}`), source.Place{})
	if m := member(t, w.observer.Team()); m.Status != team.Active || m.Incarnation != 2 {
		t.Errorf("gone on with, it is %+v", m)
	}
}

func member(t *testing.T, s *team.State) team.Member {
	t.Helper()
	m, there := s.Member(team.Codex)
	if !there {
		t.Fatal("it did not join")
	}
	return m
}

// TestStreamOfATeamEnds checks that the end of a stream is not kept for a team's observer, which
// does not use it.
func TestStreamOfATeamEnds(t *testing.T) {
	h := layout.Home{Root: t.TempDir()}
	w, leave := keeping(t, h, "fx")
	defer leave()
	begin(t, w, "fx")
	before, at := w.Kept.size, w.Kept.skipped
	if w.End("stdin"); w.Kept.size != before || w.Kept.skipped != at {
		t.Errorf("kept are %d bytes and %d lines more", w.Kept.size-before, w.Kept.skipped-at)
	}
}

func withoutIDs(history []string) []string {
	var all []string
	for _, line := range history {
		seq, rest, _ := strings.Cut(line, " ")
		_, events, _ := strings.Cut(rest, " ")
		all = append(all, seq+" "+events)
	}
	return all
}

// TestTornLog checks that a log that ends anywhere is read up to its last complete entry, and that
// reading the file again adds the rest.
func TestTornLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stream.jsonl")
	appendTo(t, file, prefix(t))
	first := layout.Home{Root: t.TempDir()}
	w, leave := keeping(t, first, "fx")
	begin(t, w, "fx")
	if err := (&source.File{Path: file}).Run(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	leave()
	want, state := journaled(t, first, "fx")
	log, err := os.ReadFile(filepath.Join(first.Observation("fx"), "lines-1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{0, 1, 50, len(log) / 3, len(log) / 2, len(log) - 2, len(log) - 1} {
		h := layout.Home{Root: t.TempDir()}
		if err := os.CopyFS(h.Observation("fx"), os.DirFS(first.Observation("fx"))); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(h.Observation("fx"), "lines-1"), log[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		w, leave := keeping(t, h, "fx")
		begin(t, w, "fx")
		if err := w.Run(t.Context(), &source.File{Path: file}); err != nil {
			t.Fatal(err)
		}
		leave()
		got, now := journaled(t, h, "fx")
		if strings.Join(got, "\n") != strings.Join(want, "\n") || now != state {
			t.Errorf("cut at %d of %d: journaled:\n%s\nwant:\n%s", cut, len(log), strings.Join(got, "\n"),
				strings.Join(want, "\n"))
		}
	}
}

// TestJournalIsAhead checks that a journal that is ahead of the kept data, as after a power loss,
// counts, and that lines read again count once, by their times.
func TestJournalIsAhead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "transcript.jsonl")
	lines := bytes.SplitAfter(recording(t, "2.1.47/transcript-lead.jsonl"), []byte("\n"))
	appendTo(t, file, bytes.Join(lines[:100], nil))
	h := layout.Home{Root: t.TempDir()}
	w, leave := keeping(t, h, "fx")
	begin(t, w, "fx")
	if err := w.Run(t.Context(), &source.File{Path: file}); err != nil {
		t.Fatal(err)
	}
	leave()
	_, want := journaled(t, h, "fx")
	if !strings.Contains(want, "Task A") {
		t.Fatalf("there is no team in it: %s", want)
	}
	if err := os.RemoveAll(h.Observation("fx")); err != nil {
		t.Fatal(err)
	}
	w, leave = keeping(t, h, "fx")
	begin(t, w, "fx")
	if err := w.Run(t.Context(), &source.File{Path: file}); err != nil {
		t.Fatal(err)
	}
	leave()
	if _, got := journaled(t, h, "fx"); got != want {
		t.Errorf("it is:\n%s\nand was:\n%s", got, want)
	}
}

// TestNextTeam checks that the next team gets the name of the previous one, which is archived.
// Neither is there twice, even after a kill in between.
func TestNextTeam(t *testing.T) {
	h := layout.Home{Root: t.TempDir()}
	lines := bytes.Split(bytes.TrimSuffix(recording(t, "2.1.47/stream.jsonl"), []byte("\n")), []byte("\n"))
	again := bytes.Split(bytes.ReplaceAll(bytes.Join(lines, []byte("\n")), []byte("toolu_"),
		[]byte("toolu_again_")), []byte("\n"))
	for range 2 {
		w, leave := keeping(t, h, "fx")
		begin(t, w, "fx")
		for _, line := range append(lines, again[:120]...) {
			w.Line("lead", line, source.Place{})
		}
		leave()
	}
	history, state := journaled(t, h, "fx")
	if !strings.Contains(state, `"name":"fx"`) || !strings.Contains(history[0], `"observed":"fx-team"`) {
		t.Errorf("the team that is there is %s\n%s", state, history[0])
	}
	away, err := filepath.Glob(filepath.Join(h.Root, "archive", "*"))
	if err != nil || len(away) != 1 {
		t.Fatalf("put away: %v %v", away, err)
	}
	if _, state := journaled(t, h, filepath.Base(away[0])); state != "null" {
		t.Errorf("the team before is %s", state)
	}
}

// TestNextTeamInOneLine is like TestNextTeam for a line that both ends one team and begins the
// next, with a kill after it.
func TestNextTeamInOneLine(t *testing.T) {
	h := layout.Home{Root: t.TempDir()}
	for n, created := range []team.Time{1, 2, 2, 3, 3} {
		w, leave := keeping(t, h, "fx")
		begin(t, w, "fx")
		roster := jsonOf(map[string]any{"createdAt": created, "leadAgentId": "team-lead@fx", "leadSessionId": "s",
			"members": []any{map[string]any{"name": "ann"}}})
		w.Line("files", []byte(jsonOf(protocol.FileNote{Type: protocol.FileNoteType, Team: "fx", At: 10,
			N: int64(n + 1), Config: []byte(roster)})), source.Place{})
		leave()
		if w.ended != nil {
			t.Fatal(w.ended)
		}
		away, err := filepath.Glob(filepath.Join(h.Root, "archive", "*"))
		if _, state := journaled(t, h, "fx"); err != nil || len(away) != int(created)-1 ||
			!strings.Contains(state, `"ann"`) {
			t.Errorf("at %d, put away are %v, %v, and there is %s", n, away, err, state)
		}
	}
}

func TestOneObserverAtATime(t *testing.T) {
	h := layout.Home{Root: t.TempDir()}
	_, leave := keeping(t, h, "fx")
	if _, err := OpenKept(h.Observation("fx")); !errors.Is(err, ErrObserved) {
		t.Errorf("a second one: %v", err)
	}
	if !Observes(h.Observation("fx")) || Observes(h.Observation("other")) {
		t.Error("it is not known who is observed")
	}
	leave()
	_, leave = keeping(t, h, "fx")
	leave()
}

// TestRefusals checks that data that cannot be continued is refused with a reason, and not changed.
func TestRefusals(t *testing.T) {
	h := layout.Home{Root: t.TempDir()}
	if err := h.Create("ours", []team.Command{{ID: "1", Actor: team.User, At: 1, Body: &team.CreateTeam{TeamID: "t",
		Name: "ours", Dir: "/"}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenBook(t.Context(), h, "ours", func(string) {}); team.CodeOf(err) != team.Taken {
		t.Errorf("a team of ours: %v", err)
	}
	if _, err := OpenBook(t.Context(), h, "../x", func(string) {}); team.CodeOf(err) != team.Invalid {
		t.Errorf("no name: %v", err)
	}
	for content, want := range map[string]error{`{"v":99}`: observe.ErrNewer,
		`{"v":1,"observer":{"v":99}}`: observe.ErrNewer, `{`: ErrDamaged, `{"v":1,"observer":7}`: ErrDamaged,
		`{"v":1,"observer":{"v":1,"agent":"codex"}}`:          observe.ErrOther,
		`{"v":1,"observer":{"v":1,"seq":1,"state":{"v":99}}}`: team.ErrNewer} {
		w, leave := keeping(t, h, "fx")
		path := filepath.Join(h.Observation("fx"), savedName)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		err := w.Begin(t.Context(), Team(observe.Options{Name: "fx"}))
		if !errors.Is(err, want) || errors.Is(err, ErrDamaged) != (want == ErrDamaged) {
			t.Errorf("%s: %v", content, err)
		}
		if now, _ := os.ReadFile(path); string(now) != content {
			t.Errorf("%s became %s", content, now)
		}
		leave()
	}
	w, leave := keeping(t, h, "gx")
	begin(t, w, "gx")
	for line := range bytes.Lines(prefix(t)) {
		w.Line("lead", bytes.TrimSpace(line), source.Place{})
	}
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	leave()
	dir, err := h.Folder("gx")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	w, leave = keeping(t, h, "gx")
	if err := w.Begin(t.Context(), Team(observe.Options{Name: "gx"})); team.CodeOf(err) != team.NotFound {
		t.Errorf("without its journal: %v", err)
	}
	leave()
}

// TestKeptIsBounded checks that the kept data stays small, however long the stream is.
func TestKeptIsBounded(t *testing.T) {
	h := layout.Home{Root: t.TempDir()}
	w, leave := keeping(t, h, "fx")
	begin(t, w, "fx")
	most := int64(0)
	for round := range 60 {
		for line := range bytes.Lines(bytes.ReplaceAll(prefix(t), []byte("toolu_"),
			fmt.Appendf(nil, "toolu_%d_", round))) {
			w.Line("lead", bytes.TrimSpace(line), source.Place{})
		}
		if size, err := folderSize(h.Observation("fx")); err != nil {
			t.Fatal(err)
		} else {
			most = max(most, size)
		}
	}
	if err := w.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	leave()
	if most > 3<<20 {
		t.Errorf("it grew to %d bytes", most)
	}
	var s saved
	data, err := os.ReadFile(filepath.Join(h.Observation("fx"), savedName))
	if err != nil || json.Unmarshal(data, &s) != nil || s.Log < 3 {
		t.Errorf("it was saved %d times: %v", s.Log, err)
	}
}

func folderSize(dir string) (sum int64, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return 0, err
		}
		sum += info.Size()
	}
	return sum, err
}

// FuzzLog checks that any log can be read: complete entries are used, and an incomplete one ends
// it.
func FuzzLog(f *testing.F) {
	dir := f.TempDir()
	k, err := OpenKept(dir)
	if err != nil {
		f.Fatal(err)
	}
	if err := k.save(observe.New(observe.Options{}), nil); err != nil {
		f.Fatal(err)
	}
	for i, line := range bytes.SplitAfter(prefix(f), []byte("\n"))[1:6] {
		if err := k.add(entry{Kind: lineEntry, Source: "lead", At: team.Time(i), line: bytes.TrimSpace(line)},
			i%3 > 0); err != nil {
			f.Fatal(err)
		}
	}
	log, err := os.ReadFile(k.logPath(1))
	if err != nil {
		f.Fatal(err)
	}
	if err := k.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(log)
	f.Add([]byte("00000000 {}\n\n"))
	f.Fuzz(func(t *testing.T, log []byte) {
		path := filepath.Join(t.TempDir(), "lines-0")
		if err := os.WriteFile(path, log, 0o600); err != nil {
			t.Fatal(err)
		}
		k := &Kept{dir: filepath.Dir(path)}
		o := observe.New(observe.Options{})
		whole, err := k.replay(o, map[string]source.Place{}, func(*team.State, observe.Seen) error { return nil })
		if err != nil || whole > int64(len(log)) {
			t.Fatal(whole, err)
		}
		if err := os.WriteFile(path, log[:whole], 0o600); err != nil {
			t.Fatal(err)
		}
		again := observe.New(observe.Options{})
		if same, err := k.replay(again, map[string]source.Place{}, func(*team.State, observe.Seen) error {
			return nil
		}); same != whole || err != nil || again.Counts() != o.Counts() {
			t.Errorf("of %d bytes %d were whole, and then %d: %v", len(log), whole, same, err)
		}
	})
}
