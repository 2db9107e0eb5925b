package envelope

import (
	"slices"
	"strings"

	"cadre/internal/sys/lazyregexp"
	"cadre/internal/team"
)

// Part is a part of what a session was given, for a person.
type Part struct {
	From string // sender of a message: a member's name, [team.User], or "cadre"; "" for other text
	Kind string // words for the kind of message, such as "question urgent"
	Text string
}

// Cadre is the sender of the team's own messages in a [Part].
const Cadre = "cadre"

var attributes = lazyregexp.New(`(from|kind)="([^"\n]*)"`)

// Parts divides a text that a session was given into its messages and the text around them. It
// leaves out what only explains the form to a model: frames, and how to answer a request.
func Parts(text string) (parts []Part) {
	other := func(text string) {
		var kept []string
		for line := range strings.SplitSeq(text, "\n") {
			if blank := line == "" && (len(kept) == 0 || kept[len(kept)-1] == ""); !blank && !forModel(line) {
				kept = append(kept, line)
			}
		}
		if text := strings.Trim(strings.Join(kept, "\n"), "\n"); strings.TrimSpace(text) != "" {
			parts = append(parts, Part{Text: text})
		}
	}
	done := 0
	for _, at := range opening().FindAllStringSubmatchIndex(text, -1) {
		if at[0] < done { // in the body of another one, where it is no message
			continue
		}
		tag := text[at[2]:at[3]]
		body, _, whole := strings.Cut(text[at[1]:], "\n</"+tag+">")
		if !whole {
			continue
		}
		other(text[done:at[0]])
		done = at[1] + len(body) + len("\n</"+tag+">")
		part := Part{From: Cadre, Text: strings.ReplaceAll(strings.Trim(body, "\n"), "&lt;", "<")}
		for _, found := range attributes().FindAllStringSubmatch(text[at[0]:at[1]], -1) {
			switch {
			case found[1] == "kind":
				part.Kind = strings.ReplaceAll(found[2], "_", " ")
			case tag == memberFrame.tag:
				part.From = found[2]
			}
		}
		if tag == userFrame.tag {
			part.From = team.User
		}
		parts = append(parts, part)
	}
	other(text[done:])
	return parts
}

// forModel reports whether a line outside a message only explains the form of messages.
func forModel(line string) bool {
	frames := []frame{userFrame, teamFrame, memberFrame}
	return slices.ContainsFunc(frames, func(f frame) bool { return line == f.meaning }) ||
		strings.HasPrefix(line, "To answer the request: ")
}
