package supervisor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cadre/internal/engine"
	"cadre/internal/inspect/attention"
	"cadre/internal/inspect/catalog"
	"cadre/internal/layout"
	"cadre/internal/team"
)

// TestDecide holds what a supervisor does with a team, by what was recorded and found.
func TestDecide(t *testing.T) {
	of := team.Team{ID: "demo-1", Name: "demo"}
	added := Entry{ID: "demo-1", Start: true}
	for _, c := range []struct {
		name  string
		entry Entry
		found attention.Found
		want  deed
		why   string
	}{
		{"a process hosts it", Entry{}, attention.Found{Team: of, Overview: catalog.Overview{Hosted: true}}, runs, ""},
		{"a process leads it", added, attention.Found{Team: of, Overview: catalog.Overview{Led: true}}, runs, ""},
		{"its host died", Entry{}, attention.Found{Team: of, Overview: catalog.Overview{Dormant: true}}, resumes, ""},
		{"a person paused it", Entry{},
			attention.Found{Team: of, Rests: true, Overview: catalog.Overview{Dormant: true}},
			rests, "paused"},
		{"it was paused, and then added", added,
			attention.Found{Team: of, Rests: true, Overview: catalog.Overview{Dormant: true}},
			resumes, ""},
		{"its budget is spent", added, attention.Found{Team: of, Overview: catalog.Overview{Dormant: true,
			Exhausted: "tokens"}},
			rests, "its token budget is spent"},
		{"its budget of time is spent, and nothing recorded it yet", added,
			attention.Found{Team: team.Team{ID: "demo-1",
				Budget: team.Budget{Time: time.Second}}, Overview: catalog.Overview{Dormant: true}}, rests,
			"time budget is spent"},
		{"another machine has it", added, attention.Found{Team: of, Overview: catalog.Overview{Dormant: true,
			Released: 1}},
			rests, "another machine"},
		{"its directory is missing", added, attention.Found{Team: of, Overview: catalog.Overview{Dormant: true},
			Items: []team.Item{{Kind: team.ItemDirectory, Text: "The directory is missing."}}}, rests,
			"directory is missing"},
		{"its consolidation was interrupted", added,
			attention.Found{Team: of, Overview: catalog.Overview{Dormant: true},
				Items: []team.Item{{Kind: team.ItemInterrupted, Text: "The consolidation was interrupted."}}}, rests,
			"interrupted"},
		{"its files are damaged", added, attention.Found{}, rests, "damaged"},
		{"it has external members alone", Entry{}, attention.Found{Team: of, Overview: catalog.Overview{Teammates: 2}},
			rests, "nothing to run"},
		{"it has external members alone, and was added", added,
			attention.Found{Team: of, Overview: catalog.Overview{Teammates: 2}},
			rests, "nothing to run"},
		{"an external member is there, and no process runs the others", Entry{}, attention.Found{Team: of,
			Overview: catalog.Overview{Sessions: 1}}, rests, "nothing to run"},
	} {
		t.Run(c.name, func(t *testing.T) {
			do, why := decide(c.entry, &c.found, nil, 2000)
			if do != c.want || !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
				t.Errorf("got %d, %q", do, why)
			}
		})
	}
}

// lab is a supervisor whose teams are resumed by a program that writes its name to a file.
func lab(t *testing.T) (s *Supervisor, resumed func() int) {
	t.Helper()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "server"), 0o700); err != nil {
		t.Fatal(err)
	}
	said := filepath.Join(root, "resumed")
	e := &engine.Engine{Home: layout.Home{Root: root, Claude: filepath.Join(root, "claude")}}
	s, err := Open(Options{Engine: e, File: filepath.Join(root, "server", "teams.json"), Log: func(string) {},
		Resume: func(id string) []string { return []string{"/bin/sh", "-c", "echo >>" + said} }})
	if err != nil {
		t.Fatal(err)
	}
	return s, func() int {
		text, _ := os.ReadFile(said)
		return strings.Count(string(text), "\n")
	}
}

