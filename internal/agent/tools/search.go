package tools

import (
	"fmt"
	"strings"
	"time"

	"cadre/internal/replica/search"
	"cadre/internal/team"
)

const (
	teamSearch = "TeamSearch"

	mostMatches = 20 // that a search shows: the last ones
	matchBefore = 80 // bytes of a text that are shown before the first word that was found
	matchAfter  = 200
)

func (c *call) teamSearch(in *searching) (string, error) {
	q := search.Query{Words: search.WordsOf(in.Words.value()), Last: mostMatches + 1}
	if in.Kind.s != "" {
		q.Kinds = []search.Kind{search.Kind(in.Kind.s)}
	}
	if name := in.Member.value(); name != "" {
		q.Members = []string{c.name(name)}
	}
	if in.TaskID.s != "" {
		if err := c.tasks(&in.TaskID.s); err != nil {
			return "", err
		}
		q.Tasks = []string{in.TaskID.s}
	}
	if since := in.Since.value(); since != "" {
		ago, err := time.ParseDuration(strings.TrimSpace(since))
		if err != nil || ago < 0 {
			return "", mistake("Nothing was searched: since is a time such as 90m or 12h, not %s.", quoted(since))
		}
		q.Since = c.o.Now().Add(-ago)
	}
	if err := q.Check(); err != nil {
		return "", err
	}
	var matches []search.Match
	for m, err := range search.In(c.ctx, c.o.Records(c.ctx), q) {
		if err != nil {
			return "", err
		}
		matches = append(matches, m)
	}
	if len(matches) == 0 {
		return "Nothing was found. Fewer words find more.", nil
	}
	var lines []string
	if len(matches) > mostMatches {
		matches = matches[1:]
		lines = append(lines, fmt.Sprintf("The last %d matches, the oldest first; more words find fewer:", mostMatches))
	}
	for i := range matches {
		lines = append(lines, c.matched(&matches[i]))
	}
	return strings.Join(lines, "\n"), nil
}

// matched returns a match on one line.
func (c *call) matched(m *search.Match) string {
	from, to := m.Around(matchBefore, matchAfter)
	text := m.Text[from:to]
	if from > 0 {
		text = "… " + text
	}
	if to < len(m.Text) {
		text += " …"
	}
	task := m.Task
	c.view(func(s *team.State) {
		if t, ok := s.Task(m.Task); ok {
			task = t.Ref()
		}
	})
	return fmt.Sprintf("- %s: %s", m.Title(task), team.Quoted(line(text, matchBefore+matchAfter+team.MaxName)))
}

// textKinds are the kinds of texts, by their names.
func textKinds() (names []string) {
	for _, k := range search.Kinds {
		names = append(names, string(k))
	}
	return names
}
