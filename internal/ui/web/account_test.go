package web

import (
	"reflect"
	"testing"

	"cadre/internal/team"
	"cadre/internal/testkit/historytest"
)

// TestRecalled: what is kept of a history grows with it, and has the attempts at tasks and the
// marks.
func TestRecalled(t *testing.T) {
	h := historytest.New()
	host := team.Host("h")
	for _, name := range []string{"ann", "bob"} {
		h.Do("lead", &team.SpawnMember{Name: name, Agent: team.Claude, Prompt: "work"})
		h.Do(host, &team.AttachMember{Member: name})
		h.Do(host, &team.ReportStarted{Member: name, Session: name})
	}
	h.Do("lead", &team.CreateTask{Subject: "mend the test", Name: "mend"})
	h.Do("ann", &team.ClaimTask{Task: "mend"})
	h.Do("ann", &team.FailTask{Task: "mend", Reason: "it needs a clock"})
	failed := h.State.Seq()
	h.Do("lead", &team.ReleaseTask{Task: "mend"})
	h.Do("bob", &team.ClaimTask{Task: "mend"})
	h.Do("bob", &team.SendMessage{To: "ann", Body: "Which clock does task mend need?"})
	of := opened(t, h)
	var kept recalled
	for range 2 {
		if err := kept.read(t.Context(), of, latest); err != nil {
			t.Fatal(err)
		}
	}
	is := accountOf(&kept.tasks, "1")
	var attempts []string
	for _, a := range is.Attempts {
		attempts = append(attempts, a.Member+" "+a.How+" "+a.Reason)
	}
	if want := []string{"ann failed it needs a clock", "bob  "}; !reflect.DeepEqual(attempts, want) {
		t.Errorf("the attempts are %q", attempts)
	}
	if len(is.Mentions) != 1 || is.Mentions[0].From != "bob" {
		t.Errorf("the messages are %+v", is.Mentions)
	}
	marks := kept.marks.All()
	if len(marks) != 1 || pointOf(marks[0]).Seq != failed || pointOf(marks[0]).Task != "1" {
		t.Errorf("the marks are %+v", marks)
	}
	if none := accountOf(&kept.tasks, "9"); none.Attempts == nil || len(none.Attempts) > 0 {
		t.Errorf("a task that does not exist has %+v", none)
	}
}
