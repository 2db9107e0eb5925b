// Package sessionview turns what a session shows into lines for people.
//
// # Guarantees
//
//   - A line begins with the symbol of its kind, or with a bar where it quotes. So nothing that an agent
//     writes passes for a line of cadre.
//   - A line has no line break and no character that controls a terminal, whatever the agent wrote.
//   - Nothing is shown twice: a text that came in parts is one text.
package sessionview

import (
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cadre/internal/agent/envelope"
	"cadre/internal/agent/sessionlog"
	"cadre/internal/render"
	"cadre/internal/render/excerpt"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// Line is one line of what a session shows.
type Line struct {
	At   team.Time // 0 for a line that continues the one before
	Text string
}

// These bound the lines of a text that is not the agent's own: a prompt, or the output of a tool.
// The lines that are left out are counted.
const (
	mostOfAPrompt  = 12
	mostOfAMessage = 6
	mostOfAResult  = 6
	mostOfARunning = 12
)

// Lines turns the entries of one log into lines, in order. The zero value starts a log.
type Lines struct {
	text    unfinished             // of the agent
	outputs map[string]*unfinished // of the tools that are running, by the id of the use
	latest  string                 // the use whose output came last
	coming  bool                   // unfinished texts are returned line by line, as they come
	works   bool                   // the turn has shown something
}

// Add returns the lines that the entry completes. It holds an unfinished text back until the text
// is finished, or another entry follows. It holds the output of a tool back until the tool has
// ended.
func (l *Lines) Add(e sessionlog.Entry) (lines []Line) {
	if e.Kind == sessionlog.TurnEnded && !l.works && !e.Failed && !e.Interrupted {
		return l.text.rest() // a shell's turn also ends where it had nothing to do
	}
	switch e.Kind {
	case sessionlog.TurnEnded:
		l.works = false
	case sessionlog.Started, sessionlog.Ended, sessionlog.Prompt, sessionlog.Usage, sessionlog.Lost:
	default:
		l.works = true
	}
	switch e.Kind {
	case sessionlog.Part:
		l.text.add(e.At, e.Text)
		if l.coming {
			return l.text.complete()
		}
		return nil
	case sessionlog.Output:
		if l.coming {
			lines = l.text.rest()
		}
		return append(lines, l.output(e)...)
	case sessionlog.Text:
		return l.finish(e)
	case sessionlog.Plan:
		return l.plan(e)
	case sessionlog.Result:
		lines = l.text.rest()
		if result, is := l.result(e); is {
			return append(lines, result...)
		}
	case sessionlog.Started, sessionlog.Ended: // no tool of the session is running
		lines = l.Rest()
		l.outputs = nil
	default:
		lines = l.text.rest()
	}
	return append(lines, of(e)...)
}

// finish returns the lines of a text that the agent finished. Its parts may have come before.
func (l *Lines) finish(e sessionlog.Entry) []Line {
	if e.Cut && l.text.exceeds(e.Text) { // the parts have more of it
		return l.text.rest()
	}
	if rest, is := l.text.after(e.Text); is {
		l.text.text = rest
		if e.Cut {
			l.text.text += " …"
		}
		return l.text.rest()
	}
	if !l.text.past(e.Text) {
		l.text = unfinished{}
		return of(e)
	}
	if l.coming { // The text begins a plan that is not complete yet: keep it.
		return l.text.complete()
	}
	return of(e)
}

// plan returns the lines of a plan, or one that names the text that came last as the plan.
func (l *Lines) plan(e sessionlog.Entry) []Line {
	rest, is := l.text.after(e.Text)
	if is {
		l.text.text = rest
	}
	if is || e.Cut && l.text.exceeds(e.Text) {
		return append(l.text.rest(), Line{e.At, "? that is its plan"})
	}
	if strings.HasPrefix(e.Text, strings.TrimSpace(l.text.text)) {
		l.text.text = ""
	}
	return append(l.text.rest(), of(e)...)
}

// Unhosted says that no process runs a session, and that the command resume continues it.
func Unhosted(resume string) string {
	return "No process runs this session. Continue the team with: " + resume
}

// All returns the lines of the entries as they come, and at the end those of unfinished texts. It
// stops at an error.
func All(entries iter.Seq2[sessionlog.Entry, error]) iter.Seq2[[]Line, error] {
	return func(yield func([]Line, error) bool) {
		lines := Lines{coming: true}
		for e, err := range entries {
			if err != nil {
				yield(nil, err)
				return
			}
			if some := lines.Add(e); len(some) > 0 && !yield(some, nil) {
				return
			}
		}
		yield(lines.Rest(), nil)
	}
}

// Rest returns the lines of unfinished texts, and does not return them again.
func (l *Lines) Rest() []Line {
	lines := l.text.rest()
	for _, id := range slices.Sorted(maps.Keys(l.outputs)) {
		lines = append(lines, l.outputs[id].flush()...)
	}
	return lines
}

// Writing returns the unfinished text of the agent, or else the end of the output that came last of
// the tools that are running.
func (l *Lines) Writing() string {
	if use := l.outputs[l.latest]; l.text.text == "" && use != nil {
		last, _ := excerpt.LastLines(use.text, mostOfARunning)
		return last
	}
	return l.text.text
}

// of returns the lines of an entry that is complete by itself.
func of(e sessionlog.Entry) []Line {
	one := func(text string) []Line { return []Line{{e.At, text}} }
	because := ""
	if e.Text != "" {
		because = ": " + sanitize.Line(e.Text)
	}
	cut := ""
	if e.Cut {
		cut = " …"
	}
	switch e.Kind {
	case sessionlog.Started:
		return one("· the session started" + because)
	case sessionlog.Prompt:
		return prompt(e) // none for one that only wakes a shell
	case sessionlog.Turn:
		if e.Text != "" {
			return one("· " + sanitize.Line(e.Text))
		}
	case sessionlog.Text:
		return paragraph(e.At, quoted, e.Text+cut, 0)
	case sessionlog.Tool:
		return one("▸ " + use(e))
	case sessionlog.Result:
		symbol := "✓ "
		if e.Failed {
			symbol = "✗ "
		}
		if strings.TrimSpace(e.Text) == "" {
			return one(symbol + map[bool]string{true: "failed", false: "done"}[e.Failed])
		}
		return ending(e, symbol)
	case sessionlog.Question:
		return one("? it asks to use " + use(e))
	case sessionlog.Plan:
		return paragraph(e.At, "? ", "its plan: "+e.Text+cut, 0)
	case sessionlog.Answer:
		if e.Failed {
			return one("✗ refused" + because)
		}
		return one("✓ allowed" + because)
	case sessionlog.Compacted:
		return one("! its context was compacted")
	case sessionlog.Retry:
		return one("↺ it tries again" + because)
	case sessionlog.TurnEnded:
		switch {
		case e.Interrupted:
			return one("! its turn was interrupted")
		case e.Failed:
			return one("✗ its turn failed" + because)
		}
		return one("· its turn ended")
	case sessionlog.Ended:
		if e.Failed {
			return one("✗ the session ended" + because)
		}
		return one("· the session ended")
	case sessionlog.Lost:
		if e.Count == 1 {
			return one("! 1 earlier entry was dropped")
		}
		return one("! " + strconv.FormatInt(e.Count, 10) + " earlier entries were dropped")
	}
	return nil
}

// prompt returns the lines of what the session was given: each message, and the text around them.
func prompt(e sessionlog.Entry) (lines []Line) {
	for _, part := range envelope.Parts(e.Text) {
		label, most := "it was given", mostOfAPrompt
		if part.From != "" {
			label, most = mailOf(part), mostOfAMessage
		}
		text := strings.TrimLeft(sanitize.Lines(part.Text), " \t\n")
		if text == "" {
			text = "(empty)"
		}
		lines = append(lines, paragraph(e.At, "· ", label+": "+text, most)...)
	}
	return lines
}

// mailOf names the sender and the kind of a message.
func mailOf(part envelope.Part) string {
	from := part.From
	if from == team.User {
		from = "the user"
	}
	if part.Kind != "" {
		from += " (" + part.Kind + ")"
	}
	return sanitize.Line("mail from " + from)
}

// withoutFrames returns a text in which messages have the names of their senders, and no frames.
func withoutFrames(text string) string {
	if !strings.Contains(text, ` ref="`) {
		return text
	}
	var all []string
	for _, part := range envelope.Parts(text) {
		if part.From != "" {
			part.Text = mailOf(part) + ": " + part.Text
		}
		all = append(all, part.Text)
	}
	return strings.Join(all, "\n")
}

// use describes the use of a tool.
func use(e sessionlog.Entry) string {
	if input := render.Input(e.Tool, e.Text); input != "" && input != "{}" {
		return sanitize.Line(e.Tool) + ": " + input
	}
	return sanitize.Line(e.Tool)
}

// quoted stands before each line of an agent's text, and before the later lines of other texts.
const quoted = "│ "

// ending returns the last lines of a result. They say best how a command ended.
func ending(e sessionlog.Entry, symbol string) (lines []Line) {
	all := strings.Split(strings.TrimRight(sanitize.Lines(withoutFrames(e.Text)), " \t\n"), "\n")
	before := e.Count
	if left := len(all) - mostOfAResult; left > 1 || left > 0 && before > 0 {
		before, all = before+int64(left), all[left:]
	}
	switch {
	case before > 0:
		lines = []Line{{e.At, symbol + "… " + team.Count(int(before), "line") + " before"}}
	case e.Cut:
		lines = []Line{{e.At, symbol + "…"}}
	}
	for _, line := range all {
		if len(lines) == 0 {
			lines = append(lines, Line{e.At, symbol + sanitize.Line(line)})
			continue
		}
		lines = append(lines, Line{0, quoted + sanitize.Line(line)})
	}
	return lines
}

// paragraph returns the lines of a text; most of them at most, or all if most is 0.
func paragraph(at team.Time, symbol, text string, most int) (lines []Line) {
	text = strings.TrimRight(sanitize.Lines(text), " \t\n")
	if text == "" {
		return nil
	}
	all := strings.Split(text, "\n")
	for i, line := range all {
		switch {
		case i == 0:
			lines = append(lines, Line{at, symbol + sanitize.Line(line)})
		case most > 0 && i == most && len(all) > most+1:
			return append(lines, Line{0, quoted + "… " + strconv.Itoa(len(all)-i) + " more lines"})
		default:
			lines = append(lines, Line{0, quoted + sanitize.Line(line)})
		}
	}
	return lines
}
