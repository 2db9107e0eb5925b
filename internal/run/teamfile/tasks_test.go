package teamfile_test

import (
	"strings"
	"testing"

	"cadre/internal/run/teamfile"
)

func TestParseTasks(t *testing.T) {
	for name, text := range map[string]string{
		"list":       "- {id: b, blockedBy: [a, 7], run: x}\n- subject: free\n- {id: a, priority: high}\n",
		"mapping":    "tasks:\n- {id: b, blockedBy: [a, 7], run: x}\n- subject: free\n- {id: a, priority: high}\n",
		"json lines": `{"id":"b","blockedBy":["a",7],"run":"x"}` + "\n\n" + `{"subject":"free"}` + "\r\n" + `{"id":"a","priority":"high"}`,
		"json":       `{"tasks":[{"id":"b","blockedBy":["a",7],"run":"x"},{"subject":"free"},{"id":"a","priority":"high"}]}`,
		"json " +
			"list": "[{\"id\":\"b\",\"blockedBy\":[\"a\",7],\"run\":\"x\"},\n{\"subject\":\"free\"},{\"id\":\"a\",\"priority\":\"high\"}]",
	} {
		got, err := teamfile.ParseTasks([]byte(text), "t")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var said []string
		for _, one := range got {
			said = append(said, one.ID+"/"+one.Subject+"/"+one.Priority+"/"+strings.Join(one.BlockedBy, " "))
		}
		if s := strings.Join(said, ", "); s != "a/a/high/, b/b/medium/a 7, /free/medium/" {
			t.Errorf("%s: %s", name, s)
		}
	}
}

func TestParseTasksMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "t:1:1: there is no task here",
		"tasks: []":                 "t:1:1: there is no task here",
		"just text":                 "tasks are a list, but this is a single value",
		"- {run: x}":                "t:1:3: the task has neither an id nor a subject",
		"- {id: a}\n- {id: a}":      `t:2:8: a task "a" is already on line 1`,
		"- {id: a, blockedBy: [a]}": `task "a" is blocked by itself`,
		"- {id: a, blockedBy: [b]}\n- {id: b, blockedBy: [a]}": "these tasks wait for each other: a → b → a",
		"{\"id\":\"a\"}\n{\"idd\":\"b\"}":                      `t:2:2: unknown key "idd"`,
		"{\"id\":\"a\"}\n{\"id\":\"b}":                         "t:2:",
		"{\"id\":\"a\"}\n{\"id\":\"b\" \"run\":\"x\"}":         "t:2:11: not a JSON object: did not find expected ','",
		"{\"id\":\"a\"}\n{\"id\":\"b\",\n{\"id\":\"c\"}":       "t:2:11: not a JSON object",
		"- {id: a b}":               `"a b" cannot be the id of a task`,
		"- {id: a}\n---\n- {id: b}": "second document",
		"name: x\nmembers: []":      `unknown key "name" of a file of tasks`,
		"- x":                       "a task is a mapping",
	} {
		if _, err := teamfile.ParseTasks([]byte(text), "t"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func FuzzParseTasks(f *testing.F) {
	f.Add("- {id: a, blockedBy: [b]}\n- {id: b}")
	f.Add("{\"id\":\"a\"}\n{\"id\":\"b\"}")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := teamfile.ParseTasks([]byte(text), "t")
		if err == nil && len(got) == 0 {
			t.Errorf("%q: no task and no mistake", text)
		}
		place := map[string]int{}
		for i, one := range got {
			place[one.ID] = i + 1
		}
		for i, one := range got {
			for _, id := range one.BlockedBy {
				if place[id] > i {
					t.Errorf("%q: %s comes before %s", text, one.ID, id)
				}
			}
		}
	})
}
