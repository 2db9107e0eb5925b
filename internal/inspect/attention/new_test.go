package attention

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cadre/internal/journal"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// TestWaitNew checks that what waits already does not end the wait for something new, and that only
// what is new is returned.
func TestWaitNew(t *testing.T) {
	home := layout.Home{Root: filepath.Join(t.TempDir(), "cadre")}
	err := home.Create("demo", []team.Command{{ID: replica.NewID(), Actor: team.User, At: replica.Now(),
		Body: &team.CreateTeam{TeamID: replica.NewID(), Name: "demo", Dir: t.TempDir()}}})
	if err != nil {
		t.Fatal(err)
	}
	dir, err := home.Folder("demo")
	if err != nil {
		t.Fatal(err)
	}
	rep, err := new(replica.Shared).Open(t.Context(), dir, nil, func(report func(string)) (journal.Journal, error) {
		return home.OpenFolder(dir, report)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer rep.Close()
	asks := func(subject string) {
		t.Helper()
		_, err := rep.Do(t.Context(), team.Command{Actor: team.User, Body: &team.CreateTask{Subject: subject,
			Owner: team.DefaultLead}})
		if err != nil {
			t.Fatal(err)
		}
	}
	follower := func() *Follower { return &Follower{Home: home, Log: func(text string) { t.Log(text) }} }
	asks("old")

	late := errors.New("nothing new")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, late)
	defer cancel()
	f := follower()
	if items, err := f.WaitNew(ctx); !errors.Is(err, late) {
		t.Errorf("with nothing new it returns %+v, %v", items, err)
	}
	f.Close()

	f = follower()
	defer f.Close()
	type result struct {
		items []Item
		err   error
	}
	returned := make(chan result, 1)
	go func() {
		items, err := f.WaitNew(t.Context())
		returned <- result{items, err}
	}()
	for n := 0; ; n++ { // the first of them may come before the first look
		select {
		case r := <-returned:
			if r.err != nil || len(r.items) == 0 {
				t.Fatalf("%+v, %v", r.items, r.err)
			}
			for _, i := range r.items {
				if strings.HasSuffix(i.Text, " old") {
					t.Errorf("it returns %q", i.Text)
				}
			}
			return
		case <-time.After(10 * time.Millisecond):
			// one at a time: a list shows only some of many tasks that wait
			if n > 0 {
				if _, err := rep.Do(t.Context(), team.Command{Actor: team.User,
					Body: &team.DeleteTask{Task: fmt.Sprint(n + 1)}}); err != nil {
					t.Fatal(err)
				}
			}
			asks(fmt.Sprint("new ", n))
		}
	}
}
