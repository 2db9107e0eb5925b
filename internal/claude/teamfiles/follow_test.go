package teamfiles

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/claude/projection"
	"cadre/internal/claude/teamfiles/teamfilestest"
)

// view is the knowledge of a listener that got every change.
type view struct {
	seen, gone bool
	members    map[string]Member
	tasks      map[string]Task
	waiting    map[string][]Entry
	sent       map[string]int
	damaged    []string
	whole      bool
}

func newView() *view {
	return &view{members: map[string]Member{}, tasks: map[string]Task{}, waiting: map[string][]Entry{},
		sent: map[string]int{}}
}

// take applies a change. It returns an error if the change does not follow from the earlier ones.
func (v *view) take(c Change) error {
	switch c := c.(type) {
	case *TeamSeen:
		if v.seen {
			return fmt.Errorf("seen twice")
		}
		v.seen = true
	case *TeamGone:
		v.gone = true
	case *MemberJoined:
		if _, known := v.members[c.Member.Name]; known {
			return fmt.Errorf("%s joined twice", c.Member.Name)
		}
		v.members[c.Member.Name] = c.Member
	case *MemberChanged:
		if !reflect.DeepEqual(v.members[c.Member.Name], c.Before) {
			return fmt.Errorf("%s was not %+v", c.Member.Name, c.Before)
		}
		v.members[c.Member.Name] = c.Member
	case *MemberLeft:
		delete(v.members, c.Member.Name)
	case *TaskAdded:
		if _, known := v.tasks[c.Task.ID]; known {
			return fmt.Errorf("task %s was added twice", c.Task.ID)
		}
		v.tasks[c.Task.ID] = c.Task
	case *TaskChanged:
		if !reflect.DeepEqual(v.tasks[c.Task.ID], c.Before) {
			return fmt.Errorf("task %s was not %+v", c.Task.ID, c.Before)
		}
		v.tasks[c.Task.ID] = c.Task
	case *TaskRemoved:
		delete(v.tasks, c.Task.ID)
	case *TasksSwept:
		clear(v.tasks)
	case *Sent:
		v.sent[c.To+" "+c.Entry.Key()]++
		v.waiting[c.To] = append(v.waiting[c.To], c.Entry)
	case *Delivered:
		i := slices.IndexFunc(v.waiting[c.To], func(e Entry) bool { return e.Key() == c.Entry.Key() })
		if i < 0 {
			return fmt.Errorf("%+v was not sent before", c.Entry)
		}
		v.waiting[c.To] = slices.Delete(v.waiting[c.To], i, i+1)
	case *Whole:
		if v.whole {
			return fmt.Errorf("everything is there twice")
		}
		v.whole = true
		if ids := slices.SortedFunc(maps.Keys(v.tasks), byNumber); !slices.Equal(ids, c.Tasks) {
			return fmt.Errorf("there are the tasks %v, and %v were told", c.Tasks, ids)
		}
		for name, waiting := range c.Waiting {
			if len(waiting) != len(v.waiting[name]) {
				return fmt.Errorf("for %s there wait %+v, and %+v were told", name, waiting, v.waiting[name])
			}
		}
	case *Damaged:
		v.damaged = append(v.damaged, c.Err.Path)
	}
	return nil
}

// check compares the view with the files.
func (v *view) check(t *testing.T, tm *Team) {
	t.Helper()
	ctx := soon(t)
	c, err := tm.Config(ctx)
	if err != nil || len(c.Members) != len(v.members) {
		t.Errorf("the roster is %+v, %v; told was %+v", c.Members, err, v.members)
	}
	for _, m := range c.Members {
		if !reflect.DeepEqual(m, v.members[m.Name]) {
			t.Errorf("%+v was told as %+v", m, v.members[m.Name])
		}
	}
	tasks, err := tm.Tasks(ctx)
	if err != nil || len(tasks) != len(v.tasks) {
		t.Errorf("the tasks are %+v, %v; told was %+v", tasks, err, v.tasks)
	}
	for _, task := range tasks {
		if !reflect.DeepEqual(task, v.tasks[task.ID]) {
			t.Errorf("%+v was told as %+v", task, v.tasks[task.ID])
		}
	}
	for name, told := range v.waiting {
		waiting, err := tm.Waiting(ctx, name)
		if err != nil || len(waiting) != len(told) {
			t.Errorf("for %s there wait %+v, %v; told was %+v", name, waiting, err, told)
		}
	}
}

