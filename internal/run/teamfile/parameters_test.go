package teamfile_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cadre/internal/run/teamfile"
)

// template is a team file with a parameter of each type.
const template = `name: demo
parameters:
  goal: {help: what to build}
  base: {default: main}
  rounds: {type: int, default: 3}
  quick: {type: bool, default: false}
  files: {type: list, default: [a.go, b.go]}
  dir: {type: path, default: src}
  agent: {type: enum, values: [external, shell], default: external}
goal: 'Build ${{ goal }}, not $${{ goal }}'
members:
  - {name: ann, agent: '${{ agent }}', prompt: 'Look at ${{ files }} in ${{dir}}.'}
  - {name: w, agent: shell}
tasks:
  - {id: one, subject: 'Do ${{ goal }}', description: '${{ goal }}', owner: ann, metadata: {run: '${{ rounds }}'}}
  - {id: two, run: 'echo "$CADRE_PARAM_GOAL"', forEach: '${{ files }}', retries: '${{ rounds }}', env: {A: '${{ base }}'}}
  - {id: three, owner: ann, until: {run: 'test -n "$CADRE_PARAM_FILES"', rounds: '${{ rounds }}'}}
withCheckChanges: ${{ quick }}
`

func with(t *testing.T, text string, words ...string) (*teamfile.File, error) {
	t.Helper()
	set, err := teamfile.ParseSettings(words)
	if err != nil {
		t.Fatal(err)
	}
	return teamfile.ParseWith([]byte(text), "t.yaml", everyAgent, set)
}

func TestParameters(t *testing.T) {
	f, err := with(t, template, "goal=a parser", "rounds=5", "quick=true", "files=x y", "files=z", "dir=./-rf/",
		"base=-rf")
	if err != nil {
		t.Fatal(err)
	}
	variables := []string{"CADRE_PARAM_GOAL=a parser", "CADRE_PARAM_BASE=-rf", "CADRE_PARAM_ROUNDS=5",
		"CADRE_PARAM_QUICK=true", "CADRE_PARAM_FILES=x y\nz", "CADRE_PARAM_DIR=./-rf", "CADRE_PARAM_AGENT=external"}
	two := f.Tasks[1]
	for _, c := range []struct{ what, got, want any }{
		{"goal", f.Goal, "Build a parser, not ${{ goal }}"},
		{"agent", f.Members[0].Agent, "external"},
		{"prompt", f.Members[0].Prompt, "Look at x y, z in ./-rf."},
		{"subject", f.Tasks[0].Subject, "Do a parser"},
		{"metadata", string(f.Tasks[0].Metadata["run"]), "5"},
		{"variables of a task without a command", f.Tasks[0].Env, []string(nil)},
		{"items", fmt.Sprintf("%s", two.ForEach.Items), `["x y" "z"]`},
		{"retries", two.Retries, 5},
		{"variables", two.Env, append(slices.Clone(variables), "A=-rf")},
		{"command", two.Run, `echo "$CADRE_PARAM_GOAL"`},
		{"rounds", f.Tasks[2].Rounds, 5},
		{"variables of a check", f.Tasks[2].Env, variables},
		{"a key that is true or false", f.CheckChanges, true},
		{"parameters", f.Parameters[4], teamfile.Parameter{Name: "files", Type: "list", Default: `["a.go","b.go"]`}},
		{"a required parameter", f.Parameters[0], teamfile.Parameter{Name: "goal", Type: "string", Required: true,
			Help: "what to build"}},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: got %q, want %q", c.what, c.got, c.want)
		}
	}
}

