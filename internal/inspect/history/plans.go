package history

import (
	"iter"

	"cadre/internal/team"
)

// Plan is a plan that a member submitted, with its answer. The state of a team has only the plan
// that waits.
type Plan struct {
	Member     string    `json:"member"`
	State      string    `json:"state"` // submitted, approved, rejected, or unanswered if its member no longer waits
	Request    string    `json:"request"`
	Plan       string    `json:"plan"`
	Feedback   string    `json:"feedback,omitempty"`
	AskedAt    team.Time `json:"askedAt"`
	AnsweredAt team.Time `json:"answeredAt,omitempty"`
	AnsweredBy string    `json:"answeredBy,omitempty"` // "" if it got no answer in time
}

// Plans returns every plan that was submitted, the oldest first.
func Plans(source iter.Seq2[*team.Record, error]) ([]Plan, error) {
	plans := []Plan{}
	last := map[string]int{} // by member
	for r, err := range source {
		if err != nil {
			return nil, err
		}
		for _, e := range r.Events {
			switch e := e.(type) {
			case *team.PlanSubmitted:
				if i, known := last[e.Member]; known && plans[i].State == "submitted" {
					plans[i].State = "unanswered"
				}
				last[e.Member] = len(plans)
				plans = append(plans, Plan{Member: e.Member, State: "submitted", Request: e.Request, Plan: e.Plan,
					AskedAt: r.At})
			case *team.PlanAnswered:
				i, known := last[e.Member]
				if !known || plans[i].Request != e.Request {
					continue
				}
				plans[i].State = "rejected"
				if e.Approved {
					plans[i].State = "approved"
				}
				plans[i].Feedback, plans[i].AnsweredBy, plans[i].AnsweredAt = e.Feedback, e.By, r.At
			}
		}
	}
	return plans, nil
}
