package search

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cadre/internal/journal"
	"cadre/internal/team"
)

// history is a source of records that were written by this version.
func history(events ...team.Event) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		for i, e := range events {
			r := &team.Record{Seq: int64(i + 1), ID: fmt.Sprint(i), Actor: "ann", At: team.Time(i + 1),
				Events: []team.Event{e}}
			data := team.AppendRecord(nil, r)
			if !yield(journal.Record{Seq: r.Seq, Data: data}, nil) {
				return
			}
			clear(data) // it is valid until the loop body returns
		}
	}
}

func found(t *testing.T, records iter.Seq2[journal.Record, error], q Query) (all []Match) {
	t.Helper()
	if err := q.Check(); err != nil {
		t.Fatal(err)
	}
	for m, err := range In(t.Context(), records, q) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

func sent(from, to, ref, body string) team.Event {
	return &team.MessageSent{Message: team.Message{Seq: 7, From: from, To: to, Type: team.TypeMessage, Ref: ref,
		Body: body}}
}

func TestEveryText(t *testing.T) {
	subject := "the subject has a needle"
	events := []team.Event{
		sent("ann", "bob", "3", "a needle in a message"),
		sent("", "bob", "3", "a needle in words of the team, which cites"),
		&team.TaskCompleted{Task: "3", By: "bob", Result: "a needle in a result"},
		&team.TaskFailed{Task: "4", By: "bob", Reason: "a needle in a reason"},
		&team.NoteSet{Key: "k", Text: "a needle in a note", Seq: 1},
		&team.NoteAppended{Key: "k", Text: "a second needle", Seq: 2},
		&team.NoteDeleted{Key: "k", Seq: 3},
		&team.ReportGiven{Text: "a needle in the report"},
		&team.TaskCreated{Task: team.Task{ID: "5", Subject: "look", Description: "for the needle", CreatedBy: "lead",
			Status: team.Pending, Priority: "medium"}},
		&team.TaskUpdated{Task: "5", Subject: &subject},
		&team.TaskRevised{Task: team.Task{ID: "5", Subject: "a needle before", Description: "a needle again"},
			Fields: []string{"description"}},
		&team.TaskRejected{Task: "5", Member: "bob", By: "cy", Feedback: "a needle that cites a verification"},
	}
	want := []string{"message ann", "result bob", "result bob", "note ann", "note ann", "report ann",
		"task lead", "task ann", "task ann"}
	var got []string
	for _, m := range found(t, history(events...), Query{Words: []string{"NEEDLE"}}) {
		got = append(got, fmt.Sprint(m.Kind, " ", m.By))
		for _, s := range m.Spans {
			if word := m.Text[s.From:s.To]; word != "needle" {
				t.Errorf("it marks %q", word)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("it found %q, want %q", got, want)
	}
}

func TestFilters(t *testing.T) {
	events := []team.Event{
		sent("ann", "bob", "3", "one needle"), sent("bob", "ann", "plan-1@bob", "two needles"),
		sent("cy", "dan", "", "three needles"), &team.TaskCompleted{Task: "3", By: "cy", Result: "four needles"},
		&team.MessageSent{Message: team.Message{From: "lead", To: "*", Recipients: []string{"dan", "ann"},
			Body: "five needles"}},
	}
	for _, test := range []struct {
		q    Query
		want string
	}{
		{Query{}, "one two three four five"},
		{Query{Members: []string{"dan"}}, "three five"},
		{Query{Members: []string{"ann", "cy"}}, "one two three four five"},
		{Query{Tasks: []string{"3"}}, "one four"},
		{Query{Kinds: []Kind{Result, Note}}, "four"},
		{Query{Since: 2, Until: 3}, "two three"},
		{Query{Last: 2}, "four five"},
		{Query{Last: 1, Tasks: []string{"3"}, Kinds: []Kind{Message}}, "one"},
	} {
		test.q.Words = []string{"needle"}
		var got []string
		for _, m := range found(t, history(events...), test.q) {
			word, _, _ := strings.Cut(m.Text, " ")
			got = append(got, word)
		}
		if said := strings.Join(got, " "); said != test.want {
			t.Errorf("%+v finds %q, want %q", test.q, said, test.want)
		}
	}
}

// A search for the last matches reads again where the last records that may match have too few.
func TestLastBehindOthers(t *testing.T) {
	events := []team.Event{sent("ann", "bob", "", "an early needle")}
	for range 10 * mostKept {
		events = append(events, sent("cy", "dan", "", "a needle of another"))
	}
	got := found(t, history(events...), Query{Words: []string{"needle"}, Members: []string{"ann"}, Last: 3})
	if len(got) != 1 || got[0].Record != 1 {
		t.Errorf("it found %v", got)
	}
	if got := found(t, history(events...), Query{Words: []string{"needle"}, Last: 1 << 40}); len(got) != len(events) {
		t.Errorf("it found %d of %d", len(got), len(events))
	}
}

func TestRestored(t *testing.T) {
	e := &team.TeamRestored{Team: team.Team{ID: "x", Name: "x", Lead: "lead", LastWords: "needle a"},
		Messages: []team.Message{{Seq: 1, From: "ann", To: "bob", Body: "needle b"}},
		Tasks: []team.Task{{ID: "1", Subject: "needle c", Result: "needle d", CompletedBy: "bob",
			CreatedBy: "lead"}},
		Notes: []team.Note{{Key: "k", Text: "needle e", UpdatedBy: "ann"}}}
	var got []string
	for _, m := range found(t, history(e), Query{Words: []string{"needle"}}) {
		got = append(got, string(m.Kind)+m.Text[len("needle"):])
	}
	if want := "[message b task c result d note e report a]"; fmt.Sprint(got) != want {
		t.Errorf("it found %v, want %v", got, want)
	}
}

func TestDamageEndsASearch(t *testing.T) {
	damage := errors.New("damage")
	records := func(yield func(journal.Record, error) bool) {
		for r := range history(sent("ann", "bob", "", "a needle")) {
			yield(r, nil)
		}
		yield(journal.Record{}, damage)
	}
	for _, last := range []int{0, 5} {
		var all []string
		for m, err := range In(t.Context(), records, Query{Words: []string{"needle"}, Last: last}) {
			if err != nil {
				all = append(all, err.Error())
			} else {
				all = append(all, m.Text)
			}
		}
		if want := []string{"a needle", "damage"}; !slices.Equal(all, want) {
			t.Errorf("last %d: it yields %q, want %q", last, all, want)
		}
	}
	healthy := history(sent("ann", "bob", "", "an early needle"))
	for _, last := range []int{0, 5} {
		var all []string
		for m, err := range InParts(t.Context(), []iter.Seq2[journal.Record, error]{healthy, records, healthy},
			Query{Words: []string{"needle"}, Last: last}) {
			if err != nil {
				all = append(all, err.Error())
			} else {
				all = append(all, m.Text)
			}
		}
		if want := []string{"an early needle", "a needle", "damage"}; !slices.Equal(all, want) {
			t.Errorf("in parts, last %d: it yields %q, want %q", last, all, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range In(ctx, history(sent("ann", "bob", "", "a needle")), Query{Words: []string{"needle"}}) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it yields %v after its end", err)
		}
	}
}

func TestBadQueries(t *testing.T) {
	for _, q := range []Query{{}, {Words: []string{" "}}, {Words: make([]string, MaxWords+1)},
		{Words: []string{strings.Repeat("x", MaxWord+1)}}, {Words: []string{"x"}, Kinds: []Kind{"mail"}},
		{Words: []string{"\xff"}},
		{Words: []string{"x"}, Last: -1}} {
		if err := q.Check(); team.CodeOf(err) != team.Invalid && team.CodeOf(err) != team.TooLarge {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

// Records that are not decoded have no match, whatever the texts and the words consist of.
func TestAgainstNaive(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a", "K", "k", "s", "S", "\u212a", "\u017f", "ü", "Ü", "\n", `"`, `\`, "/",
		"<",
		"0", " ",
		"\x00", "\x7f", "\xff", "zq", "Zq", "€", "\u2028", "{", "ı", "İ"})
	word := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 1, 4).Draw(t, "pieces"), "")
	}).Filter(func(s string) bool { return (&Query{Words: []string{s}}).Check() == nil })
	rapid.Check(t, func(t *rapid.T) {
		var events []team.Event
		for _, body := range rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "text"), "")
		}), 0, 8).Draw(t, "bodies") {
			events = append(events, sent("ann", "bob", "", body))
		}
		words := rapid.SliceOfN(word, 1, 2).Draw(t, "words")
		want := []int64{}
		for r := range history(events...) {
			record, err := team.DecodeRecord(r.Seq, string(r.Data))
			if err != nil {
				t.Fatal(err)
			}
			body := record.Events[0].(*team.MessageSent).Message.Body
			if !slices.ContainsFunc(words, func(w string) bool {
				return !regexp.MustCompile("(?i)" + regexp.QuoteMeta(w)).MatchString(body)
			}) {
				want = append(want, r.Seq)
			}
		}
		starts := rapid.SliceOfNDistinct(rapid.Int64Range(1, 8), 0, 3, rapid.ID).Draw(t, "starts")
		slices.Sort(starts)
		read := func(after int64) iter.Seq2[journal.Record, error] {
			return func(yield func(journal.Record, error) bool) {
				for r := range history(events...) {
					if r.Seq > after && !yield(r, nil) {
						return
					}
				}
			}
		}
		parts := Parts(read, append([]int64{0}, starts...))
		for _, last := range []int{0, 3} {
			got, expected := []int64{}, want
			if last > 0 {
				expected = want[max(0, len(want)-last):]
			}
			for m, err := range InParts(context.Background(), parts, Query{Words: words, Last: last}) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, m.Record)
			}
			if !reflect.DeepEqual(got, append([]int64{}, expected...)) {
				t.Fatalf("%q finds %v, want %v", words, got, expected)
			}
		}
	})
}

// unsearched are texts of events that a search leaves out, with the reason.
var unsearched = map[string]string{
	`\.Plan\.(Text|Feedback)$`: "the message that submits a plan, or answers it, has them",
	`^task_(created|revised)\.Task\.(Failure|Result|LastWords|(Submission|Rejected)\..*)$`: "a new task has none",
	`^task_updated\.Was\.`:                  "the event that set them before has them",
	`^team_(created|revised)\.Team\.`:       "a new team has none, and a team file sets none",
	`\.News\.Text$`:                         "the event of the note has it",
	`^(hook_rejected|plan_answered)\.`:      "the message about it has it",
	`^(member_troubled|rate_limited)\.Text`: "a program said it, and nobody of the team",
}

// TestTextsOfEveryEvent checks that a search finds the texts of every kind of event, but for those
// that are left out for a reason. It takes the events from the golden files of their format, which
// has every kind, and puts a word into one text after the other.
func TestTextsOfEveryEvent(t *testing.T) {
	texts := []string{"Text", "Body", "Subject", "Description", "Result", "Failure", "Words", "LastWords",
		"Feedback"}
	for _, kind := range team.Kinds() {
		golden, err := os.ReadFile(filepath.Join("../../team/testdata/events", kind+".json"))
		if err != nil {
			t.Fatal(err)
		}
		r, err := team.DecodeRecord(1, strings.TrimSpace(string(golden)))
		if err != nil {
			t.Fatal(err)
		}
		switch e := r.Events[0].(type) {
		case *team.TaskRevised:
			e.Fields = []string{"subject", "description"}
		case *team.TaskRejected:
			e.By = team.ByCheck
		case *team.TeamRestored:
			e.Tasks[0].Rejected.By = team.ByCheck
		}
		eachText(reflect.ValueOf(r.Events[0]), kind, func(place string, text reflect.Value) {
			if !slices.Contains(texts, place[strings.LastIndexByte(place, '.')+1:]) {
				return
			}
			before := text.String()
			text.SetString("a needle")
			defer text.SetString(before)
			is := slices.ContainsFunc(textsOf(r.Events[0]), func(m Match) bool { return strings.Contains(m.Text, "needle") })
			out := slices.ContainsFunc(slices.Collect(maps.Keys(unsearched)), func(places string) bool {
				return regexp.MustCompile(places).MatchString(place)
			})
			if is == out {
				t.Errorf("%s is found: %t", place, is)
			}
		})
	}
}

// eachText calls f for each text in the value, with its place.
func eachText(v reflect.Value, place string, f func(place string, text reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			eachText(v.Elem(), place, f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				eachText(v.Field(i), place+"."+v.Type().Field(i).Name, f)
			}
		}
	case reflect.Slice:
		for i := range min(v.Len(), 1) {
			eachText(v.Index(i), place, f)
		}
	case reflect.String:
		f(place, v)
	}
}
