package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// memory is a shelf without a disk, for histories by the thousand.
type memory struct {
	files map[string][]byte
	wrote map[string][]byte // files that the last checkpoint wrote
}

func (m *memory) place() string { return "memory" }

func (m *memory) load(context.Context) (*tip, error) {
	if m.files == nil {
		return nil, nil
	}
	i, err := open(m.files[stateFile], [2][]byte{m.files[logs[mailbox].file], m.files[logs[tasks].file]})
	return &tip{fmt.Sprint(i.doc.Sequence), i}, err
}

func (m *memory) save(_ context.Context, on *tip, next *image, files map[string][]byte, fresh bool) (string, error) {
	if fresh {
		m.files = map[string][]byte{}
	}
	if on != nil && !fresh {
		for _, old := range on.image.doc.Sheets {
			if !slices.Contains(next.doc.Sheets, old) {
				delete(m.files, old.file())
			}
		}
	}
	m.wrote = files
	for name, text := range files {
		m.files[name] = slices.Clone(text)
	}
	return fmt.Sprint(next.doc.Sequence), nil
}

func (m *memory) read(_ context.Context, _ *tip, files []string) (texts [][]byte, err error) {
	for _, name := range files {
		texts = append(texts, m.files[name])
	}
	return texts, nil
}

// draw sends a random command that is often sensible.
func draw(t *rapid.T, w *work) {
	name := rapid.SampledFrom([]string{"lead", "ann", "bob", "bob", "cy"})
	actor := rapid.SampledFrom([]string{team.User, "lead", "ann", "bob", team.Host("h1"),
		team.Host("h1")}).Draw(t, "actor")
	count := 0
	for ; ; count++ {
		if _, ok := w.state.Task(fmt.Sprint(count + 1)); !ok {
			break
		}
	}
	task := rapid.Custom(func(t *rapid.T) string { return fmt.Sprint(rapid.IntRange(1, count+1).Draw(t, "task")) })
	tasks := rapid.SliceOfNDistinct(task, 0, 2, rapid.ID)
	word := rapid.SampledFrom([]string{"x", "some words", "ä😀\"\\\n<&>", "bad\xff", strings.Repeat("long ", 2000)})
	key := rapid.SampledFrom([]string{"plan", "decisions/api"})
	some := rapid.Bool()
	ahead := func() team.Time {
		return w.state.Team().UpdatedAt + team.Time(rapid.IntRange(1, 100_000).Draw(t, "ahead"))
	}
	bodies := []func() team.Body{
		func() team.Body {
			return &team.CreateTask{Subject: word.Draw(t, "subject")[:1], Description: word.Draw(t, "text"),
				BlockedBy: tasks.Draw(t, "blocked"),
				Metadata:  map[string]json.RawMessage{"k": json.RawMessage(` {"a": [1 ,"<2>"]}`)}}
		},
		func() team.Body { return &team.ClaimTask{Task: task.Draw(t, "task"), Member: name.Draw(t, "member")} },
		func() team.Body { return &team.ClaimTask{Member: name.Draw(t, "member")} },
		func() team.Body {
			return &team.CompleteTask{Task: task.Draw(t, "task"), Member: name.Draw(t, "member"),
				Result: word.Draw(t, "result")}
		},
		func() team.Body {
			return &team.FailTask{Task: task.Draw(t, "task"), Member: name.Draw(t, "member"), Reason: "no"}
		},
		func() team.Body { return &team.ReleaseTask{Task: task.Draw(t, "task"), Member: name.Draw(t, "member")} },
		func() team.Body { return &team.DeleteTask{Task: task.Draw(t, "task")} },
		func() team.Body {
			return &team.UpdateTask{Task: task.Draw(t, "task"), Metadata: map[string]json.RawMessage{
				"late": json.RawMessage("1")}, AddBlocks: tasks.Draw(t, "blocks"),
				RemoveBlockedBy: tasks.Draw(t, "free")}
		},
		func() team.Body { return &team.SendMessage{To: name.Draw(t, "to"), Body: word.Draw(t, "text")} },
		func() team.Body { return &team.Broadcast{Body: word.Draw(t, "text")} },
		func() team.Body {
			return &team.ReceiveMessages{Member: name.Draw(t, "member"), Max: rapid.IntRange(0, 2).Draw(t, "most")}
		},
		func() team.Body { return &team.SetNote{Key: key.Draw(t, "key"), Text: word.Draw(t, "note")} },
		func() team.Body { return &team.AppendNote{Key: key.Draw(t, "key"), Text: word.Draw(t, "note")} },
		func() team.Body { return &team.DeleteNote{Key: key.Draw(t, "key")} },
		func() team.Body { return &team.SpawnMember{Name: "cy", Agent: team.Shell, Env: []string{"A="}} },
		func() team.Body { return &team.AttachMember{Member: name.Draw(t, "member")} },
		func() team.Body {
			return &team.ReportStarted{Member: name.Draw(t, "member"), Session: word.Draw(t, "session")[:1]}
		},
		func() team.Body {
			return &team.ReportUsage{Member: name.Draw(t, "member"), Task: task.Draw(t, "task"),
				Usage: team.Usage{InputTokens: 7}}
		},
		func() team.Body {
			return &team.DetachMember{Member: name.Draw(t, "member"), Reason: "r", Fresh: some.Draw(t, "fresh")}
		},
		func() team.Body { return &team.ReportFailed{Member: "cy", Reason: "r"} },
		func() team.Body {
			return &team.SubmitPlan{Member: "bob", Plan: word.Draw(t, "plan"), Deadline: ahead()}
		},
		func() team.Body {
			return &team.RequestPermission{Member: "bob", Tool: "Bash", Input: "{}", Deadline: ahead()}
		},
		func() team.Body { return &team.RequestShutdown{Member: "cy", Deadline: ahead()} },
		func() team.Body { return &team.SetBudget{Budget: team.Budget{Tokens: 1000}} },
		func() team.Body { return &team.SetMode{Member: "bob", Mode: "plan"} },
		func() team.Body {
			return &team.RejectByHook{Hook: "TaskCompleted", Member: "bob", Task: task.Draw(t, "task"), Feedback: "no"}
		},
	}
	w.try(actor, rapid.SampledFrom(bodies).Draw(t, "body")())
}

