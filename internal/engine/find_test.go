package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"cadre/internal/engine"
	"cadre/internal/team"
)

// TestFind lists matches as a screen shows them: of all teams, the newest first, with where each
// leads, and only the newest ones of each team.
func TestFind(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.create(&team.SpawnMember{Name: "ann", Agent: team.External})
	other := &team.CreateTeam{Name: "other", Dir: l.project}
	if err := l.Founding(within(t), other); err != nil {
		t.Fatal(err)
	}
	if err := l.Create("other", []team.Command{engine.Command(team.User, other)}); err != nil {
		t.Fatal(err)
	}
	act := func(name string, body team.Body) {
		t.Helper()
		err := l.Act(within(t), name, team.User, body, func(*engine.Team, *team.Record) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 25 {
		act("other", &team.SetNote{Key: fmt.Sprint("k", i), Text: fmt.Sprint("a needle of the other, ", i)})
	}
	act("demo", &team.CreateTask{Name: "look", Subject: "look for the needle"})
	act("demo", &team.SetNote{Key: "where", Text: "the needle is " + strings.Repeat("far ", 100) + "away"})
	act("demo", &team.SendMessage{To: "ann", Body: "a hay\nstack with a needle"})

	f, err := l.Find(within(t), engine.FindWords("", "needle", 0))
	if err != nil || f.Trouble != nil || !f.More || len(f.Found) != 3+20 {
		t.Fatalf("%d matches, more %v: %v, %v", len(f.Found), f.More, f.Trouble, err)
	}
	at := map[string]int{} // records of both teams may be of one millisecond
	for _, want := range []struct {
		team, excerpt string
		place         engine.Place
	}{
		{"demo", "a hay stack with a [needle]", engine.ToMessage}, {"demo", "the [needle] is far", engine.ToNote},
		{"demo", "look for the [needle]", engine.ToTask}, {"other", "a [needle] of the other, 24", engine.ToNote},
	} {
		i := at[want.team]
		for f.Found[i].Team != want.team {
			i++
		}
		at[want.team] = i + 1
		one, text := f.Found[i], ""
		for _, p := range one.Excerpt() {
			if p.Found {
				p.Text = "[" + p.Text + "]"
			}
			text += p.Text
		}
		if one.Team != want.team || one.Leads() != want.place || !strings.HasPrefix(text, want.excerpt) {
			t.Errorf("%d: %s, %s, %q", i, one.Team, one.Leads(), text)
		}
		if want.place == engine.ToNote && want.team == "demo" && !strings.HasSuffix(text, " …") {
			t.Errorf("the end of a long text is not marked: %q", text)
		}
	}
	if f, err = l.Find(within(t), engine.FindWords("other", "needle", 0)); err != nil || f.More || len(f.Found) != 25 {
		t.Errorf("of one team: %d, more %v, %v", len(f.Found), f.More, err)
	}
	if f, err = l.Find(within(t), engine.FindWords("demo", "needle", 1)); err != nil || len(f.Found) > 0 {
		t.Errorf("before all of them: %+v, %v", f.Found, err)
	}
	if _, err = l.Find(within(t), engine.FindWords("demo", " ", 0)); team.CodeOf(err) != team.Invalid {
		t.Errorf("without a word: %v", err)
	}
	if f, err = l.Find(within(t), engine.FindWords("nowhere", "needle", 0)); err != nil ||
		team.CodeOf(f.Trouble) != team.NotFound {
		t.Errorf("a team that is not there: %v, %v", f.Trouble, err)
	}
}
