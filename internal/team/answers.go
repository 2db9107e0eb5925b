package team

import (
	"slices"
	"strings"
)

// Answer says how a permission request or a plan was answered. A team remembers the last answers,
// so that the second person to answer learns who was first.
type Answer struct {
	Request string
	Outcome string // allowed, denied, timed_out, approved or rejected
	// By is "" where the request timed out, where the team's rules answered, or where an older
	// version recorded the answer.
	By string
	At Time
}

// rememberedAnswers bounds how many answers a team remembers: two people answer the same request
// within minutes.
const rememberedAnswers = 64

func (s *State) remember(a Answer) {
	s.answers = append(s.answers, a)
	s.answers = slices.Delete(s.answers, 0, max(0, len(s.answers)-rememberedAnswers))
}

// Answered returns how a request ended, where the team remembers it.
func (s *State) Answered(request string) (Answer, bool) {
	for _, a := range slices.Backward(s.answers) {
		if a.Request == request {
			return a, true
		}
	}
	return Answer{}, false
}

// alreadyAnswered refuses a second answer and says who gave the first one. It returns nil for a
// request that is not remembered.
func (s *State) alreadyAnswered(what, request string) error {
	a, ok := s.Answered(request)
	switch {
	case !ok:
		return nil
	case a.Outcome == "timed_out":
		return refuse(Conflict, "the %s %s has timed out", what, request)
	case a.By == "":
		return refuse(Conflict, "the %s %s was %s already", what, request, a.Outcome)
	}
	return refuse(Conflict, "the %s %s was %s by %s already; the first answer counts", what, request,
		a.Outcome, person(a.By))
}

// person names an actor in a sentence.
func person(actor string) string {
	switch {
	case actor == User:
		return "the user"
	case strings.HasPrefix(actor, hostPrefix):
		return "a host"
	}
	return actor
}

func (a *Answer) fields(c *coder) {
	c.str("request", &a.Request)
	c.str("outcome", &a.Outcome)
	c.str("by", &a.By)
	c.int("at", (*int64)(&a.At))
}

// Rejection is something that a hook rejected [MaxStrikes] times in a row and that has not passed
// since.
type Rejection struct {
	Key      string
	Hook     string
	Member   string
	Task     string // its id, or for TaskCreated the subject; "" for the member itself
	Feedback string // the last feedback
	At       Time
}

// mostRejections bounds how many are kept; the oldest go first.
const mostRejections = 100

// stuck keeps a rejection until the same thing passes.
func (s *State) stuck(r Rejection) {
	s.passed(r.Key)
	s.rejections = append(s.rejections, r)
	s.rejections = slices.Delete(s.rejections, 0, max(0, len(s.rejections)-mostRejections))
}

// passed forgets the rejection with that key.
func (s *State) passed(key string) {
	if slices.ContainsFunc(s.rejections, func(r Rejection) bool { return r.Key == key }) {
		s.rejections = slices.DeleteFunc(slices.Clone(s.rejections), func(r Rejection) bool { return r.Key == key })
	}
}

func (r *Rejection) fields(c *coder) {
	c.str("key", &r.Key)
	c.str("hook", &r.Hook)
	c.str("member", &r.Member)
	c.str("task", &r.Task)
	c.str("feedback", &r.Feedback)
	c.int("at", (*int64)(&r.At))
}