// TestAnyHistoryComesBack checks that whatever a team did, and whenever checkpoints were made, the
// last one restores the team as it is. The same holds for the history that continues from it in a
// new journal.
func TestAnyHistoryComesBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		shelf := &memory{}
		s := &Store{team: "demo", shelf: shelf}
		w := newWork(t, "T1")
		for life := range rapid.IntRange(1, 3).Draw(rt, "lives") {
			for range rapid.IntRange(0, 6).Draw(rt, "checkpoints") {
				for range rapid.IntRange(1, 30).Draw(rt, "steps") {
					draw(rt, w)
				}
				if rapid.Bool().Draw(rt, "again") {
					s = &Store{team: "demo", shelf: shelf}
				}
				if _, err := s.Write(t.Context(), w, Beside{}); err != nil {
					rt.Fatal(err)
				}
				brings(t, s, w)
			}
			if shelf.files == nil {
				continue
			}
			r, err := s.Restore(t.Context())
			if err != nil {
				rt.Fatal(err)
			}
			d, err := team.Decide(&team.State{}, r.Command(fmt.Sprint("restore", life), r.At+1, ""))
			if err != nil {
				rt.Fatal(err)
			}
			w = &work{state: &team.State{}, records: []*team.Record{d.Record}, sent: 1000 * (life + 1)}
			w.state.Apply(d.Record)
		}
	})
}