// create creates a team in the home of the supervisor.
func create(t *testing.T, s *Supervisor, name string) team.Team {
	t.Helper()
	body := &team.CreateTeam{Name: name, Dir: t.TempDir()}
	if err := s.Engine.Founding(t.Context(), body); err != nil {
		t.Fatal(err)
	}
	if err := s.Engine.Create(name, []team.Command{engine.Command(team.User, body)}); err != nil {
		t.Fatal(err)
	}
	of, err := s.Engine.Glance(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return of
}

// TestResumesAreRare checks that a team that cannot be resumed is tried again later and later.
func TestResumesAreRare(t *testing.T) {
	s, resumed := lab(t)
	of := create(t, s, "demo")
	if err := s.Add(t.Context(), of); err != nil {
		t.Fatal(err)
	}
	dead := []attention.Found{{Team: of, Overview: catalog.Overview{ID: of.ID, Dormant: true}}}
	now := time.Now()
	for second := range 60 {
		s.See(dead, now.Add(time.Duration(second)*time.Second))
		for !idle(s) { // the program that resumes it ends at once
			time.Sleep(time.Millisecond)
		}
	}
	if n := resumed(); n != 4 { // after 0, 2, 10 and 42 seconds
		t.Errorf("it was resumed %d times in a minute", n)
	}
	s.See([]attention.Found{{Team: of, Overview: catalog.Overview{ID: of.ID, Hosted: true}}}, now.Add(2*time.Minute))
	s.See([]attention.Found{{Team: of, Overview: catalog.Overview{ID: of.ID, Hosted: true}}}, now.Add(4*time.Minute))
	if is := s.Teams()[0]; !is.Running || is.Tries != 0 {
		t.Errorf("after it ran for two minutes it is %+v", is)
	}
}

func idle(s *Supervisor) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.list[0].busy
}

// TestList checks that the list is on disk after each change, that a team which has ended leaves
// it, and that one which was added during a look does not.
func TestList(t *testing.T) {
	s, _ := lab(t)
	of, other := create(t, s, "demo"), create(t, s, "other")
	reopened := func() (names []string) {
		again, err := Open(s.Options)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range again.Teams() {
			names = append(names, one.Name)
		}
		return names
	}
	if err := errors.Join(s.Add(t.Context(), of), s.Keep(other)); err != nil {
		t.Fatal(err)
	}
	if got := reopened(); strings.Join(got, " ") != "demo other" {
		t.Errorf("the list has %q", got)
	}
	running := func(of team.Team) attention.Found {
		return attention.Found{Team: of, Overview: catalog.Overview{ID: of.ID, Hosted: true}}
	}
	s.See([]attention.Found{running(of)}, time.Now()) // it began before other was added
	if got := reopened(); len(got) != 2 {
		t.Errorf("after a look that began earlier the list has %q", got)
	}
	ended := of
	ended.Status = team.TeamComplete
	s.See([]attention.Found{running(ended)}, time.Now())
	if got := reopened(); len(got) != 0 {
		t.Errorf("after the end of one team and the removal of the other the list has %q", got)
	}
	if err := s.Add(t.Context(), ended); team.CodeOf(err) != team.Finished {
		t.Errorf("a team that has ended is added: %v", err)
	}
}

// TestTeamsInTeamsRest checks that a team in a team is not added to the list, because it runs with
// that team, and that one of an earlier list is not resumed.
func TestTeamsInTeamsRest(t *testing.T) {
	s, resumed := lab(t)
	of, child := create(t, s, "demo"), create(t, s, "child")
	if err := s.Add(t.Context(), child); err != nil { // as a server did before it knew of such teams
		t.Fatal(err)
	}
	child.Depth, child.Parent = 1, team.Parent{Team: of.ID, Name: of.Name, Member: "sub", Task: "1"}
	dead := func(of team.Team) attention.Found {
		return attention.Found{Team: of, Overview: catalog.Overview{ID: of.ID, Dormant: true}}
	}
	s.See([]attention.Found{dead(of), dead(child)}, time.Now())
	if is := s.Teams(); resumed() != 0 || len(is) != 1 || is[0].Running || is[0].Why != "it runs with team demo" {
		t.Errorf("the child is resumed by itself: %+v", is)
	}
	runs := dead(child)
	runs.Overview.Hosted = true
	s.See([]attention.Found{dead(of), runs}, time.Now())
	if is := s.Teams(); !is[0].Running {
		t.Errorf("the child does not run with its parent: %+v", is)
	}
	damaged := attention.Found{Folder: "damaged"}
	if s.See([]attention.Found{damaged, dead(child)}, time.Now()); s.Teams()[0].Why != "it is being resumed" {
		t.Errorf("the child of a team that was removed is %+v", s.Teams())
	}
	for !idle(s) {
		time.Sleep(time.Millisecond)
	}
	if err := s.Drop(child.ID); err != nil {
		t.Fatal(err)
	}
	if err := s.Add(t.Context(), of); err != nil {
		t.Fatal(err)
	}
	if s.See([]attention.Found{damaged, dead(of)}, time.Now()); s.Teams()[0].Why != "it is being resumed" {
		t.Errorf("beside a damaged team the parent is %+v", s.Teams())
	}
	for !idle(s) {
		time.Sleep(time.Millisecond)
	}
	if err := s.Drop(of.ID); err != nil {
		t.Fatal(err)
	}
	err := errors.Join(s.Keep(child), s.Add(t.Context(), child))
	if team.CodeOf(err) != team.Invalid || !strings.Contains(err.Error(), "is run with that team") || len(s.Teams()) != 0 {
		t.Errorf("the child is added: %v", err)
	}
}

