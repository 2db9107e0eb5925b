package team

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// TestTasksAreReadBeside reads states that are long enough for it, also where the beginning of the
// tasks is guessed wrong, or the text ends too early.
func TestTasksAreReadBeside(t *testing.T) {
	large := func() *State {
		s := &State{team: Team{ID: "t-1", Name: "t", Lead: "lead"}, members: []Member{{Name: "lead"}}, seq: 9,
			messages: map[int64]*Message{3: {Seq: 3, From: "ann", To: "lead", Body: "hello"}}}
		for i := range 1000 {
			s.tasks = append(s.tasks, Task{ID: fmt.Sprint(i + 1), Subject: strings.Repeat("look ", 20), Status: Pending,
				CreatedBy: "lead"})
		}
		return s
	}
	plain, misleading := large(), large()
	misleading.messages[3].Metadata = map[string]json.RawMessage{
		"x": json.RawMessage(`{"tasks":[],"taskCount":1,"tasks":[{"id":"1"}]}`)}
	for name, s := range map[string]*State{"plain": plain, "misleading": misleading} {
		text := string(AppendSnapshot(nil, s))
		read, alone := State{seq: 9}, State{seq: 9}
		if err := decode(&alone, text); err != nil {
			t.Fatal(name, err)
		}
		if err := read.read(text); err != nil || !reflect.DeepEqual(read, alone) {
			t.Errorf("%s: the state differs from one that was read in one pass: %v", name, err)
		}
		if len(read.tasks) != 1000 || len(read.messages) != 1 || len(text) < besideFrom {
			t.Errorf("%s: %d tasks, %d messages", name, len(read.tasks), len(read.messages))
		}
		later := strings.Replace(text, `,"messageCount"`, `,"later":[1],"messageCount"`, 1)
		if read = (State{seq: 9}); read.read(later) != nil || later == text || !reflect.DeepEqual(read, alone) {
			t.Errorf("%s: a state with a field of a later version is read differently", name)
		}
		for _, cut := range []int{1, 30, len(text) / 2} {
			if err := (&State{}).read(text[:len(text)-cut]); err == nil {
				t.Errorf("%s: a text without its last %d bytes was read", name, cut)
			}
		}
		if err := (&State{}).read(text + "x"); err == nil {
			t.Errorf("%s: a text with more behind it was read", name)
		}
	}
}
