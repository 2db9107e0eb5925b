package client

import (
	"context"
	"strings"
	"time"

	"cadre/internal/engine"
	"cadre/pkg/teams"
)

// Search returns the texts that have all words of the query, by team, and of each team the oldest
// first: at most 1,000 of each team, or the query's Last. A word cannot contain a quotation mark.
func (c *Client) Search(ctx context.Context, q teams.SearchQuery) ([]teams.SearchMatch, error) {
	var words []string
	for _, w := range q.Words {
		words = append(words, `"`+strings.ReplaceAll(w, `"`, " ")+`"`)
	}
	r := get("search").where("q", strings.Join(words, " ")).where("team", q.Team).number("limit", int64(q.Last)).
		number("since", millis(q.Since)).number("until", millis(q.Until))
	for _, k := range q.Kinds {
		r = r.where("kind", string(k))
	}
	for _, name := range q.Members {
		r = r.where("member", name)
	}
	for _, id := range q.Tasks {
		r = r.where("task", id)
	}
	return list[teams.SearchMatch, engine.Found](ctx, c, r)
}

// millis returns the time in milliseconds since 1970; 0 for the zero time.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