// TestLostFolder restores a team from its branch after its folder was lost.
func TestLostFolder(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	project, w := l.repository("r"), newWork(t, "T1")
	for range 60 {
		w.step(t)
	}
	w.do(t, "bob", &team.ClaimTask{Task: "1"})
	w.do(t, "lead", &team.SendMessage{To: "bob", Body: "unread"})
	s := l.store(project)
	l.checkpoint(s, w)
	r := brings(t, s, w)
	if n := len(r.Messages); n != shown || r.Messages[n-1].Body != "unread" || r.Messages[n-1].SentAt == 0 {
		t.Errorf("%d messages, the last %+v", n, r.Messages[n-1])
	}

	h := layout.Home{Root: filepath.Join(l.dir, "home")}
	if err := h.Create("demo", []team.Command{r.Command("restored-1", r.At+1000, project)}); err != nil {
		t.Fatal(err)
	}
	j, _, err := h.Open("demo", nil)
	if err != nil {
		t.Fatal(err)
	}
	rep, err := replica.Open(t.Context(), j, replica.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer rep.Close()
	rep.View(func(s *team.State) {
		bob, _ := s.Member("bob")
		if bob.Status != team.Spawning || bob.Session != "5e551011" || bob.Host != "" || bob.Prompt == "" ||
			!bob.Plan.Required || bob.Incarnation < 2 {
			t.Errorf("bob is %+v", bob)
		}
		task, _ := s.Task("1")
		if task.Status != team.Pending || task.Owner != "bob" || task.Fence < 2 {
			t.Errorf("his task is %+v", task)
		}
		if mail := s.Inbox("bob"); len(mail) != 1 || mail[0].Body != "unread" {
			t.Errorf("his mail: %+v", mail)
		}
		if s.Count(team.Completed) != 60 || s.Team().Dir != project || s.Team().Goal == "" {
			t.Errorf("%d completed in %s", s.Count(team.Completed), s.Team().Dir)
		}
	})
	// The team continues, and so do its checkpoints.
	receipt, err := rep.Do(t.Context(), team.Command{Actor: "lead", Body: &team.SendMessage{To: "bob",
		Body: "welcome back"}})
	if err != nil || receipt.Record.Events[0].(*team.MessageSent).Message.Seq <= r.State.MessageSeq()+1 {
		t.Errorf("%+v, %v", receipt, err)
	}
	c, err := l.store(project).Write(t.Context(), rep, Beside{})
	if err != nil || c.Seq < r.Seq+2 || c.History != "restored-1" {
		t.Errorf("%+v, %v", c, err)
	}
	// The history that it was restored from must not continue.
	w.step(t)
	if _, err := s.Write(t.Context(), w, Beside{}); !errors.Is(err, ErrForked) {
		t.Errorf("the lost history writes: %v", err)
	}
	again, err := l.store(project).Restore(t.Context())
	if err != nil || again.State.Team().Restored.Seq != r.Seq {
		t.Errorf("%+v, %v", again, err)
	}
	if n := len(l.line(project)); n != 2 {
		t.Errorf("%d commits", n)
	}
}

// TestNameIsGivenAgain checks that a later team of the same name gets the branch, and the earlier
// team's commits stay reachable below it.
func TestNameIsGivenAgain(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	project, first, second := l.repository("r"), newWork(t, "T1"), newWork(t, "T2")
	for range 60 {
		first.step(t)
	}
	s := l.store(project)
	l.checkpoint(s, first)
	tip := l.git(project, "rev-parse", "cadre/demo")
	if c := l.checkpoint(l.store(project), second); !strings.Contains(c.Notice, ErrTaken.Error()) || c.Commit != "" ||
		c.Place != filepath.Join(l.dir, "own", "checkpoint") {
		t.Errorf("of two that are at work: %+v", c)
	}
	if now := l.git(project, "rev-parse", "cadre/demo"); now != tip {
		t.Errorf("the branch moved to %s", now)
	}
	first.do(t, team.User, &team.SetStatus{Status: team.TeamAborted})
	l.checkpoint(s, first)
	other := l.store(project)
	l.checkpoint(other, second)
	brings(t, other, second)
	if files := l.git(project, "ls-tree", "-r", "--name-only", "cadre/demo"); strings.Count(files, "\n") != 7 {
		t.Errorf("left of the first:\n%s", files)
	}
	if n := len(l.line(project)); n != 3 {
		t.Errorf("%d commits", n)
	}
}

// TestFetchAfterAKill checks that a lock which a killed git left on the remote-tracking branch of
// the checkpoints, or on a branch that they carry, does not stop a move.
func TestFetchAfterAKill(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits seconds for each lock; not with -short")
	}
	l := newLab(t)
	project, w := l.repository("r"), newWork(t, "T1")
	w.step(t)
	l.checkpoint(l.store(project), w)
	clone := filepath.Join(l.dir, "clone")
	l.git(l.dir, "clone", "-q", project, clone)
	w.step(t)
	c := l.checkpoint(l.store(project), w)
	killed := func(ref string) {
		t.Helper()
		lock := filepath.Join(clone, ".git", filepath.FromSlash(ref)+".lock")
		l.write(lock, "")
		if err := os.Chtimes(lock, time.Time{}, time.Now().Add(-time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	s := l.store(clone)
	origin, err := s.Remote(t.Context(), "origin")
	if err != nil {
		t.Fatal(err)
	}
	killed("refs/remotes/origin/cadre/demo")
	if found, err := s.Fetch(t.Context(), origin); err != nil || found.Commit != c.Commit {
		t.Errorf("fetched %s, want %s: %v", found.Commit, c.Commit, err)
	}
	r := brings(t, s, w)
	killed("refs/heads/cadre/demo")
	if _, err := s.Branches(t.Context(), r); err != nil || l.git(clone, "rev-parse", "cadre/demo") != c.Commit {
		t.Errorf("the branch is not there: %v", err)
	}
	l.git(project, "update-ref", "-d", "refs/heads/cadre/demo")
	killed("refs/remotes/origin/cadre/demo")
	if _, err := s.Fetch(t.Context(), origin); !errors.Is(err, ErrNone) {
		t.Errorf("of a branch that the remote does not have any more: %v", err)
	}
}

// TestRemoteBranch checks that a branch that was only fetched is as good as one of the repository's
// own, if it is clear which one counts.
func TestRemoteBranch(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	project, w := l.repository("r"), newWork(t, "T1")
	w.step(t)
	c := l.checkpoint(l.store(project), w)
	clone := filepath.Join(l.dir, "clone")
	l.git(l.dir, "clone", "-q", project, clone)
	if heads := l.git(clone, "for-each-ref", "--format=%(refname)", "refs/heads"); heads != "refs/heads/main" {
		t.Fatalf("the clone has %s", heads)
	}
	r := brings(t, l.store(clone), w)
	if left, err := l.store(clone).Branches(t.Context(), r); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
	if got := l.git(clone, "rev-parse", "cadre/demo"); got != c.Commit {
		t.Errorf("the branch is at %s, not %s", got, c.Commit)
	}
	w.step(t)
	l.checkpoint(l.store(project), w)
	other := filepath.Join(l.dir, "other")
	l.git(l.dir, "clone", "-q", project, other)
	l.git(other, "remote", "add", "-f", "second", clone)
	brings(t, l.store(other), w) // second has an older checkpoint, so it is clear which one counts
	l.git(other, "branch", "cadre/demo", "second/cadre/demo")
	brings(t, l.store(other), w)
}

// TestHintsOfRepositories checks the hints of errors about a missing branch or remote.
func TestHintsOfRepositories(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	dir := l.repository("r")
	s := l.store(dir)
	expect := func(what string, err, is error, want team.Hint) {
		t.Helper()
		want.Team, want.Dir = "demo", dir
		if got := team.HintsOf(err); !errors.Is(err, is) || len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("%s: got %v with the hints %+v, want %v with %+v", what, err, got, is, want)
		}
	}
	_, err := s.Restore(t.Context())
	expect("no branch", err, ErrNone, team.Hint{Action: team.ActFetchBranch, Name: "cadre/demo"})
	_, err = s.Remote(t.Context(), "")
	expect("no remote", err, ErrNoRemote, team.Hint{Action: team.ActAddRemote, Name: "origin"})
	l.git(dir, "remote", "add", "origin", l.dir)
	_, err = s.Remote(t.Context(), "other")
	expect("no such remote", err, ErrNoRemote, team.Hint{Action: team.ActAddRemote, Name: "other"})
	origin, err := s.Remote(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	commit := l.git(dir, "rev-parse", "HEAD")
	l.git(dir, "checkout", "-q", "--detach")
	_, err = s.PushHead(t.Context(), origin, commit)
	expect("no branch checked out", err, err, team.Hint{Action: team.ActPushCommit, Name: "origin", From: commit})
}

// TestDamage checks that any damage of a checkpoint is reported, and nothing is restored.
func TestDamage(t *testing.T) {
	t.Parallel()
	w := newWork(t, "T1")
	for range 120 {
		w.step(t)
	}
	good := &memory{}
	s := &Store{team: "demo", shelf: good}
	if _, err := s.Write(t.Context(), w, Beside{}); err != nil {
		t.Fatal(err)
	}
	brings(t, s, w)
	part := partFile(tasks, 1)
	if good.files[part] == nil || good.files[partFile(mailbox, 1)] == nil {
		t.Fatalf("there are no older parts, only %d files", len(good.files))
	}
	sheetOf := func(name string) string {
		for file := range good.files {
			if ending := filepath.Ext(name); strings.HasPrefix(file, strings.TrimSuffix(name, ending)+"-") {
				return file
			}
		}
		t.Fatalf("there is no %s", name)
		return ""
	}
	members, open := sheetOf(memberSheet), sheetOf(taskSheets+"0000.jsonl")
	replaced := func(file, from, to string) func(map[string][]byte) {
		return func(files map[string][]byte) {
			text := strings.Replace(string(files[file]), from, to, 1)
			if text == string(files[file]) {
				t.Errorf("%s has no %s", file, from)
			}
			files[file] = []byte(text)
		}
	}
	for what, c := range map[string]struct {
		damage func(map[string][]byte)
		says   string
	}{
		"a part is gone":     {func(f map[string][]byte) { delete(f, part) }, part + " is missing"},
		"a part is cut":      {func(f map[string][]byte) { f[part] = f[part][:len(f[part])-9] }, part},
		"a part is not JSON": {replaced(part, `{"seq"`, `("seq"`), part + ", line 1"},
		"a part is of later": {replaced(part, `{"seq":6`, `{"seq":699999`), "the checkpoint ends at"},
		"a log is cut": {func(f map[string][]byte) { f["mailbox.log"] = f["mailbox.log"][:10] },
			"mailbox.log has 10 bytes"},
		"a log is changed": {replaced("tasks.jsonl", "done", "fine"), "tasks.jsonl was damaged"},
		"the state is cut": {func(f map[string][]byte) { f[stateFile] = f[stateFile][:900] },
			stateFile + " cannot be read"},
		"a member is changed": {replaced(members, `"incarnation":1`, `"incarnation":7`), members + " was damaged"},
		"a sheet is gone":     {func(f map[string][]byte) { delete(f, open) }, open + " is missing"},
		"a sheet is of later": {replaced(stateFile, baseSheet, "restore/more.json"), "restore/more"},
		"the head is changed": {replaced(stateFile, `"team_id": "T1"`, `"team_id": "T9"`), "names the team T9"},
		"a sheet is a path":   {replaced(stateFile, baseSheet, "../../base.json"), "cannot be one"},
		"a sheet is a command": {replaced(stateFile, baseSheet,
			`restore/x.json\nreset refs/heads/main\nfrom cadre/demo\n`), "cannot be one"},
		"a digest is a command": {replaced(stateFile, `"sha256": "`, `"sha256": "\ndone\n`), "cannot be one"},
		"there are no sheets":   {replaced(stateFile, `"restore_from"`, `"from"`), "earlier version"},
		"it covers less": {replaced(stateFile, `"checkpoint_sequence": 7`, `"checkpoint_sequence": 6`),
			"the checkpoint ends at"},
		"it is of later": {replaced(stateFile, `"version": "2.0`, `"version": "3.0`),
			"install the cadre that it names"},
		"it is something else": {func(f map[string][]byte) { f[stateFile] = []byte(`{"name":"x"}`) },
			"not a file of cadre"},
		"it is of another team": {func(f map[string][]byte) {}, "a team named demo"},
	} {
		bad := &memory{files: map[string][]byte{}}
		for name, text := range good.files {
			bad.files[name] = slices.Clone(text)
		}
		c.damage(bad.files)
		name := "demo"
		if what == "it is of another team" {
			name = "other"
		}
		var damage *DamageError
		if r, err := (&Store{team: name, shelf: &wrapped{bad}}).Restore(t.Context()); !errors.As(err, &damage) ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: restored %t, %v", what, r != nil, err)
		}
	}
}

// wrapped gives the errors of load the form that real shelves give them.
type wrapped struct{ *memory }

func (w *wrapped) load(ctx context.Context) (*tip, error) {
	i, err := open(w.files[stateFile], [2][]byte{w.files[logs[mailbox].file], w.files[logs[tasks].file]})
	if err != nil {
		return nil, &DamageError{w.place(), err.Error()}
	}
	return &tip{"", i}, nil
}

// TestFolder checks that outside a repository the same files are kept beside the team.
func TestFolder(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	l := newLab(t)
	project := filepath.Join(l.dir, "plain")
	l.write(filepath.Join(project, "a.txt"), "")
	s, w := l.store(project), newWork(t, "T1")
	if !strings.Contains(s.Notice(), "not in a git repository") ||
		!strings.Contains(s.Notice(), filepath.Join(l.dir, "own", "checkpoint")) {
		t.Error(s.Notice())
	}
	if _, err := s.Restore(t.Context()); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
	other := l.store(project)
	for n := range 150 {
		w.step(t)
		if n%2 == 0 {
			s, other = other, s
		}
		if c := l.checkpoint(s, w); !c.Written || c.Commit != "" {
			t.Errorf("%+v", c)
		}
		if n%20 == 0 {
			brings(t, s, w)
		}
	}
	brings(t, s, w)
	if _, err := os.Stat(filepath.Join(l.dir, "own", "checkpoint",
		filepath.FromSlash(partFile(mailbox, 1)))); err != nil {
		t.Error(err)
	}
	sheets, err := filepath.Glob(filepath.Join(l.dir, "own", "checkpoint", "restore", "*.json*"))
	if err != nil || len(sheets) != 3 {
		t.Errorf("of all checkpoints there are %q, %v", sheets, err)
	}
	fresh := newWork(t, "T2")
	w.do(t, team.User, &team.SetStatus{Status: team.TeamAborted})
	l.checkpoint(s, w)
	l.checkpoint(other, fresh)
	brings(t, s, fresh)
}

// TestSize checks that state.json of a team of ten with a hundred tasks in progress has at most 50
// KB, however long its texts are and however much it has done.
func TestSize(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a team that has done much")
	}
	long := strings.Repeat("what to do, and how it went ", team.MaxDiff/28)
	base := team.Base{Top: "/d", Commit: strings.Repeat("0", 40)}
	for n := range 2000 {
		base.Dirty = append(base.Dirty, team.Fact{Path: fmt.Sprintf("some/folder/of/the/project/file%d.txt", n),
			SHA256: strings.Repeat("1", 64)})
	}
	w := &work{state: &team.State{}}
	w.do(t, team.User, &team.CreateTeam{TeamID: "T1", Name: "demo", Goal: long, Dir: "/d",
		LeadAgent: "claude", Base: base})
	names := []string{"ann", "bob", "cy", "dan", "eve", "fay", "gus", "hal", "ida"}
	for _, name := range names {
		w.do(t, "lead", &team.SpawnMember{Name: name, Agent: team.External, Role: "who-is-" + name, Prompt: long})
	}
	const closed = 5000
	for range closed {
		w.do(t, "lead", &team.CreateTask{Subject: "quickly done"})
		id := w.records[len(w.records)-1].Events[0].(*team.TaskCreated).Task.ID
		w.do(t, "ann", &team.ClaimTask{Task: id})
		w.do(t, "ann", &team.CompleteTask{Task: id, Result: "done"})
	}
	for n := range 100 {
		w.do(t, "lead", &team.CreateTask{Subject: fmt.Sprint(n, " ", long[:200]), Description: long})
		id, name := fmt.Sprint(closed+n+1), names[n%len(names)]
		w.do(t, "lead", &team.SendMessage{To: name, Body: long})
		w.do(t, name, &team.ClaimTask{Task: id})
		w.do(t, team.User, &team.SaveWork{Task: id, Saved: team.Saved{Member: name, Diff: long, Output: long}})
	}
	shelf := &memory{}
	s := &Store{team: "demo", shelf: shelf}
	if _, err := s.Write(t.Context(), w, Beside{}); err != nil {
		t.Fatal(err)
	}
	brings(t, s, w)
	if n := len(shelf.files[stateFile]); n > 50<<10 {
		t.Errorf("%s has %d bytes", stateFile, n)
	}
}

// TestSheetsAreShared checks that unchanged parts are not written again, even by a process that
// knows nothing yet.
func TestSheetsAreShared(t *testing.T) {
	t.Parallel()
	w, shelf := newWork(t, "T1"), &memory{}
	for n := range 4 {
		if n == 3 {
			w.do(t, "ann", &team.SetNote{Key: "plan", Text: "first"})
		} else if n > 0 {
			w.do(t, "ann", &team.SendMessage{To: "bob", Body: "hello"})
		}
		if n == 1 {
			w.do(t, team.Host("h1"), &team.ReceiveMessages{Member: "bob"})
		}
		if _, err := (&Store{team: "demo", shelf: shelf}).Write(t.Context(), w, Beside{}); err != nil {
			t.Fatal(err)
		}
		var wrote []string
		for name := range shelf.wrote {
			wrote = append(wrote, inNames.ReplaceAllString(name, ""))
		}
		slices.Sort(wrote)
		want := [][]string{
			{"README.md", "mailbox.log", "restore/base.json", "restore/members.jsonl", "restore/tasks/0000.jsonl",
				"restore/team.json", "state.json", "tasks.jsonl"},
			{"README.md", "mailbox.log", "restore/members.jsonl", "restore/team.json", "state.json", "tasks.jsonl"},
			{"README.md", "mailbox.log", "restore/members.jsonl", "restore/messages/0000.jsonl", "restore/team.json",
				"state.json", "tasks.jsonl"},
			{"README.md", "mailbox.log", "restore/notes/0000.jsonl", "restore/team.json", "state.json", "tasks.jsonl"},
		}[n]
		if !slices.Equal(wrote, want) {
			t.Errorf("checkpoint %d wrote %q", n, wrote)
		}
	}
}

// TestGrowth checks that finished work does not make checkpoints grow.
func TestGrowth(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a team that has done much")
	}
	w, shelf := newWork(t, "T1"), &memory{}
	s := &Store{team: "demo", shelf: shelf}
	bytesOf := func(checkpoints int) (n int) {
		for range checkpoints {
			w.step(t)
			if _, err := s.Write(t.Context(), w, Beside{}); err != nil {
				t.Fatal(err)
			}
			for _, text := range shelf.wrote {
				n += len(text)
			}
		}
		return n
	}
	bytesOf(lastCompleted)
	const some = 100 // enough for the newest parts of the logs to have every length
	early := bytesOf(some)
	for range 3000 {
		w.step(t)
	}
	bytesOf(1)
	if late := bytesOf(some); late > early+early/5 {
		t.Errorf("%d checkpoints have %d bytes, and had %d at first", some, late, early)
	}
	if q := s.last.image.doc.Queue; q.Count != 3000+2*some+lastCompleted+1 || len(q.Completed) != lastCompleted ||
		q.Completed[lastCompleted-1] != fmt.Sprint(q.Count+2) {
		t.Errorf("%d are completed, the last %v", q.Count, q.Completed)
	}
	brings(t, s, w)
}