// TestValuesAreOnlyValues: whatever a value holds, it is a value in prose and in the environment,
// and no command has it.
func TestValuesAreOnlyValues(t *testing.T) {
	const text = `name: demo
parameters: {word: {}}
goal: 'Say ${{ word }} twice: ${{ word }}'
members: [{name: w, agent: shell}, {name: ann, agent: claude, prompt: "${{ word }}"}]
commands: {named: 'test -n "$CADRE_PARAM_WORD"'}
tasks:
  - {id: a, description: "${{ word }}", run: 'echo "$CADRE_PARAM_WORD"', check: named}
  - {id: b, subject: "about ${{ word }}", forEach: {run: 'echo "$CADRE_PARAM_WORD"'}, run: 'echo "$CADRE_ITEM"'}
`
	check := func(t interface{ Errorf(string, ...any) }, value string, f *teamfile.File, err error) {
		if err != nil {
			t.Errorf("%q: %v", value, err)
			return
		}
		for _, c := range [][2]string{{f.Goal, "Say " + value + " twice: " + value}, {f.Members[1].Prompt, value},
			{f.Tasks[0].Description, value}, {f.Tasks[1].Subject, strings.TrimSpace(
				"about " + strings.Join(strings.Fields(value), " "))},
			{f.Tasks[0].Run, `echo "$CADRE_PARAM_WORD"`}, {f.Tasks[0].Check, `test -n "$CADRE_PARAM_WORD"`},
			{f.Tasks[1].ForEach.Run, `echo "$CADRE_PARAM_WORD"`}, {f.Tasks[1].Run, `echo "$CADRE_ITEM"`},
			{strings.Join(f.Tasks[0].Env, "|"), "CADRE_PARAM_WORD=" + value}} {
			if strings.TrimRight(c[0], " ") != strings.TrimRight(c[1], " ") {
				t.Errorf("%q: got %q, want %q", value, c[0], c[1])
			}
		}
	}
	for _, value := range []string{"$(touch x)", "; touch x", "-rf", "two\nlines", "': [}\n- run: touch x\n",
		"${{ word }}", "$${{ word }}", "null", "true", "0x10", "*alias", "!!int 5", "", "é\t"} {
		f, err := with(t, text, "word="+value)
		check(t, value, f, err)
	}
	rapid.Check(t, func(r *rapid.T) {
		value := rapid.StringOf(rapid.RuneFrom([]rune("ab \n\t{}[]$'\"`:#&*!|>%@-,?\\"))).Draw(r, "value")
		f, err := with(t, text, "word="+value)
		check(r, value, f, err)
	})
}

// TestValueMistakes: a mistake in a value names the flag, and one in the file its place.
func TestValueMistakes(t *testing.T) {
	for _, c := range []struct{ set, want string }{
		{"", "t.yaml:3:3: the parameter goal has no default, so a run must set it: goal=TEXT (what to build)"},
		{"goal=x gaol=y", `--set gaol: there is no such parameter; did you mean "goal"?`},
		{"goal=x goal=y", "--set goal: the value is given twice; only a list takes several"},
		{"goal=x rounds=many", `--set rounds: the value is a whole number, not "many"`},
		{"goal=x quick=yes", `--set quick: the value is true or false, not "yes"`},
		{"goal=x agent=gpt", `--set agent: the value is one of external, shell, not "gpt"`},
		{"goal=x dir=/etc", `--set dir: the value is a path below the team's directory, not "/etc"`},
		{"goal=x dir=a/../../b", `--set dir: the value is a path below the team's directory, not "a/../../b"`},
		{"goal=x files=[1,", `--set files: "[1," is not a JSON list of texts`},
		{"goal=x files=[\"\"]", `--set files: the value is a list of texts, not ""`},
		{"goal=\x00", "--set goal: the value is not a text: the control character"},
		{"goal=\xff", "--set goal: the value is not a text: the byte 0xff is not UTF-8"},
		{"goal=" + strings.Repeat("x", teamfile.MaxValue+1), "--set goal: the value has 32769 bytes; a value has at " +
			"most 32768"},
		{"goal=x rounds=-1", `t.yaml:16:82: retries is a whole number from 0 to 100, not "-1" (here is the value of ` +
			`--set rounds)`},
	} {
		_, err := with(t, template, strings.Fields(c.set)...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("--set %.60s: got %v, want %s", c.set, err, c.want)
		}
	}
	if _, err := with(t, template); strings.Count(err.Error(), "t.yaml:") != 1 {
		t.Errorf("a missing value has more than one error: %v", err)
	}
	if _, err := with(t, "name: a\nmembers: [{name: w}]\ntasks: [{id: a, run: x}]\n", "a=b"); err == nil ||
		err.Error() != "--set a: this team file has no parameters" {
		t.Errorf("a file without parameters: %v", err)
	}
	if _, err := with(t, strings.Replace(template, "values: [external, shell]", "values: ['acp:x']", 1), "goal=x",
		"agent=acp:x"); err == nil || !strings.Contains(err.Error(), "an agent with a command cannot come from a parameter") {
		t.Errorf("a command as an agent: %v", err)
	}
	if _, err := teamfile.ParseSettings([]string{"goal"}); err == nil || err.Error() !=
		"--set goal: there is no value; write NAME=VALUE" {
		t.Errorf("a setting without a value: %v", err)
	}
}

