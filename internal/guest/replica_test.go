package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"cadre/internal/claude/teamfiles"
	"cadre/internal/team"
)

type jsonRaw = json.RawMessage

func atoi(s string) int { n, _ := strconv.Atoi(s); return n }

func (s *stage) replica(name string) *replica {
	return &replica{team: s.team, self: self{name: name, agent: team.Codex, dir: s.claude, mode: "default"},
		answered: func(bool) {}}
}

// TestClaims lets many members claim the next task at once. Each task goes to one member, after its
// blockers are done, and only its owner can complete it.
func TestClaims(t *testing.T) {
	t.Parallel()
	names := []string{"ann", "bob", "eve", "tim"}
	s := newStage(t, names...)
	const tasks = 24
	maker := s.replica("ann")
	for n := range tasks {
		body := &team.CreateTask{Subject: fmt.Sprint("task ", n+1)}
		if n%3 == 2 {
			body.BlockedBy = []string{strconv.Itoa(n)}
		}
		if r, err := maker.Do(s.ctx, body); err != nil || r.Events[0].(*team.TaskCreated).Task.ID != strconv.Itoa(n+1) {
			t.Fatal(r, err)
		}
	}
	var mu sync.Mutex
	done := map[string]bool{}
	owner := map[string]string{}
	var all sync.WaitGroup
	for _, name := range names {
		d := s.replica(name)
		all.Go(func() {
			for {
				r, err := d.Do(s.ctx, &team.ClaimTask{})
				if code := team.CodeOf(err); code == team.Nothing {
					mu.Lock()
					all := len(done) == tasks
					mu.Unlock()
					if all {
						return
					}
					continue // the remaining tasks wait for others
				}
				if err != nil {
					t.Error(err)
					return
				}
				id := r.Events[0].(*team.TaskClaimed).Task
				claimed, err := s.team.Task(s.ctx, id)
				for _, blocker := range claimed.BlockedBy {
					if before, err2 := s.team.Task(s.ctx, blocker); err != nil || err2 != nil ||
						before.Status != "completed" {
						t.Errorf("task %s was claimed before task %s was done: %v, %v", id, blocker, err, err2)
					}
				}
				mu.Lock()
				if before := owner[id]; before != "" {
					t.Errorf("task %s went to %s and to %s", id, before, name)
				}
				owner[id] = name
				mu.Unlock()
				other := names[(atoi(id)+1)%len(names)]
				if _, err := s.replica(other).Do(s.ctx, &team.CompleteTask{Task: id}); other != name &&
					team.CodeOf(err) != team.Conflict {
					t.Errorf("another member completes task %s: %v", id, err)
				}
				if _, err := d.Do(s.ctx, &team.CompleteTask{Task: id, Result: "by " + name}); err != nil &&
					team.CodeOf(err) != team.Conflict {
					t.Error(err)
				}
				mu.Lock()
				done[id] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
	list, err := s.team.Tasks(s.ctx)
	if err != nil || len(list) != tasks {
		t.Fatal(len(list), err)
	}
	for _, task := range list {
		if task.Status != "completed" || task.Owner != owner[task.ID] {
			t.Errorf("task %+v went to %s", task, owner[task.ID])
		}
	}
}

// TestReplicaWrites checks that a member's changes are written as Claude Code writes them, and that
// nothing else in the files changes.
func TestReplicaWrites(t *testing.T) {
	s := newStage(t, "ann", "bob")
	d := s.replica("ann")
	do := func(body team.Body) {
		t.Helper()
		if _, err := d.Do(s.ctx, body); err != nil {
			t.Fatal(err)
		}
	}
	// Two tasks of Claude Code's own exist already, and one number was deleted.
	for range 3 {
		if _, err := s.team.CreateTask(s.ctx, teamfiles.Task{Subject: "theirs", Status: "pending"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.team.DeleteTask(s.ctx, "2"); err != nil {
		t.Fatal(err)
	}
	do(&team.CreateTask{Subject: "Port", Description: "it", Owner: "bob", BlockedBy: []string{"1"}, Priority: "high",
		Metadata: map[string]jsonRaw{"k": jsonRaw(`[1]`)}})
	waiting, err := s.team.Waiting(s.ctx, "bob")
	if err != nil || len(waiting) != 1 {
		t.Fatal(waiting, err)
	}
	if a, ok := teamfiles.Parse(waiting[0].Text).(*teamfiles.Assignment); !ok || a.TaskID != "4" ||
		a.Subject != "Port" || a.AssignedBy != "ann" || waiting[0].From != "ann" {
		t.Errorf("bob gets %+v", waiting[0])
	}
	subject := "The port"
	do(&team.UpdateTask{Task: "4", Subject: &subject, AddBlocks: []string{"3"}, RemoveBlockedBy: []string{"1"},
		Metadata: map[string]jsonRaw{"k": jsonRaw("null"), "n": jsonRaw("2")}})
	task, err := s.team.Task(s.ctx, "4")
	data, _ := json.Marshal(task)
	if want := `{"id":"4","subject":"The port","description":"it","owner":"bob","status":"pending","blocks":["3"],"blockedBy":[],"metadata":{"n":2,"priority":"high"}}`; err != nil || string(data) != want {
		t.Errorf("it is %s, %v", data, err)
	}
	do(&team.ClaimTask{Task: "1"})
	do(&team.ReleaseTask{Task: "1", Reason: "no"})
	do(&team.Broadcast{Body: "hello\nall"})
	for _, name := range []string{teamfiles.Lead, "bob"} {
		mail, err := s.team.Waiting(s.ctx, name)
		if last := mail[len(mail)-1]; err != nil || last.Text != "hello\nall" || last.Summary != "hello" {
			t.Errorf("%s has %+v, %v", name, mail, err)
		}
	}
	if mail, _ := s.team.Inbox(s.ctx, "ann"); len(mail) != 0 {
		t.Errorf("ann wrote to itself: %+v", mail)
	}
	bobs := filepath.Join(s.claude, "teams", "demo", "inboxes", "bob.json")
	if err := os.WriteFile(bobs, []byte("[{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Do(s.ctx, &team.Broadcast{Body: "and this"}); err == nil || !strings.Contains(err.Error(),
		"not to bob; do not send it to the others again") {
		t.Errorf("the error does not name the missing recipients: %v", err)
	}
	if mail, err := s.team.Waiting(s.ctx, teamfiles.Lead); err != nil || mail[len(mail)-1].Text != "and this" {
		t.Errorf("the lead has %+v, %v", mail, err)
	}
	for _, c := range []struct {
		body team.Body
		code team.Code
	}{
		{&team.ClaimTask{Task: "2"}, team.NotFound}, {&team.ClaimTask{Task: "3"}, team.NotReady},
		{&team.ClaimTask{Task: "4"}, team.Conflict},
		{&team.SendMessage{To: "zoe", Body: "x"}, team.NotFound},
		{&team.SpawnMember{Name: "zoe", Agent: team.Claude}, team.Denied},
		{&team.AnswerShutdown{Request: "x", Approved: true}, team.Conflict},
		{&team.RequestShutdown{Member: "bob"}, team.Denied},
	} {
		if _, err := d.Do(s.ctx, c.body); team.CodeOf(err) != c.code {
			t.Errorf("%T: %v, not %s", c.body, err, c.code)
		}
	}
	if err := s.team.Leave(s.ctx, "ann"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Do(s.ctx, &team.ClaimTask{}); !errors.Is(err, errNotListed) {
		t.Errorf("a member off the roster may act: %v", err)
	}
}

// TestChoose checks the configuration file: the first entry that matches applies, and every mistake
// is named.
func TestChoose(t *testing.T) {
	s := newStage(t)
	file := s.claude + ".yaml"
	known := func(name string) bool {
		return strings.Contains(" claude codex gemini shell external ", " "+name+" ") || strings.HasPrefix(name, "acp:")
	}
	choose := func(text, name, kind string) (Choice, error) {
		t.Helper()
		if text != "" {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return Choose(file, name, kind, known)
	}
	for _, c := range [][3]string{{"ann", "general-purpose", "claude"}, {"codex", "x", "codex"},
		{"codex-2", "x", "codex"}, {"ann", "gemini", "gemini"}, {"external", "x", "claude"},
		{"acp:rm", "acp:rm", "claude"}} {
		if got, err := choose("", c[0], c[1]); err != nil || got.Agent != c[2] {
			t.Errorf("%s of kind %s is %+v, %v", c[0], c[1], got, err)
		}
	}
	rules := "teammates:\n  - name: build-*\n    agent: shell\n  - type: reviewer\n    agent: gemini\n    model: m\n " +
		"   env: {B: b, A: a}\n  - agent: codex\n"
	for _, c := range []struct{ name, kind, agent string }{{"build-1", "reviewer", "shell"},
		{"ann", "reviewer", "gemini"}, {"claude", "x", "codex"}} {
		if got, err := choose(rules, c.name, c.kind); err != nil || got.Agent != c.agent {
			t.Errorf("%s of kind %s is %+v, %v", c.name, c.kind, got, err)
		}
	}
	if got, _ := choose(rules, "ann", "reviewer"); got.Model != "m" || strings.Join(got.Env, " ") != "A=a B=b" {
		t.Errorf("it is %+v", got)
	}
	if got, err := choose("# nothing yet\n", "ann", "x"); err != nil || got.Agent != "claude" {
		t.Errorf("by an empty file it is %+v, %v", got, err)
	}
	for text, word := range map[string]string{"teammates: [{name: x}]": "has no agent",
		"teammates: [{agent: nobody}]":           `unknown agent "nobody"`,
		"teammates: [{agent: codex, name: '['}]": "matches any characters",
		"teammates: [{agnet: codex}]":            "agnet", "teammates: {": file} {
		if _, err := choose(text, "ann", "x"); err == nil || !strings.Contains(err.Error(), word) ||
			!strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