// stuttering is a folder whose writer is killed after each of its files.
type stuttering struct {
	*folder
	t     *testing.T
	moved int // how often the newest part of a log was found among the older ones
}

func (s *stuttering) save(ctx context.Context, on *tip, next *image, files map[string][]byte,
	fresh bool) (string, error) {
	steps := order(files)
	for n := range steps {
		if err := s.put(steps[n], files[steps[n]]); err != nil {
			return "", err
		}
		there, err := s.load(ctx)
		switch {
		case err != nil:
			s.t.Fatalf("after %v: %v", steps[:n+1], err)
		case n < len(steps)-1 && (there == nil) != (on == nil), on != nil && n < len(steps)-1 && there.id != on.id:
			s.t.Fatalf("after %v: %+v is there, not %+v", steps[:n+1], there, on)
		case n < len(steps)-1 && len(files) > 3:
			s.moved++
		}
	}
	there, err := s.load(ctx)
	if err != nil {
		return "", err
	}
	return there.id, nil
}

// TestFolderAfterEachStep checks that between any two files of a checkpoint the last one is there,
// complete.
func TestFolderAfterEachStep(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	shelf := &stuttering{folder: &folder{filepath.Join(t.TempDir(), "checkpoint")}, t: t}
	s, w := &Store{team: "demo", shelf: shelf}, newWork(t, "T1")
	for range 120 {
		w.step(t)
		if _, err := s.Write(t.Context(), w, Beside{}); err != nil {
			t.Fatal(err)
		}
	}
	brings(t, s, w)
	if shelf.moved == 0 {
		t.Error("no part ever became an older one")
	}
}
