package catalog

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"cadre/internal/layout"
	"cadre/internal/sys/proc"
)

// TestStrangers lists the teams that Claude Code runs by itself, without those that cadre projects
// there, and notices what changes.
func TestStrangers(t *testing.T) {
	home := layout.Home{Claude: t.TempDir()}
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(home.Claude, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var s Strangers
	if all := s.List(t.Context(), layout.Home{Claude: filepath.Join(home.Claude, "none")}); len(all) != 0 {
		t.Errorf("a folder that does not exist has %v", all)
	}
	write("teams/fx/config.json", `{"name":"fx","description":"fix it","createdAt":1,"members":[{"name":"team-lead"},{"name":"ann"}]}`)
	write("teams/ours/config.json", `{"cadre":{"teamId":"x-1","createdAt":1},"name":"ours","members":[]}`)
	write("teams/broken/config.json", `{"name":`)
	write("tasks/fx/1.json", `{"id":"1","subject":"a","status":"completed","blocks":[],"blockedBy":[]}`)
	write("tasks/fx/2.json", `{"id":"2","subject":"b","status":"pending","blocks":[],"blockedBy":[]}`)
	find := func(name string) *Stranger {
		for _, one := range s.List(t.Context(), home) {
			if one.Name == name {
				return &one
			}
		}
		return nil
	}
	fx := find("fx")
	if fx == nil || fx.Goal != "fix it" || fx.Teammates != 1 || fx.Tasks["completed"] != 1 ||
		fx.Tasks["pending"] != 1 || fx.UpdatedAt == 0 || fx.Err != nil {
		t.Errorf("fx is %+v", fx)
	}
	if !fx.Active {
		t.Error("a team that has just changed is not active")
	}
	old := time.Now().Add(-time.Hour)
	for _, path := range []string{"teams/fx/config.json", "tasks/fx"} {
		if err := os.Chtimes(filepath.Join(home.Claude, path), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if fx = find("fx"); fx.Active {
		t.Error("a team that has not changed for an hour is active")
	}
	if start, err := proc.StartTime(os.Getpid()); err != nil {
		t.Error(err)
	} else if _, ticks, known := strings.Cut(start, ":"); known &&
		runtime.GOOS == "linux" { // as Claude Code writes it there
		for _, lead := range []struct {
			start  string
			active bool
		}{{ticks, true}, {ticks + "1", false}} {
			write("teams/fx/config.json", fmt.Sprintf(`{"name":"fx","description":"fix it","leadProcess":{"pid":%d,"procStart":%q},
				"members":[{"name":"team-lead"},{"name":"ann"}]}`, os.Getpid(), lead.start))
			if err := os.Chtimes(filepath.Join(home.Claude, "teams/fx/config.json"), old,
				old.Add(-time.Minute)); err != nil {
				t.Fatal(err)
			}
			s = Strangers{}
			if fx = find("fx"); fx.Active != lead.active {
				t.Errorf("with a lead that started at %s it is active: %v", lead.start, fx.Active)
			}
		}
	}
	if one := find("ours"); one != nil {
		t.Errorf("a projection is listed: %+v", one)
	}
	if one := find("broken"); one == nil || one.Err == nil {
		t.Errorf("a team that cannot be read is %+v", one)
	}
	write("tasks/fx/3.json", `{"id":"3","subject":"c","status":"in_progress","blocks":[],"blockedBy":[]}`)
	later := time.Now().Add(time.Second)
	if err := os.Chtimes(filepath.Join(home.Claude, "tasks", "fx"), later, later); err != nil {
		t.Fatal(err)
	}
	if fx = find("fx"); fx == nil || fx.Tasks["in_progress"] != 1 {
		t.Errorf("after a new task, fx is %+v", fx)
	}
	if err := os.RemoveAll(filepath.Join(home.Claude, "teams", "fx")); err != nil {
		t.Fatal(err)
	}
	if fx = find("fx"); fx != nil {
		t.Errorf("a team that was removed is %+v", fx)
	}
}
