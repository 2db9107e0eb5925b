package render

import (
	"encoding/json"
	"fmt"
	"strings"

	"cadre/internal/render/excerpt"
	"cadre/internal/team"
)

// Input formats a tool's input for people, in one line: the command, or the path and the lines that
// are removed and added, or the URL. It formats the JSON of other tools. A long input is cut and
// marked.
func Input(tool, input string) string {
	words := team.InputWords(tool, input)
	if !strings.HasPrefix(words, "{") { // else it has all of it
		words += edit(input)
	}
	input = words
	if len(input) > mostInput {
		input = excerpt.Bytes(input, mostInput, fmt.Sprintf(" … (%d more bytes)", len(input)-mostInput))
	}
	return Clean(input)
}

// edit describes the change that the input of a tool for files asks for; "" for none.
func edit(input string) string {
	var in struct {
		Old     string `json:"old_string"`
		New     string `json:"new_string"`
		Source  string `json:"new_source"`
		Content string `json:"content"`
	}
	if json.Unmarshal([]byte(input), &in) != nil {
		return ""
	}
	var lines []string
	add := func(mark, text string) {
		if text != "" {
			for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
				lines = append(lines, mark+line)
			}
		}
	}
	add("-", in.Old)
	add("+", in.New)
	add("+", in.Source)
	add("+", in.Content)
	if len(lines) == 0 {
		return ""
	}
	return ": " + strings.Join(lines, "↵")
}
