// Package inspect examines a team whose processes may be gone, in the order in which somebody who
// comes back needs to know: is it there, may it be gone on with, who leads, who lives, do the facts
// still hold, what was said last, and what is left to do.
//
// # Authority
//
// It looks, and touches nothing. What is done about what it finds is the caller's affair.
//
// # Guarantees
//
//   - Nobody is taken for dead on the word of a clock that is wrong.
//   - The cost grows with the members and the tasks of the team, not with its history.
package inspect

import (
	"context"
	"fmt"
	"slices"
	"time"

	"cadre/internal/host"
	"cadre/internal/liveness/heartbeat"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// Life is what is known of a member's session.
type Life = team.Life

// The lives of a member.
const (
	Online  = team.LifeOnline
	Offline = team.LifeOffline
	Resting = team.LifeResting
	Outside = team.LifeOutside
	Ended   = team.LifeEnded
	Unknown = team.LifeUnknown
)

// Member is what is known of one member.
type Member struct {
	Name     string    `json:"name"`
	Agent    string    `json:"agent"`
	Status   string    `json:"status"`
	Life     Life      `json:"life"`
	Why      string    `json:"why,omitempty"` // of its life
	LastSeen team.Time `json:"lastSeen,omitempty"`
	Task     string    `json:"task,omitempty"`
	Context  int64     `json:"context,omitempty"` // percent
	Saved    bool      `json:"saved,omitempty"`   // work of it was saved while there was no lead
	Session  string    `json:"session,omitempty"`
}

// Lead is who leads.
type Lead struct {
	Session  string    `json:"session,omitempty"`
	LastSeen team.Time `json:"lastSeen,omitempty"`
	Lives    bool      `json:"lives"`             // its process, on this machine
	Taking   bool      `json:"taking,omitempty"`  // that is gone, and another one on this machine is about to lead
	Machine  string    `json:"machine,omitempty"` // another one, where its process may live
	Lost     team.Time `json:"lost,omitempty"`
	Stale    bool      `json:"stale"` // another session may take the lead
}

// Examination is what was found.
type Examination struct {
	Team        team.Team         `json:"team"`
	Seq         int64             `json:"seq"`
	Lead        Lead              `json:"lead"`
	Members     []Member          `json:"members"`
	Place       []Missing         `json:"place"` // what is not in its place
	Facts       []Fact            `json:"facts"`
	Mail        []team.Message    `json:"mail"`     // the last ten
	Messages    int64             `json:"messages"` // all that were sent
	Unread      int               `json:"unread"`   // messages that somebody has still to be given
	Held        int               `json:"held"`     // that wait for a lead
	Late        int               `json:"late"`     // that the lead was told of
	Tasks       map[string]int    `json:"tasks"`
	Percent     int               `json:"percent"`              // of the tasks that are done
	Left        time.Duration     `json:"leftNanos,omitempty"`  // an estimate, 0 where there is nothing to go by
	Skew        []string          `json:"skew,omitempty"`       // what the clocks disagree about
	InProgress  []team.Task       `json:"inProgress,omitempty"` // the tasks that are under way
	Permissions []team.Permission `json:"permissions,omitempty"`
	Attention   []team.Item       `json:"attention"` // what waits for a person
}

// Count returns how many members have that life.
func (e *Examination) Count(l Life) (n int) {
	for _, m := range e.Members {
		if m.Life == l {
			n++
		}
	}
	return n
}

// Hostless reports whether there is a member without a session that cadre is to run.
func (e *Examination) Hostless() bool {
	return slices.ContainsFunc(e.Members, func(m Member) bool {
		return m.Agent != team.External &&
			(m.Life == Offline || m.Life == Resting)
	})
}

// Refusal is why the team cannot be gone on with, and what to do instead; nil where it can. One in
// consolidation can, to the end of that.
func Refusal(t team.Team) error {
	switch {
	case t.CleanedUp:
		return team.Refuse(team.Finished, "team %s was cleaned up, and something is left of it", t.Name).
			With(team.Hint{Action: team.ActCleanUp, Team: t.Name})
	case t.Status == team.TeamComplete || t.Status == team.TeamAborted:
		return team.Refuse(team.Finished, "Team is %s", t.Status).
			With(team.Hint{Action: team.ActShowReview, Team: t.Name})
	case t.Status == team.TeamPending && t.Goal == "" && t.Origin == "":
		return team.Refuse(team.Invalid, "Team not initialized").
			With(team.Hint{Action: team.ActSpawn, Team: t.Name})
	}
	return nil
}

// near is how many records are read on from one message to the next one; what is farther away is
// looked for by itself.
const near = 512

// Examine looks at the team whose folder is dir.
func Examine(ctx context.Context, rep *replica.Replica, dir string, now time.Time) (*Examination, error) {
	e := &Examination{Tasks: map[string]int{}, Place: []Missing{}, Mail: []team.Message{}}
	held := map[string]string{}
	var members, roster []team.Member
	var past pace
	var mail []int64
	rep.View(func(s *team.State) {
		e.Team, e.Seq, e.Messages, e.Held, e.Permissions = s.Team(), s.Seq(), s.MessageSeq(), s.HeldMessages(),
			s.Permissions()
		members, roster, mail = s.Members(), s.Roster(), s.LastMail()
		for _, status := range []team.TaskStatus{team.Pending, team.InProgress, team.Completed} {
			e.Tasks[string(status)] = s.Count(status)
		}
		for t := range s.Underway() {
			held[t.Owner] = t.ID
			e.InProgress = append(e.InProgress, t)
		}
		for t := range s.Tasks() {
			past.add(t)
		}
	})
	if created := time.UnixMilli(int64(e.Team.CreatedAt)); now.Before(created.Add(-heartbeat.Tolerance)) {
		e.Skew = append(e.Skew, fmt.Sprintf("the team was created %s in the future",
			created.Sub(now).Round(time.Second)))
	}
	seen, err := look(ctx, e.Team, members, dir, now, nil)
	if err != nil {
		return nil, err
	}
	if t := e.Team; t.Observed == "" && Refusal(t) == nil {
		missing, err := Place(ctx, t, members, dir)
		if err != nil {
			return nil, err
		}
		e.Place = append(e.Place, missing...)
	}
	e.Lead, e.Facts, e.Skew = seen.lead, seen.facts, append(e.Skew, seen.skew...)
	for _, m := range roster {
		e.member(dir, m, held[m.Name], seen.outside.Sights[m.Name])
	}
	rep.View(func(s *team.State) { e.Attention = s.Attention(team.Time(now.UnixMilli()), &seen.outside) })
	e.progress(past)
	return e, e.mail(ctx, rep, mail)
}

// member adds what is known of the member.
func (e *Examination) member(dir string, m team.Member, task string, seen team.Sight) {
	e.Unread += len(m.Inbox)
	e.Late += len(m.Late)
	one := Member{Name: m.Name, Agent: m.Agent, Status: string(m.Status), Life: seen.Life, Why: seen.Why,
		LastSeen: seen.Seen, Task: task, Context: m.Context, Session: m.Session}
	_, one.Saved, _ = host.ReadSaved(dir, m.Name) // one that cannot be read is reported where it is to be kept
	if one.Life == Online && e.Team.LeadLost != 0 && m.Name != e.Team.Lead {
		one.Status = "zombie"
	}
	e.Members = append(e.Members, one)
}

func (e *Examination) progress(past pace) {
	open := e.Tasks[string(team.Pending)] + e.Tasks[string(team.InProgress)]
	all := open + e.Tasks[string(team.Completed)]
	if all > 0 {
		e.Percent = 100 * e.Tasks[string(team.Completed)] / all
	}
	workers := 0
	for _, m := range e.Members {
		if m.Name != e.Team.Lead && m.Life != Ended {
			workers++
		}
	}
	e.Left = past.left(open, workers)
}

// mail finds the last messages in the history, where the state says that they are.
func (e *Examination) mail(ctx context.Context, rep *replica.Replica, at []int64) error {
	at = slices.Compact(at)
	for rest := len(at) + 1; len(at) > 0 && len(at) < rest; {
		rest = len(at)
		for r, err := range rep.Read(ctx, at[0]-1) {
			if err != nil {
				return err
			}
			if r.Seq == at[0] {
				e.take(r)
				at = at[1:]
			}
			if len(at) == 0 || at[0]-r.Seq > near {
				break
			}
		}
	}
	// of a record with many, those before are no more among the last
	e.Mail = e.Mail[max(0, len(e.Mail)-team.RecentMail):]
	return nil
}

func (e *Examination) take(r *team.Record) {
	for _, event := range r.Events {
		if sent, ok := event.(*team.MessageSent); ok {
			m := sent.Message
			m.SentAt = r.At
			e.Mail = append(e.Mail, m)
		}
	}
}