// TestStopIsRemembered checks that teams which a stop pauses are resumed by the next supervisor,
// and that nothing is resumed once the stop began.
func TestStopIsRemembered(t *testing.T) {
	s, resumed := lab(t)
	of := create(t, s, "demo")
	if err := s.Keep(of); err != nil {
		t.Fatal(err)
	}
	s.See([]attention.Found{{Team: of, Overview: catalog.Overview{ID: of.ID, Hosted: true}}}, time.Now())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	paused := []attention.Found{{Team: of, Rests: true, Overview: catalog.Overview{ID: of.ID, Dormant: true}}}
	s.See(paused, time.Now())
	if n := resumed(); n != 0 {
		t.Error("a team is resumed during the stop")
	}
	if err := s.Add(t.Context(), of); team.CodeOf(err) != team.NotReady {
		t.Errorf("a team is added during the stop: %v", err)
	}
	next, err := Open(s.Options)
	if err != nil {
		t.Fatal(err)
	}
	next.See(paused, time.Now())
	for deadline := time.Now().Add(time.Minute); resumed() == 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if resumed() == 0 {
		t.Error("the next supervisor does not resume the team")
	}
}

// TestRestIsRemembered checks that a team which a person paused after a stop waits for a person.
func TestRestIsRemembered(t *testing.T) {
	s, resumed := lab(t)
	of := create(t, s, "demo")
	if err := errors.Join(s.Add(t.Context(), of), s.Rest(of.ID), s.Rest("another")); err != nil {
		t.Fatal(err)
	}
	next, err := Open(s.Options)
	if err != nil {
		t.Fatal(err)
	}
	next.See([]attention.Found{{Team: of, Rests: true,
		Overview: catalog.Overview{ID: of.ID, Dormant: true, Sessions: 1}}},
		time.Now())
	if is := next.Teams(); len(is) != 1 || is[0].Why != "it is paused, or its run has ended" || resumed() != 0 {
		t.Errorf("the list has %+v, and %d teams were resumed", is, resumed())
	}
}

// TestMostSessions checks that a team waits while others run as many teammates as may run, and that
// one which alone has more is resumed when no other runs.
func TestMostSessions(t *testing.T) {
	s, resumed := lab(t)
	s.MaxSessions = 2
	of, other := create(t, s, "demo"), create(t, s, "other")
	if err := errors.Join(s.Add(t.Context(), of), s.Keep(other)); err != nil {
		t.Fatal(err)
	}
	big := attention.Found{Team: of, Overview: catalog.Overview{ID: of.ID, Dormant: true, Teammates: 5, Sessions: 3}}
	runs := attention.Found{Team: other,
		Overview: catalog.Overview{ID: other.ID, Hosted: true, Teammates: 4, Sessions: 1}}
	s.See([]attention.Found{big, runs}, time.Now())
	if is := s.Teams()[0]; !strings.Contains(is.Why, "runs 1 of at most 2 teammates, and the team has 3") ||
		resumed() != 0 {
		t.Errorf("the team waits because %q", is.Why)
	}
	runs.Overview.Hosted = false
	s.See([]attention.Found{big, runs}, time.Now())
	if is := s.Teams()[0]; is.Why != "it is being resumed" {
		t.Errorf("the team waits because %q", is.Why)
	}
	for !idle(s) {
		time.Sleep(time.Millisecond)
	}
}

// TestDamagedList checks that a list which cannot be read is not replaced by an empty one.
func TestDamagedList(t *testing.T) {
	s, _ := lab(t)
	if err := os.WriteFile(s.File, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(s.Options); err == nil || !strings.Contains(err.Error(), s.File) {
		t.Errorf("got %v", err)
	}
}
