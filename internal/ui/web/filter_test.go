package web

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"cadre/internal/team"
	"cadre/internal/testkit/historytest"
	"cadre/internal/ui/filter"
)

// answer is what package filter says to a text.
type answer struct {
	Text    string   `json:"text"`
	At      int      `json:"at"`
	Says    string   `json:"says"`
	Selects []string `json:"selects"`
}

// TestFilter: the page selects what package filter selects and says the same to mistakes: in the
// cases of that package, for whatever is typed, and for tasks of all kinds.
func TestFilter(t *testing.T) {
	data, err := os.ReadFile("../filter/testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases struct{ Items map[string]filter.Item }
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	parts := strings.Split(`m:|s:|t:|owner:|state:|#|-|"| |  |ann|anna|core|web|block|in_|compl|12|1|lint|É|文|x|:|`+
		`tests|status:"`, "|")
	var answers []answer
	for range 4_000 {
		var text strings.Builder
		for range 1 + random.IntN(9) {
			text.WriteString(parts[random.IntN(len(parts))])
		}
		answers = append(answers, answerTo(text.String(), cases.Items))
	}
	said := node(t, "filter.js", map[string]any{"cases": json.RawMessage(data), "answers": answers, "tasks": tasksOf(t),
		"known": filter.States()})
	if said != "the same\n" {
		t.Error(said)
	}
}

func answerTo(text string, items map[string]filter.Item) answer {
	is := answer{Text: text, Selects: []string{}}
	f, err := filter.Parse(text)
	if wrong, bad := errors.AsType[*filter.Error](err); bad {
		is.At, is.Says = wrong.At, wrong.Text
		return is
	}
	for name, item := range items {
		if f.Match(item) {
			is.Selects = append(is.Selects, name)
		}
	}
	slices.Sort(is.Selects)
	return is
}

// tasksOf returns tasks as the page has them, with their items.
func tasksOf(t *testing.T) (all []any) {
	seen := map[string]bool{}
	for i := range 40 {
		h := historytest.Play(historytest.Choices(200).Example(i))
		if i == 0 { // a task that is skipped at once, and one that others verify
			before := ""
			for one := range h.State.Tasks() {
				if one.Status == team.Completed {
					before = one.ID
				}
			}
			h.Do("lead", &team.CreateTask{Subject: "tidy up", BlockedBy: []string{before}, When: team.OnFailure})
			h.Do("lead", &team.CreateTask{Name: "proof", Subject: "proof", Verify: &team.Verify{By: "reviewer"}})
			h.Do("lead", &team.CompleteTask{Task: "proof", Result: "read"})
		}
		for task := range h.State.Tasks() {
			item := filter.Task("core", task)
			seen[task.State()] = true
			all = append(all, map[string]any{"task": task, "item": map[string]any{"team": item.Team,
				"number": item.Number, "name": item.Name, "members": append([]string{}, item.Members...),
				"states": item.States, "words": item.Words}})
		}
	}
	for _, state := range team.TaskStates {
		if !seen[state] {
			t.Errorf("no task is %s", state)
		}
	}
	return all
}
