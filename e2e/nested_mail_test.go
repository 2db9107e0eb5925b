package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"cadre/internal/team"
)

// commanded matches a message of the parent team that an actor which leads a child team answers.
var commanded = regexp.MustCompile(`order \d+`)

// obey answers a question, asks one where the actor leads a team in a team that is to ask, and
// tells the lead of the parent team of each order in the text.
func (a *actor) obey(text string) error {
	if strings.Contains(text, "which order?") {
		time.Sleep(500 * time.Millisecond) // longer than the rest of the child team takes
		return a.use("SendMessage", map[string]any{"to": "sub", "message": "order 7"})
	}
	if a.colleagues[0] == "asks" && strings.Contains(text, "The goal of the team") {
		return a.use("SendMessage", map[string]any{"to": team.ParentName, "intent": "question", "message": "which order?"})
	}
	for _, one := range commanded.FindAllString(text, -1) {
		if err := a.use("SendMessage", map[string]any{"to": team.ParentName, "message": "done: " + one}); err != nil {
			return err
		}
	}
	return nil
}

// TestMailBetweenTeamsSurvivesKills: the person writes to the lead of a team in a team, and that
// one answers its parent, while the process of both teams is killed again and again. Each message
// reaches the other team exactly once, in order.
func TestMailBetweenTeamsSurvivesKills(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w.write("up.yaml", "name: up\nmaxDepth: 1\nmembers: [{name: sub, agent: team, file: inner.yaml}]\n"+
		"tasks: [{id: inside, owner: sub}]\n")
	w.write("inner.yaml", fmt.Sprintf("name: inner\nlead: {agent: %q, env: {%s: actor}}\nmembers: [{name: a, agent: "+
		"shell}]\ntasks: [{id: t, owner: a, retries: 100, run: 'until test -e go; do sleep 0.05; done'}]\n",
		fmt.Sprintf("acp:'%s' '%s' parent", self, filepath.Join(w.root, "histories")), helperMode))
	begun := func(s *team.State) bool {
		of := s.Team().Children
		return len(of) == 1 && of[0].Lead != "" && !of[0].Over
	}
	p := w.start("run", "up.yaml", "--plain")
	w.awaitState(p, "up", begun)
	const orders = 20
	for i := range orders {
		eventually(t, "sub does its task", func() bool { // not while a killed host is replaced
			r := w.cadre("send", "up", "--to", "sub", fmt.Sprint("order ", i))
			if r.code > 1 {
				t.Fatal(r.err)
			}
			return r.code == 0
		})
		time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
		if rand.IntN(4) == 0 {
			p.kill()
			p = w.start("run", "up.yaml", "--plain")
		}
	}
	links, _ := w.children("up")
	child := links[0].Team
	bodies := func(of, from, to string) string {
		var all []string
		for _, e := range w.history(of) {
			if e.is("message_sent") && e["from"] == from && e["to"] == to {
				all = append(all, fmt.Sprint(e["body"]))
			}
		}
		return strings.Join(all, ", ")
	}
	eventually(t, "the last answer has arrived", func() bool {
		return strings.Contains(bodies("up", "sub", "lead"), fmt.Sprintf("done: order %d", orders-1))
	})
	w.write("go", "")
	if p.wait(); p.ProcessState.ExitCode() != 0 {
		t.Fatalf("exit status %d: %s", p.ProcessState.ExitCode(), p.said())
	}
	sent, got := bodies("up", team.User, "sub"), bodies(child, team.ParentName, "lead")
	if sent != got || strings.Count(got, "order") != orders {
		t.Errorf("the parent sent %s\nthe child got %s", sent, got)
	}
	sent, got = bodies(child, "lead", team.ParentName), bodies("up", "sub", "lead")
	for _, one := range strings.Split(sent, ", ") {
		if strings.Count(got, one) != strings.Count(sent, one) {
			t.Errorf("the child sent %s\nthe parent got %s", sent, got)
			break
		}
	}
}

// TestATeamInATeamAwaitsAnAnswer: agents lead both teams. The child is not asked for its report
// before the answer to the question of its lead has come.
func TestATeamInATeamAwaitsAnAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	agent := func(does string) string {
		return fmt.Sprintf("acp:'%s' '%s' %s", self, filepath.Join(w.root, does), does)
	}
	w.write("up.yaml", fmt.Sprintf("name: up\nmaxDepth: 1\nlead: {agent: %q, env: {%s: actor}}\nmembers:\n"+
		"  - {name: sub, agent: team, goal: Write it, lead: %q, env: {%[2]s: actor}}\ntasks: [{id: inside, owner: sub}]\n",
		agent("answers"), helperMode, agent("asks")))
	w.must("run", "up.yaml", "--plain")
	links, _ := w.children("up")
	var story []string
	for _, e := range w.history(links[0].Team) {
		switch {
		case e.is("report_asked"):
			story = append(story, "report asked")
		case e.is("message_sent") && (e["to"] == team.ParentName || e["from"] == team.ParentName):
			story = append(story, fmt.Sprint(e["body"]))
		}
	}
	if got := strings.Join(story, ", "); got != "which order?, order 7, done: order 7, report asked" {
		t.Errorf("in the child: %s", got)
	}
}