// TestRecordings replays the files of real teams, of both generations. After each change the
// follower's view matches the files, no message is reported twice or missed, and a half-written
// file does not count as damage.
func TestRecordings(t *testing.T) {
	t.Parallel()
	for _, version := range teamfilestest.Versions {
		t.Run(version, func(t *testing.T) {
			claude := t.TempDir()
			var f *follower
			v := newView()
			in := map[string]bool{} // every entry that was ever in an inbox
			for n, c := range teamfilestest.Recording(t, version) {
				c.Play(t, claude)
				if f == nil {
					name := c.Roster()
					if name == "" {
						continue
					}
					tm, err := Open(claude, name)
					if err != nil {
						t.Fatal(err)
					}
					f = newFollower(tm)
				}
				if dir, file := path.Split(c.Path); strings.HasSuffix(dir, f.team.Name+"/inboxes/") &&
					strings.HasSuffix(file, ".json") {
					var entries []Entry
					json.Unmarshal([]byte(c.Content), &entries)
					for _, e := range entries {
						in[strings.TrimSuffix(file, ".json")+" "+e.Key()] = true
					}
				}
				f.lost = time.Time{} // as if enough time had passed between two changes
				f.look(nil, true)
				for _, told := range f.changes {
					if err := v.take(told); err != nil {
						t.Fatalf("change %d, %s: %v", n, c.Path, err)
					}
				}
				f.changes = nil
				if f.over {
					break
				}
				if n%20 == 0 && len(f.retry) == 0 {
					v.check(t, f.team)
				}
			}
			if !v.gone || !v.whole || len(v.damaged) > 0 {
				t.Errorf("the team is gone: %t; damaged are %v", v.gone, v.damaged)
			}
			if len(in) == 0 || len(in) != len(v.sent) {
				t.Errorf("of %d messages %d were told", len(in), len(v.sent))
			}
			for key, n := range v.sent {
				if n != 1 {
					t.Errorf("%s was told %d times", key, n)
				}
			}
		})
	}
}

