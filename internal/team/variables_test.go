package team

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestNamesOfManyFailedTasks checks that the names of any number of failed tasks fit into a
// variable: a system starts no program with a longer one.
func TestNamesOfManyFailedTasks(t *testing.T) {
	w := work(t)
	var names []string
	for i := range mostNames / MaxName {
		name := fmt.Sprintf("%s%03d", strings.Repeat("n", MaxName-3), i)
		names = append(names, name)
		w.do(&CreateTask{Name: name, Subject: "a task"})
		w.do(&ClaimTask{Task: name, Member: "ann"})
		w.do(&FailTask{Task: name, Member: "ann", Reason: "it broke"})
	}
	w.do(&CreateTask{Name: "all", Subject: "all", BlockedBy: names, When: Always})
	w.do(&CreateTask{Name: "first", Subject: "first", BlockedBy: names[:2], When: Always})
	for task, want := range map[string][]string{"all": append(slices.Clone(names[:mostNames/(MaxName+1)]), "..."),
		"first": names[:2]} {
		if want := "CADRE_FAILED_TASKS=" + strings.Join(want, ","); !slices.Contains(w.TaskVariables(*w.named(task)), want) {
			t.Errorf("task %s has the variables %.300q, want %.300q", task, w.TaskVariables(*w.named(task)), want)
		}
	}
}
