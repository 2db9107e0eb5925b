package sessionview

import (
	"strings"

	"cadre/internal/agent/sessionlog"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// These bound what is kept of an output, and of a line without an end, and how much of the end of
// the returned output is looked for in the result, in bytes.
const (
	mostUnfinished = 8 << 10
	mostSought     = 256
)

// unfinished is a text that comes in parts.
type unfinished struct {
	text  string // not returned yet
	since team.Time
	shown string // returned before
	lines int    // line breaks in what was returned
	gap   bool   // parts are missing
}

func (u *unfinished) add(at team.Time, text string) {
	if u.text == "" && u.shown == "" {
		u.since = at
	}
	u.text += text
}

// complete returns the complete lines, except empty ones at the end, and does not return them
// again.
func (u *unfinished) complete() []Line {
	end := strings.LastIndexByte(u.text, '\n') + 1
	if len(u.text)-end > mostUnfinished { // a line without an end
		end = len(u.text)
	}
	return u.upTo(len(strings.TrimRight(u.text[:end], " \t\n")))
}

// upTo returns the lines of the first bytes of the text, and the line break after them goes with
// them.
func (u *unfinished) upTo(end int) []Line {
	if end == 0 {
		return nil
	}
	lines := paragraph(u.since, quoted, u.text[:end], 0)
	if u.shown != "" && len(lines) > 0 {
		lines[0].At = 0
	}
	if i := strings.IndexByte(u.text[end:], '\n'); i >= 0 {
		end += i + 1
	}
	u.lines += strings.Count(u.text[:end], "\n")
	u.shown, u.text = u.shown+u.text[:end], u.text[end:]
	return lines
}

// flush returns the lines of what remains.
func (u *unfinished) flush() []Line {
	lines := u.upTo(len(strings.TrimRight(u.text, " \t\n")))
	u.text = ""
	return lines
}

// rest returns the lines of what remains, and begins another text.
func (u *unfinished) rest() []Line {
	lines := u.flush()
	*u = unfinished{}
	return lines
}

// after returns the rest of the whole text, after the returned part. It returns false if no part
// was returned, or if the whole text does not begin with it.
func (u *unfinished) after(whole string) (rest string, is bool) {
	if u.shown == "" {
		return "", false
	}
	shown := strings.TrimSpace(u.shown)
	rest, is = strings.CutPrefix(strings.TrimLeft(whole, " \t\n"), shown)
	return strings.TrimPrefix(rest, "\n"), is
}

// exceeds reports whether the text begins with the beginning of a whole one, and has more of it.
func (u *unfinished) exceeds(beginning string) bool {
	rest, is := strings.CutPrefix(strings.TrimLeft(u.shown+u.text, " \t\n"), strings.TrimSpace(beginning))
	return is && rest != ""
}

// past reports whether the text has the whole one and more lines after it. It then drops the whole
// one, so that only the others are unfinished.
func (u *unfinished) past(whole string) bool {
	if whole = strings.TrimSpace(whole); whole == "" {
		return false
	}
	from := &u.text
	if u.shown != "" {
		from = &u.shown
	}
	rest, is := strings.CutPrefix(strings.TrimLeft(*from, " \t\n"), whole)
	if more, follows := strings.CutPrefix(rest, "\n"); is && follows {
		*from = more
		return true
	}
	return false
}

// output stores an output. It returns its lines that are complete, if lines are returned as they
// come.
func (l *Lines) output(e sessionlog.Entry) (lines []Line) {
	if l.outputs == nil {
		l.outputs = map[string]*unfinished{}
	}
	use := l.outputs[e.ID]
	if use == nil {
		use = &unfinished{}
		l.outputs[e.ID] = use
	}
	l.latest = e.ID
	if e.Count > 0 {
		if l.coming {
			lines = append(use.flush(), Line{e.At, quoted + "… " + regularfile.Size(e.Count) + " before"})
		}
		use.text, use.gap = "", true
	}
	use.add(e.At, rewritten(e.Text))
	if l.coming {
		lines = append(lines, use.complete()...)
		use.shown = use.shown[max(0, len(use.shown)-mostSought):]
		return lines
	}
	if over := len(use.text) - mostUnfinished; over > 0 {
		use.text = strings.ToValidUTF8(use.text[over:], "")
	}
	return nil
}

// result returns the lines of a result whose output was returned as it came: only what the result
// has after that. It returns false if the output was not returned, or not all of it up to there.
func (l *Lines) result(e sessionlog.Entry) ([]Line, bool) {
	use := l.outputs[e.ID]
	delete(l.outputs, e.ID)
	if use == nil || !l.coming {
		return nil, false
	}
	last := strings.TrimSpace(strings.ToValidUTF8(use.shown, ""))
	text := rewritten(e.Text)
	at := strings.LastIndex(text, last)
	if last == "" || at < 0 || use.gap {
		return nil, false
	}
	if before := int(e.Count) + strings.Count(text[:at+len(last)], "\n") + 1; before > use.lines {
		return nil, false
	}
	e.Text, e.Count, e.Cut = strings.TrimLeft(text[at+len(last):], "\n"), 0, false
	return of(e), true
}

// rewritten returns the text without the parts of lines that a carriage return overwrites, as
// commands print their progress.
func rewritten(text string) string {
	if !strings.Contains(text, "\r") {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		lines[i] = line[strings.LastIndexByte(line, '\r')+1:]
	}
	return strings.Join(lines, "\n")
}
