package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cadre/internal/agent/agenttest"
)

// part is what the models of a template do: for each task the commands that they run, before each
// try to complete it, and the result.
type part struct {
	commands map[string][]string // by the id of the task, and by "ID again" after a rejection
	results  map[string]string   // else the subject says enough
	verdicts []string            // ids of the verifications, which accept
	rejects  string              // id of the verification that rejects
	plans    string              // member whose plan must be approved first
}

// agentOf maps the protocol of a request to the agent that sends it.
var agentOf = map[string]string{"anthropic": "claude", "openai": "codex", "gemini": "gemini"}

func (p part) turn(r *agenttest.Request) agenttest.Turn {
	id, calls := task(r)
	commands, updates := p.commands[id], called(calls, "TaskUpdate")
	if again := p.commands[id+" again"]; again != nil && r.Has("The last result was not accepted by") {
		commands = again
	}
	acts := len(calls) - updates - called(calls, "SubmitPlan")
	result := "the result of " + id
	if p.results[id] != "" {
		result = p.results[id]
	}
	update := map[string]any{"taskId": id, "status": "completed", "result": result}
	if slices.Contains(p.verdicts, id) {
		update["verdict"] = "accepted"
	}
	if id == p.rejects && id != "" {
		update["verdict"] = "rejected"
	}
	switch {
	case id == "":
		return agenttest.Say("There is nothing for me to do.")
	case p.plans != "" && who(r) == p.plans && called(all(r), "SubmitPlan") == 0:
		return use(r, "SubmitPlan", map[string]any{"plan": "I write it."})
	case p.plans != "" && who(r) == p.plans && !r.Has("Your plan is approved"):
		return agenttest.Say("I wait for the answer.")
	case updates >= max(len(commands), 1):
		return agenttest.Say("I am done.")
	case acts == updates && len(commands) > 0:
		return shells[agentOf[r.Protocol]](commands[updates])
	}
	return use(r, "TaskUpdate", update)
}

// TestTemplates runs the templates that have agents, with real agents, and judges each by what is
// in the repository at its end.
func TestTemplates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		programs []string
		set      []string
		play     part
		shows    map[string]string // texts by the file that has them at the end
	}{
		{"review", []string{"claude"}, []string{"base=HEAD~1", "focus=$(touch evil)"},
			part{verdicts: []string{"6", "7", "8"}, results: map[string]string{"report": "word.txt:1 is wrong. do not merge"}},
			map[string]string{"REVIEW.md": "word.txt:1 is wrong. do not merge"}},
		{"investigate", []string{"gemini"}, []string{"agent=gemini", "question=Why; touch evil?"},
			part{results: map[string]string{"first": "It is the code.", "conclusion": "It is the code, and that is certain."}},
			map[string]string{"INVESTIGATION.md": "It is the code, and that is certain."}},
		{"migrate", []string{"codex"}, []string{"agent=codex", "files=*.list", "change=Replace one by two.\n- run: touch evil",
			`check=grep -q two "$CADRE_ITEM"`, "test=! grep one *.list", "workers=2"},
			part{commands: map[string][]string{"change-1": {"echo two >a.list"},
				"change-2": {"echo two >b.list"}}},
			map[string]string{"a.list": "two", "b.list": "two"}},
		{"fix", []string{"claude"}, []string{"test=grep -qx 42 word.txt", "about=$(touch evil)"},
			part{commands: map[string][]string{"fix": {"echo 41 >word.txt", "echo 42 >word.txt"}}},
			map[string]string{"word.txt": "42", "fix-report.md": "What was wrong"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStudio(t, c.play.turn, c.programs...)
			s.templated()
			args := []string{"--template", c.name, "--dangerously-skip-permissions"}
			for _, value := range c.set {
				args = append(args, "--set", value)
			}
			s.ended(s.run(args...), 0)
			for file, want := range c.shows {
				if text := s.text(file); !strings.Contains(text, want) {
					t.Errorf("%s has no %q:\n%s", file, want, text)
				}
			}
			if has(s.dir, "evil") {
				t.Error("a value ran as a command")
			}
		})
	}
}

// templated makes a repository with a change.
func (s *studio) templated() {
	s.t.Helper()
	s.repository()
	for _, text := range []string{"old", "new"} {
		for _, name := range []string{"word.txt", "a.list", "b.list"} {
			if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text+" one\n"), 0o600); err != nil {
				s.t.Fatal(err)
			}
		}
		s.gitSays("add", "-A")
		s.gitSays("commit", "-qm", text)
	}
}

// TestTemplateFeature: the plan is approved by the user, Claude builds it in a worktree, Codex
// gives it back once and then accepts it, and what was accepted is committed.
func TestTemplateFeature(t *testing.T) {
	t.Parallel()
	p := part{plans: "builder", rejects: "3", results: map[string]string{"3": "it is quick, and not quiet"},
		verdicts: []string{"4"}, commands: map[string][]string{"build": {"echo quick >quiet.txt"},
			"build again": {"echo quiet >quiet.txt"}}}
	s := newStudio(t, p.turn, "claude", "codex")
	s.templated()
	began := s.start("run", "--template", "feature", "--dangerously-skip-permissions", "--set",
		"feature=A flag --quiet", "--set", "reviewer=codex", "--set", "test=test -s quiet.txt")
	plan := ""
	s.waitFor("the plan is submitted", func() bool {
		plan = regexp.MustCompile(`plan-\d+@builder`).FindString(s.cadre("plan", "list", "feature").out)
		return plan != "" || began.over()
	})
	if has(s.dir, "quiet.txt") {
		t.Error("it was built before the plan was approved")
	}
	s.must("plan", "feature", plan, "--approve")
	began.wait()
	if text := s.gitSays("show", "HEAD:quiet.txt"); strings.TrimSpace(text) != "quiet" {
		t.Errorf("committed is %q\n%s\n%s", text, began.said(), s.model.Story())
	}
	log := s.must("log", "feature")
	for _, line := range []string{"reviewer rejected the result (1 of 3): it is quick, and not quiet", "accepted by reviewer"} {
		if !strings.Contains(log, line) {
			t.Errorf("the log does not say %q:\n%s", line, log)
		}
	}
}

