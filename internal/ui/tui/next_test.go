package tui

import (
	"strings"
	"testing"

	"cadre/internal/inspect/attention"
	"cadre/internal/inspect/catalog"
	"cadre/internal/team"
)

// TestNextItem: after an answer, the next item is selected. A key that follows at once is not taken
// for an answer to it. An item that somebody else settled leaves nothing selected.
func TestNextItem(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 100, 24)
	x.keys("a")
	x.send(s.message())
	list := func() { x.send(teamsMsg{teams: []teamRow{rowOf(s.listed())}, items: itemsOf(s.listed())}) }
	chosen := func() string { one, _ := x.item(); return one.text }
	list()
	if !strings.HasPrefix(chosen(), "ann asks") {
		t.Fatal(chosen())
	}
	x.keys("y")
	x.wants("demo *team.AnswerPermission &{Request:permission-2@ann Allow:true Reason:}")
	s.do(team.User, &team.AnswerPermission{Request: "permission-2@ann", Allow: true})
	list()
	if !strings.HasPrefix(chosen(), "bob submitted") {
		t.Errorf("after the answer %q is selected", chosen())
	}
	asked := len(x.asked)
	x.keys("y")
	x.says("This is the next item. Press the key again if it is meant for it.")
	if len(x.asked) != asked {
		t.Errorf("a second key answered the next item: %s", x.last())
	}
	for range 20 { // the key is held
		x.time = x.Model.clock() + 600
		x.keys("y")
	}
	if len(x.asked) != asked {
		t.Errorf("a held key answered the next item: %s", x.last())
	}
	x.time = x.Model.clock() + 800
	x.keys("y")
	x.wants("demo *team.AnswerPlan &{Request:plan-1@bob Approved:true Feedback:}")

	s = newStory(t)
	x = newScreen(s, 100, 24)
	x.keys("a")
	list()
	s.do(team.User, &team.AnswerPermission{Request: "permission-2@ann", Allow: true}) // by somebody else
	list()
	if chosen() != "" {
		t.Errorf("%q is selected", chosen())
	}

	s = newStory(t) // two seconds later a key is an answer
	x = newScreen(s, 100, 24)
	x.keys("a")
	list()
	x.keys("y")
	s.do(team.User, &team.AnswerPermission{Request: "permission-2@ann", Allow: true})
	list()
	x.Update(clockMsg(x.now + 1)) // the tick that comes at once says nothing of a second
	x.Update(clockMsg(x.now + 1000))
	x.keys("y")
	x.wants("demo *team.AnswerPlan &{Request:plan-1@bob Approved:true Feedback:}")
}

// TestNextItemAtATick: a tick directly after the list does not end the time in which a key may
// still be meant for the item before.
func TestNextItemAtATick(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 100, 24)
	x.keys("a")
	x.send(s.message())
	list := func() { x.send(teamsMsg{teams: []teamRow{rowOf(s.listed())}, items: itemsOf(s.listed())}) }
	list()
	x.keys("y")
	s.do(team.User, &team.AnswerPermission{Request: "permission-2@ann", Allow: true})
	list()
	x.Update(clockMsg(x.now + 1))
	asked := len(x.asked)
	x.keys("y")
	x.says("This is the next item. Press the key again if it is meant for it.")
	if len(x.asked) != asked {
		t.Errorf("a key answered the next item at once: %s", x.last())
	}
}

// TestTeamsByMember: m: in the list of teams selects the teams that have the member, whether
// something waits in them or not.
func TestTeamsByMember(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 100, 24)
	row := func(name string, members ...string) teamRow {
		return rowOf(attention.Found{Folder: name, Members: members,
			Overview: catalog.Overview{ID: name, Name: name, Status: team.TeamActive}})
	}
	x.send(teamsMsg{teams: []teamRow{row("core", "lead", "zoe"), row("docs", "lead", "bob")}})
	x.send(strangersMsg{strangerRow(catalog.Stranger{Name: "cc", Members: []string{"team-lead", "zoe"}})})
	x.keys("/", "m:z", "tab", "enter")
	if len(x.teams) != 2 || x.teams[0].name != "core" || x.teams[1].name != "cc" {
		t.Errorf("%+v", x.teams)
	}
}

// TestModelIsShown: a large screen has room for the models of members beside the tasks.
func TestModelIsShown(t *testing.T) {
	s := newStory(t)
	x := newScreen(s, 120, 40)
	x.open(s)
	for _, text := range []string{"MODEL", "sonnet-5", "TOKENS", "COST", "MAIL", "OWNER", "asks for Bash"} {
		x.says(text)
	}
}

// TestEmptyListSaysWhatToDo: the hint of the empty list is whole on every screen.
func TestEmptyListSaysWhatToDo(t *testing.T) {
	for _, size := range sizes {
		x := newScreen(newStory(t), size[0], size[1])
		x.send(teamsMsg{})
		text := strings.Join(strings.Fields(stripped(strings.Join(x.frame(), " "))), " ")
		if want := "Start one in another terminal: cadre run FILE, or cadre create NAME"; !strings.Contains(text,
			want) {
			t.Errorf("at %v the list says %q", size, text)
		}
	}
}