// TestWhole checks that a follower which starts late gets everything, and then a Whole. An
// unreadable task is listed in it, and an unreadable inbox is not.
func TestWhole(t *testing.T) {
	t.Parallel()
	tm, _ := newTeam(t, "ann", "bob")
	ctx := soon(t)
	for range 3 {
		if _, err := tm.CreateTask(ctx, Task{Subject: "s", Status: "pending"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, to := range []string{"ann", "bob"} {
		if err := tm.Send(ctx, to, Entry{From: Lead, Text: "hello"}); err != nil {
			t.Fatal(err)
		}
	}
	write(t, tm.task("2"), "{")
	write(t, tm.inbox("bob"), "[")
	if err := os.Mkdir(tm.task("4"), 0o700); err != nil { // it cannot be read as a file
		t.Fatal(err)
	}
	v := newView()
	var whole *Whole
	for _, c := range tm.Follow(ctx) {
		if w, ok := c.(*Whole); ok {
			whole = w
			break
		}
		if err := v.take(c); err != nil {
			t.Error(err)
		}
	}
	if whole == nil || !slices.Equal(whole.Tasks, []string{"1", "2", "3", "4"}) || len(v.tasks) != 2 ||
		len(v.damaged) != 3 {
		t.Errorf("told were %+v, and then that it is %+v", v, whole)
	}
	if len(whole.Waiting["ann"]) != 1 || whole.Waiting["ann"][0].Text != "hello" {
		t.Errorf("for ann there wait %+v", whole.Waiting["ann"])
	}
	if waiting, ok := whole.Waiting["bob"]; ok {
		t.Errorf("for bob there wait %+v", waiting)
	}
}

// TestSweeping removes a folder of tasks file by file: a look in between does not count the tasks
// as deleted. A task that was deleted is reported once the folder no longer changes.
func TestSweeping(t *testing.T) {
	t.Parallel()
	tm, _ := newTeam(t)
	for range 3 {
		if _, err := tm.CreateTask(soon(t), Task{Subject: "s", Status: "pending"}); err != nil {
			t.Fatal(err)
		}
	}
	f := newFollower(tm)
	said := func() (words []string) {
		f.changes = nil
		f.look(nil, true)
		for _, c := range f.changes {
			words = append(words, strings.TrimPrefix(fmt.Sprintf("%T", c), "*teamfiles."))
		}
		return words
	}
	said()
	if err := tm.DeleteTask(soon(t), "2"); err != nil {
		t.Fatal(err)
	}
	if words := said(); len(words) > 0 || len(f.retry) == 0 {
		t.Errorf("just now it tells %v, and looks again at %v", words, f.retry)
	}
	f.lost = f.lost.Add(-sweeping)
	if words := said(); !slices.Equal(words, []string{"TaskRemoved"}) {
		t.Errorf("later it tells %v", words)
	}
	for _, id := range []string{"1", "3"} {
		if err := os.Remove(tm.task(id)); err != nil {
			t.Fatal(err)
		}
		if words := said(); len(words) > 0 {
			t.Errorf("while the folder goes it tells %v", words)
		}
	}
	if err := os.RemoveAll(tm.tasks); err != nil {
		t.Fatal(err)
	}
	if words := said(); !slices.Equal(words, []string{"TasksSwept"}) {
		t.Errorf("in the end it tells %v", words)
	}
}

// TestCreatedAgain checks that a team that was removed and created again between two looks is
// reported again completely, even if its files are equal.
func TestCreatedAgain(t *testing.T) {
	t.Parallel()
	claude := t.TempDir()
	found := func(created int64) *Team {
		tm, err := Found(claude, projection.Config{Name: "fx", CreatedAt: created, Members: []Member{{Name: "ann"}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tm.CreateTask(soon(t), Task{Subject: "s", Status: "pending"}); err != nil {
			t.Fatal(err)
		}
		return tm
	}
	tm := found(1)
	f := newFollower(tm)
	told := func() {
		t.Helper()
		f.changes = nil
		f.look([]string{tm.config()}, false)
		v := newView()
		for _, c := range f.changes {
			if err := v.take(c); err != nil {
				t.Error(err)
			}
		}
		if v.check(t, tm); !v.seen || !v.whole || v.gone || len(v.tasks) != 1 {
			t.Errorf("told is %+v", v)
		}
	}
	f.recreated = true // as at its first look
	told()
	if err := tm.Remove(); err != nil {
		t.Fatal(err)
	}
	found(2)
	told()
}

// TestFollow checks that a follower sees the team appear, reports each change, reports damage once,
// and ends with the team.
func TestFollow(t *testing.T) {
	t.Parallel()
	tm, claude := newTeam(t, "ann")
	ctx, cancel := context.WithTimeout(soon(t), 30*time.Second)
	defer cancel()
	changes := make(chan Change, 64)
	go func() {
		defer close(changes)
		for _, c := range tm.Follow(ctx) {
			changes <- c
		}
	}()
	expect := func(what string, is func(Change) bool) {
		t.Helper()
		for c := range changes {
			if is(c) {
				return
			}
			if _, over := c.(*TeamGone); over {
				break
			}
		}
		t.Fatalf("it does not tell %s", what)
	}
	expect("that ann is there", func(c Change) bool { m, ok := c.(*MemberJoined); return ok && m.Member.Name == "ann" })
	if err := tm.Send(ctx, "ann", Entry{From: Lead, Text: "hello"}); err != nil {
		t.Fatal(err)
	}
	expect("the message", func(c Change) bool {
		m, ok := c.(*Sent)
		return ok && m.To == "ann" &&
			m.Entry.Text == "hello"
	})
	id, err := tm.CreateTask(ctx, Task{Subject: "s", Status: "pending"})
	if err != nil {
		t.Fatal(err)
	}
	expect("the task", func(c Change) bool { a, ok := c.(*TaskAdded); return ok && a.Task.ID == id })
	write(t, tm.inbox("ann"), `[{"from":"x`)
	expect("the damage", func(c Change) bool { d, ok := c.(*Damaged); return ok && d.Err.Path == tm.inbox("ann") })
	write(t, tm.inbox("ann"), "[]")
	expect("that it is mended", func(c Change) bool {
		if _, again := c.(*Damaged); again {
			t.Error("it tells the same damage again")
		}
		d, ok := c.(*Delivered)
		return ok && d.To == "ann"
	})
	roster := content(t, tm.config())
	write(t, tm.config(), "{}")
	expect("that the roster is damaged", func(c Change) bool {
		switch c.(type) {
		case *TeamSeen, *MemberLeft:
			t.Errorf("it takes the damaged roster for one: %T", c)
		}
		d, ok := c.(*Damaged)
		return ok && d.Err.Path == tm.config()
	})
	write(t, tm.config(), roster)
	os.RemoveAll(filepath.Join(claude, "tasks"))
	expect("that the tasks are swept away", func(c Change) bool { _, ok := c.(*TasksSwept); return ok })
	if err := tm.Remove(); err != nil {
		t.Fatal(err)
	}
	gone := false
	for c := range changes {
		_, gone = c.(*TeamGone)
	}
	if !gone {
		t.Error("the last change is not that the team is gone")
	}
}
