package team

import (
	"fmt"
	"slices"
	"strings"
)

// MaxSummaryFiles is how many changed files a summary names.
const MaxSummaryFiles = 20

// Summary says what came of a task.
type Summary struct {
	Did     string   // its result, or the last words of its member
	Words   bool     // Did is the last words: the task has no result
	Files   []string // files that it changed, at most [MaxSummaryFiles]
	More    int      // how many further files it changed
	Others  []string // members that worked there at the same time, so that some files may be theirs
	Checked []string // how it was checked
}

// Summary returns what came of the task with that id. It is empty for a task that is neither
// completed nor submitted.
func (s *State) Summary(id string) (sum Summary) {
	if t := s.task(id); t != nil {
		return t.Summary()
	}
	return sum
}

// Summary returns what came of the task. It is empty for one that is neither completed nor
// submitted.
func (t Task) Summary() (s Summary) {
	switch {
	case t.Status == Completed:
		s.Did = t.Result
	case t.Submission != nil:
		s.Did = t.Submission.Result
	default:
		return s
	}
	if strings.TrimSpace(s.Did) == "" && t.LastWords != "" {
		s.Did, s.Words = t.LastWords, true
	}
	if w := t.Work; w != nil && w.Done {
		n := min(len(w.Files), MaxSummaryFiles)
		s.Files, s.More, s.Others = slices.Clone(w.Files[:n]), len(w.Files)-n, slices.Clone(w.Others)
	}
	s.Checked = t.checked()
	return s
}

// checked says how the task was checked, one way after the other.
func (t Task) checked() (ways []string) {
	var by []string
	for _, name := range t.Verified {
		by = append(by, strings.TrimPrefix(name, "@"))
	}
	if t.ForEach != nil || t.Skipped != "" { // its tasks were, or it never ran
		return nil
	}
	if len(t.Schema) > 0 {
		ways = append(ways, "its result fits its schema")
	}
	if t.Check != nil {
		ways = append(ways, "its check "+Quoted(clipTo(t.Check.Run, 80))+" passed")
	}
	if len(by) > 0 {
		ways = append(ways, "accepted by "+strings.Join(by, ", "))
	}
	return ways
}

// Changed names the changed files in a sentence; "" for none. quote makes a name harmless.
func (s Summary) Changed(quote func(string) string) string {
	if len(s.Files) == 0 {
		return ""
	}
	var names []string
	for _, file := range s.Files {
		names = append(names, quote(file))
	}
	words := strings.Join(names, ", ")
	if s.More > 0 {
		words += fmt.Sprintf(" and %d more", s.More)
	}
	if len(s.Others) > 0 {
		words += " (maybe also by " + strings.Join(s.Others, ", ") + ")"
	}
	return words
}

// changed is Changed for a message of the team.
func (s Summary) changed() string {
	return s.Changed(func(file string) string { return Quoted(brief(file)) })
}

// told returns the lines about a completed task that go to the lead with the message about that.
func (s Summary) told() (lines string) {
	if s.Did != "" {
		lines += cited(clipTo(s.Did, MaxSubject))
	}
	if changed := s.changed(); changed != "" {
		lines += "\nFiles: " + changed + "."
	}
	if len(s.Checked) > 0 {
		lines += "\nChecked: " + strings.Join(s.Checked, "; ") + "."
	}
	return lines
}

// WordsRecorded says what a member said at the end of the turn in which it completed the task,
// which has no result.
type WordsRecorded struct{ Task, Member, Words string }

// Kind returns the event's name in the journal.
func (*WordsRecorded) Kind() string { return "words_recorded" }

func (e *WordsRecorded) fields(c *coder) {
	c.str("task", &e.Task)
	c.str("member", &e.Member)
	c.str("words", &e.Words)
}

func (e *WordsRecorded) apply(s *State, r *Record) {
	s.change(e.Task, r, func(t *Task) { t.LastWords = strings.Clone(e.Words) })
}

// lastWords records what the member said at the end of the turn in which it completed the task.
func (d *decision) lastWords(m *Member, task, words string) {
	t := d.task(task)
	words = strings.TrimSpace(words)
	if t == nil || words == "" || t.LastWords != "" || t.Doer() != m.Name ||
		strings.TrimSpace(t.Summary().Did) != "" {
		return
	}
	d.emit(&WordsRecorded{Task: t.ID, Member: m.Name, Words: clipTo(words, MaxOutput)})
}