// TestEscaped: an escaped reference is a text, in a command too.
func TestEscaped(t *testing.T) {
	f, err := with(t, "name: a\nparameters: {x: {default: v}}\ngoal: '$${{ x }} is ${{ x }}'\nmembers: [{name: w}]\n"+
		"tasks: [{id: a, run: 'echo $${{ x }}'}]\n")
	if err != nil || f.Goal != "${{ x }} is v" || f.Tasks[0].Run != "echo ${{ x }}" {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestTextWithoutParameters: a file that declares no parameters has no references.
func TestTextWithoutParameters(t *testing.T) {
	f, err := with(t, "name: a\ngoal: use ${{ x }}\nmembers: [{name: w}]\ntasks: [{id: a, run: 'echo ${{ x }}'}]\n")
	if err != nil || f.Goal != "use ${{ x }}" || f.Tasks[0].Run != "echo ${{ x }}" {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestUnset: a file is checked without values, and its mistakes are found.
func TestUnset(t *testing.T) {
	f, err := teamfile.ParseUnset([]byte(template), "t.yaml", everyAgent)
	if err != nil || f.Goal != "Build goal, not ${{ goal }}" {
		t.Errorf("%+v, %v", f, err)
	}
	_, err = teamfile.ParseUnset([]byte(template+"clean: maybe\n"), "t.yaml", everyAgent)
	if all, is := errors.AsType[teamfile.Errors](err); !is || len(all) != 1 || all[0].Line != 19 {
		t.Errorf("%v", err)
	}
}

// TestDigestHasTheValues: the same values give the same digest, however they are set.
func TestDigestHasTheValues(t *testing.T) {
	digest := func(words ...string) string {
		t.Helper()
		f, err := with(t, template, words...)
		if err != nil {
			t.Fatal(err)
		}
		return f.Digest()
	}
	one := digest("goal=x")
	if one != digest("rounds=3", "goal=x") || one != digest("goal=x", `files=["a.go", "b.go"]`) {
		t.Error("the default counts as another value")
	}
	if one == digest("goal=y") || one == digest("goal=x", "rounds=4") {
		t.Error("another value gives the same digest")
	}
}

// TestValuesStaySmall: values cannot make a file larger than a file may be.
func TestValuesStaySmall(t *testing.T) {
	text := "name: a\nparameters: {x: {}}\nmembers: [{name: w, agent: external}]\ntasks:\n" +
		strings.Repeat("- {id: t, description: '"+strings.Repeat("${{x}}", 100)+"'}\n", 10)
	_, err := with(t, text, "x="+strings.Repeat("x", teamfile.MaxValue))
	if err == nil || !strings.Contains(err.Error(), "with the values of its parameters the file has more than 16777216") {
		t.Errorf("%.300v", err)
	}
}

// TestParametersFitTheSchema: an editor takes what the parser takes.
func TestParametersFitTheSchema(t *testing.T) {
	text := strings.Replace(template, "goal: {help: what to build}", "goal: {help: what to build, default: it}", 1)
	if parser, bySchema := problems(t, compiled(t), text); len(parser) > 0 || bySchema != nil {
		t.Errorf("the parser says %q, the schema %v", parser, bySchema)
	}
}
