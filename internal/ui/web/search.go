package web

import (
	"cadre/internal/engine"
	"cadre/internal/replica/search"
	"cadre/internal/team"
)

// hit is a text that a search found.
type hit struct {
	Team     string        `json:"team"` // its name in commands
	Archived bool          `json:"archived,omitempty"`
	At       team.Time     `json:"at"`
	Title    string        `json:"title"` // what the text is, and whose
	To       engine.Place  `json:"to"`    // where it leads
	Record   int64         `json:"record"`
	Task     string        `json:"task,omitempty"`
	Note     string        `json:"note,omitempty"`
	Seq      int64         `json:"seq,omitempty"` // number of the message, or of the change of the note
	Parts    []search.Part `json:"parts"`
}

// hits answers with what a search found, as the screen lists it.
func (b *Board) hits(v *view) (any, error) {
	query := v.URL.Query()
	f, err := v.engine.Find(v.Context(), engine.FindWords(query.Get("team"), query.Get("q"), 0))
	if err != nil {
		return nil, err
	}
	is := struct {
		Found   []hit  `json:"found"`             // the newest first
		More    bool   `json:"more,omitempty"`    // older ones were left out
		Problem string `json:"problem,omitempty"` // teams that could not be searched
	}{[]hit{}, f.More, ""}
	if f.Trouble != nil {
		if len(f.Found) == 0 && query.Get("team") != "" {
			return nil, f.Trouble
		}
		is.Problem = f.Trouble.Error()
	}
	for _, one := range f.Found {
		is.Found = append(is.Found, hit{one.Team, one.Archived, one.At, one.Title(), one.Leads(), one.Record, one.Task,
			one.Note, one.Seq, one.Excerpt()})
	}
	return is, nil
}
