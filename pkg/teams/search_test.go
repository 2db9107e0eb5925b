package teams_test

import (
	"fmt"
	"testing"
	"time"

	"cadre/pkg/teams"
)

// TestSearch finds texts of two teams, and narrows the search to a team, a member and a task.
func TestSearch(t *testing.T) {
	ctx := limited(t)
	o := teams.Options{Home: t.TempDir(), ClaudeHome: t.TempDir()}
	m, other := manage(t, o), manage(t, o) // a manager has one team at a time
	core, web := create(t, m, "core", "ann", "bob"), create(t, other, "web", "cy")
	ann := as(t, core, "ann")
	_, err := ann.Mail().Send(ctx, teams.Message{To: "bob", Body: "The lexer needs a Needle."})
	ok(t, err)
	_, err = core.Notes().Set(ctx, teams.NoteEdit{Key: "tried", Text: "a needle in a note"})
	ok(t, err)
	task, err := web.Tasks().Create(ctx, teams.TaskConfig{Name: "thread", Subject: "Thread the needle"})
	ok(t, err)
	find := func(q teams.SearchQuery) (all string) {
		t.Helper()
		q.Words = []string{"needle"}
		found, err := m.Search(ctx, q)
		ok(t, err)
		for _, f := range found {
			all += fmt.Sprint(f.Team, ":", f.Kind, " ")
		}
		return all
	}
	equal(t, "all", find(teams.SearchQuery{}), "core:message core:note web:task ")
	equal(t, "one team", find(teams.SearchQuery{Team: "web"}), "web:task ")
	equal(t, "a member", find(teams.SearchQuery{Members: []string{"bob"}}), "core:message ")
	equal(t, "a task", find(teams.SearchQuery{Team: "web", Tasks: []string{task.Name}}), "web:task ")
	equal(t, "kinds", find(teams.SearchQuery{Kinds: []teams.TextKind{teams.TextNote}}), "core:note ")
	equal(t, "later", find(teams.SearchQuery{Since: time.Now().Add(time.Hour)}), "")
	equal(t, "the last", find(teams.SearchQuery{Last: 1}), "core:note web:task ")
	_, err = m.Search(ctx, teams.SearchQuery{})
	want(t, err, teams.ErrInvalid)
	_, err = m.Search(ctx, teams.SearchQuery{Words: []string{"needle"}, Tasks: []string{"1"}})
	want(t, err, teams.ErrInvalid)
}
