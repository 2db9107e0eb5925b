package teamfile_test

import (
	"fmt"
	"strings"
	"testing"

	"cadre/internal/run/teamfile"
)

// withTasks returns a team file with these tasks, from line 4 on.
func withTasks(tasks string) []byte {
	return []byte("name: x\nmembers: [{name: w, agent: shell}]\ntasks:\n" + tasks)
}

func TestForEach(t *testing.T) {
	for tasks, want := range map[string]string{
		"- {id: a, run: x, forEach: [one, 2, 1.20, true, null, {b: 1, a: '<x>'}, [1]]}":                            `["one" 2 1.20 true null {"b":1,"a":"<x>"} [1]]`,
		"- {id: a, run: x, forEach: []}":                                                                           "[]",
		"- {id: a, run: x, forEach: ['$(touch x)', '; touch x', -rf, \"a\\nb\"]}":                                  `["$(touch x)" "; touch x" "-rf" "a\nb"]`,
		"- {id: a, run: x, forEach: {glob: ./src/**/*.go}}":                                                        "glob src/**/*.go",
		"- {id: a, run: x, forEach: {run: 'git ls-files'}}":                                                        "run git ls-files",
		"- {id: a, run: x, matrix: {os: [linux, darwin], go: ['1.25', 1.30], exclude: [{os: linux, go: '1.25'}]}}": `[{os ["linux" "darwin"]} {go ["1.25" 1.30]}] without [{"os":"linux","go":"1.25"}]`,
		"- {id: a, run: x, forEach: }":                                                                             "none",
	} {
		f, err := teamfile.Parse(withTasks(tasks), "t", everyAgent)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		got := "none"
		if e := f.Tasks[0].ForEach; e != nil {
			switch {
			case e.Glob != "":
				got = "glob " + e.Glob
			case e.Run != "":
				got = "run " + e.Run
			case e.Matrix != nil:
				got = fmt.Sprintf("%s without %s", e.Matrix, e.Exclude)
			default:
				got = fmt.Sprintf("%s", e.Items)
			}
		}
		if got != want {
			t.Errorf("%s:\n%s, want\n%s", tasks, got, want)
		}
	}
}

func TestForEachMistakes(t *testing.T) {
	many := strings.Repeat("x, ", 1000) + "x"
	for tasks, want := range map[string]string{
		"- {id: a, run: x, forEach: [1], matrix: {os: [linux]}}": `t:4:41: task "a" has forEach and matrix; keep one of them`,
		"- {id: a, run: x, forEach: here}":                       "t:4:28: forEach is a list, {glob: PATTERN} or {run: COMMAND}",
		"- {id: a, run: x, forEach: {}}":                         "t:4:28: forEach has neither glob nor run",
		"- {id: a, run: x, forEach: {glob: a, run: b}}":          "t:4:43: forEach has glob and run",
		"- {id: a, run: x, forEach: {glob: ../a}}":               `t:4:35: "../a" cannot be a path of a task: it leads out of`,
		"- {id: a, run: x, forEach: {run: ' '}}":                 "t:4:34: the command of forEach is empty",
		"- {id: a, run: x, forEach: {globs: a}}":                 `unknown key "globs" of forEach`,
		"- {id: a, run: x, forEach: [" + many + "]}":             "forEach has 1001 items; a task makes at most 1000 tasks",
		"- {id: a, run: x, forEach: [ok, '" + strings.Repeat("y",
			5000) + "']}": "t:4:33: an item has 5002 bytes, of at most 4096",
		"- {id: a, run: x, forEach: [\"\\0\"]}":                                         "t:4:29: an item has a NUL character",
		"- {id: a, run: x, matrix: [1]}":                                                "t:4:27: matrix is a mapping of names to lists",
		"- {id: a, run: x, matrix: {}}":                                                 "t:4:27: the matrix is empty",
		"- {id: a, run: x, matrix: {os: linux}}":                                        "t:4:32: os is a list, but this is a single value",
		"- {id: a, run: x, matrix: {os: [a], os: [b]}}":                                 `t:4:37: the key "os" is here a second time`,
		"- {id: a, run: x, matrix: {os: [a], exclude: [{go: 1}]}}":                      `t:4:27: the matrix leaves out combinations by "go"`,
		"- {id: a, run: x, matrix: {a: [" + many[:300] + "], b: [" + many[:300] + "]}}": "10,000 items are too many",
		"- {id: a, run: x, when: always, forEach: [1]}":                                 `t:4:25: task "a" has when:`,
		"- {id: a, run: x, forEach: [1]}\n- {id: a-2, run: x}":                          `t:5:8: "a-2" is the name of a task that "a" makes`,
		"- {id: a.b, run: x}\n- {id: a_b, run: x}\n- {id: c, run: x, blockedBy: [a_b]}\n- {id: d, run: x, blockedBy: [c, a.b]}": `t:5:8: the results of "a.b" and "a_b" are both CADRE_RESULT_A_B for the command of "d"`,
	} {
		if _, err := teamfile.Parse(withTasks(tasks), "t", everyAgent); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%.200s:\n%v\nwant %s", tasks, err, want)
		}
	}
	// names that become one are no mistake for a command that does not find both
	if _, err := teamfile.Parse(withTasks("- {id: a.b, run: x}\n- {id: a_b, run: x, blockedBy: [a.b]}"), "t",
		everyAgent); err != nil {
		t.Error(err)
	}
}
