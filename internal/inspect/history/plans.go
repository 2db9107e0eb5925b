package history

import (
	"iter"

	"cadre/internal/team"
)

// Plan is a plan that a member submitted, with its answer. The state of a team has only the plan
// that waits.
type Plan struct {
	Member string `json:"member"` // who submitted it
	// submitted, approved, rejected, or unanswered if its member no longer waits
	State      string    `json:"state"`
	Request    string    `json:"request"`              // id of the plan
	Plan       string    `json:"plan"`                 // text of the plan
	Feedback   string    `json:"feedback,omitempty"`   // why it was rejected
	AskedAt    team.Time `json:"askedAt"`              // when it was submitted
	AnsweredAt team.Time `json:"answeredAt,omitempty"` // when it was answered; 0 for not yet
	AnsweredBy string    `json:"answeredBy,omitempty"` // who answered; "" if its deadline passed
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