// TestReleaseCheck runs the template release-check, which needs no agent, where a release is right
// and where it is not.
func TestReleaseCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	git := func(args ...string) { t.Helper(); w.git(args...) }
	git("init", "-q")
	w.write("CHANGELOG.md", "# 1\n")
	git("add", "-A")
	git("commit", "-qm", "Begin")
	git("tag", "v1")
	w.write("CHANGELOG.md", "# 2\n\n- It is faster.\n")
	git("commit", "-qam", "Make it faster")
	w.must("run", "--template", "release-check", "--set", "test=true")
	report := func() string {
		data, _ := os.ReadFile(filepath.Join(w.dir, "release-check-report.md"))
		return string(data)
	}
	for _, want := range []string{"It can be released", "1 commits since v1", "Make it faster", "It is faster."} {
		if text := report(); !strings.Contains(text, want) {
			t.Errorf("the report has no %q:\n%s", want, text)
		}
	}
	git("tag", "v2")
	w.write("code.sh", "# DO NOT RELEASE\n")
	git("add", "-A")
	git("commit", "-qm", "Something")
	w.write("code.sh", "# DO NOT RELEASE this\n")
	r := w.cadre("run", "--template", "release-check", "--set", "test=touch ran; false", "--set",
		"changelog=-rf; touch evil", "--yes")
	if text := report(); r.code != 1 || !strings.Contains(text, "It cannot be released yet") ||
		!strings.Contains(text, "code.sh:1:# DO NOT RELEASE") || !strings.Contains(text, "There is no ./-rf; touch evil") {
		t.Errorf("status %d, %s\n%s", r.code, r.err, text)
	}
	if has(w.dir, "evil") || !has(w.dir, "ran") {
		t.Error("a value ran as a command, or the tests did not run")
	}
}

// TestTemplatesOfAProject: a template that came with a project runs only with the text to which the
// user agreed, and does not hide another one before.
func TestTemplatesOfAProject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mine := func(command string) {
		w.write(".cadre/templates/mine.yaml", "# Greet.\nname: mine\nparameters: {word: {default: hi}}\n"+
			"members: [{name: w}]\ntasks: [{id: a, run: '"+command+"'}]\n")
	}
	refused := func(args ...string) {
		t.Helper()
		if r := w.cadre(args...); r.code != 2 || !strings.Contains(r.err, "cadre trust") {
			t.Errorf("%q ended with %d: %s", args, r.code, r.err)
		}
	}
	mine(`touch ran; printf "%s" "$CADRE_PARAM_WORD" >word`)
	w.write(".cadre/templates/hello.yaml", "name: hello\nmembers: [{name: w}]\ntasks: [{id: a, run: touch ran}]\n")
	w.write(".cadre/templates/broken.yaml", "name: [\n")
	refused("run", "--template", "mine")
	refused("init", "mine")
	w.must("run", "--template", "hello") // the one in the program
	if has(w.dir, "ran") || has(w.dir, "mine.yaml") {
		t.Fatal("a template that is not trusted was used")
	}
	type listed struct {
		Name, Source, Trouble string
		Untrusted             bool
	}
	for _, one := range read[[]listed](w, "templates") {
		if ours := one.Source == "project"; one.Untrusted != ours || (one.Trouble != "") != (one.Name == "broken") {
			t.Errorf("listed as %+v", one)
		}
	}
	w.must("trust", "--yes")
	for _, c := range []struct {
		set   []string
		value string
		usual bool
	}{{nil, "hi", true}, {[]string{"--set", "word=$(touch evil)"}, "$(touch evil)", false}} {
		look := append([]string{"run", "--template", "mine", "--dry-run"}, c.set...)
		said := regexp.MustCompile(`(?m)^word +(.*?)( +default)?$`).FindStringSubmatch(w.must(look...))
		if said == nil || said[1] != c.value || (said[2] != "") != c.usual {
			t.Errorf("%q says %q", look, said)
		}
		type parameter struct {
			Name, Value string
			Default     bool
		}
		is := read[struct{ Parameters []parameter }](w, look...).Parameters
		if want := []parameter{{"word", c.value, c.usual}}; !slices.Equal(is, want) {
			t.Errorf("the values are %+v, want %+v", is, want)
		}
	}
	for _, value := range []string{"$(touch evil)", "; touch evil", "-rf", "one\ntwo", "': [}\nrun: touch evil"} {
		w.must("run", "--template", "mine", "--set", "word="+value)
		if word, _ := os.ReadFile(filepath.Join(w.dir, "word")); string(word) != value {
			t.Errorf("the value %q arrived as %q", value, word)
		}
	}
	if has(w.dir, "evil") || !has(w.dir, "ran") {
		t.Error("a value ran as a command, or nothing did")
	}
	mine("touch changed")
	refused("run", "--template", "mine")
	w.must("trust", "--yes")
	w.must("run", "--template", "mine")
	w.must("trust", "--revoke")
	refused("run", "--template", "mine")
	if !has(w.dir, "changed") {
		t.Error("the trusted template did not run")
	}
}
