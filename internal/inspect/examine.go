// Package inspect examines a team whose processes may have ended, in the order in which a returning
// person needs to know. Does it exist, and may it continue? Who leads, and who is alive? Are the
// facts unchanged? What was said last, and what is left to do?
//
// # Authority
//
// The package looks and changes nothing. The caller acts on its findings.
//
// # Guarantees
//
//   - A wrong clock never makes a member count as dead.
//   - The cost grows with the members and the tasks of the team, not with its history.
package inspect

import (
	"context"
	"fmt"
	"slices"
	"time"

	"cadre/internal/host"
	"cadre/internal/journal/store"
	"cadre/internal/liveness/heartbeat"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// Life says what is known of a member's session.
type Life = team.Life

// The values of [Life].
const (
	Online  = team.LifeOnline
	Offline = team.LifeOffline
	Paused  = team.LifePaused
	Outside = team.LifeOutside
	Ended   = team.LifeEnded
	Unknown = team.LifeUnknown
)

// Member says what is known of one member.
type Member struct {
	Name     string     `json:"name"`                 // name of the member
	Agent    string     `json:"agent"`                // agent that runs its sessions: claude, codex, shell, external, …
	Status   team.Phase `json:"status"`               // what it does, or why it cannot
	Life     Life       `json:"life"`                 // online, offline, paused, outside, ended or unknown
	Why      string     `json:"why,omitempty"`        // reason for that life
	LastSeen team.Time  `json:"lastSeenAt,omitempty"` // when it sent its last heartbeat
	Task     string     `json:"task,omitempty"`       // id of the task that it works on
	Context  int64      `json:"context,omitempty"`    // percent of its context that is full
	Saved    bool       `json:"saved,omitempty"`      // its work was saved while no session led
	Session  string     `json:"session,omitempty"`    // the agent's own id of its session
}

// Lead says who leads.
type Lead struct {
	Session  string    `json:"session,omitempty"`    // id of the session that leads
	LastSeen team.Time `json:"lastSeenAt,omitempty"` // when it sent its last heartbeat
	Alive    bool      `json:"alive"`                // its process on this machine is running
	Taking   bool      `json:"taking,omitempty"`     // that process has ended, and another one is about to lead
	Machine  string    `json:"machine,omitempty"`    // another machine, where its process may be running
	Lost     team.Time `json:"lostAt,omitempty"`     // since when no session leads; 0 while one does
	Stale    bool      `json:"stale"`                // another session may take the lead
}

// Examination is the result of an examination.
type Examination struct {
	Team     team.Team      `json:"team"` // the team as it is recorded
	Seq      int64          `json:"seq"`  // number of records in its history
	Lead     Lead           `json:"lead"` // who leads
	Members  []Member       `json:"members"`
	Place    []Missing      `json:"place"` // files and folders that are missing or at another place
	Facts    []Fact         `json:"facts"`
	Mail     []team.Message `json:"mail"`     // the last ten messages
	Messages int64          `json:"messages"` // number of all messages
	// number of messages that are not delivered to all recipients
	Unread int `json:"unread"`
	Held   int `json:"held"` // number of messages that wait for a lead
	// number of late messages that the lead was notified of
	Late    int            `json:"late"`
	Tasks   map[string]int `json:"tasks"`   // number of tasks by status
	Percent int            `json:"percent"` // percent of the tasks that are completed
	// estimated time to the end; 0 if there is no basis for one
	Left        team.Duration     `json:"leftMillis,omitempty"`
	Skew        []string          `json:"skew,omitempty"`        // how the clocks disagree
	InProgress  []team.Task       `json:"inProgress,omitempty"`  // the tasks in progress
	Permissions []team.Permission `json:"permissions,omitempty"` // requests that wait for an answer
	Attention   []team.Item       `json:"attention"`             // what waits for a person
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

// Hostless reports whether a member whose session cadre should run has none.
func (e *Examination) Hostless() bool {
	return slices.ContainsFunc(e.Members, func(m Member) bool {
		return m.Agent != team.External &&
			(m.Life == Offline || m.Life == Paused)
	})
}

// Refusal returns why the team cannot continue, and what to do instead; nil if it can. A team in
// consolidation can continue until the consolidation ends.
func Refusal(t team.Team) error {
	switch {
	case t.CleanedUp:
		return team.Refuse(team.Finished, "team %s was cleaned up, and something is left of it", t.Name).
			With(team.Hint{Action: team.ActCleanUp, Team: t.Name})
	case t.Status == team.TeamComplete || t.Status == team.TeamAborted:
		return team.Refuse(team.Finished, "team %s is %s", t.Name, t.Status).
			With(team.Hint{Action: team.ActShowReview, Team: t.Name})
	case t.Status == team.TeamPending && t.Goal == "" && t.Origin == "":
		return team.Refuse(team.Invalid, "team %s has not begun: it has no goal and no teammates", t.Name).
			With(team.Hint{Action: team.ActSpawn, Team: t.Name})
	}
	return nil
}

// near is how many records are read to get from one message to the next one. A message that is
// farther away is looked up.
const near = 512

// Examine examines the team.
func (l *Looker) Examine(ctx context.Context, now time.Time) (*Examination, error) {
	rep, dir := l.Replica, l.Dir
	e := &Examination{Tasks: map[string]int{}, Place: []Missing{}, Mail: []team.Message{}}
	held := map[string]string{}
	var members, roster []team.Member
	var past pace
	var mail []int64
	workable := false // a task is in progress or ready
	rep.View(func(s *team.State) {
		e.Team, e.Seq, e.Messages, e.Held, e.Permissions = s.Team(), s.Seq(), s.MessageCount(), s.HeldMessages(),
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
			workable = workable || t.Status == team.InProgress ||
				t.Status == team.Pending && !t.OutOfRetries() && len(t.Blocked()) == 0
		}
	})
	if created := time.UnixMilli(int64(e.Team.CreatedAt)); now.Before(created.Add(-heartbeat.Tolerance)) {
		e.Skew = append(e.Skew, fmt.Sprintf("the team was created %s in the future",
			team.Span(created.Sub(now).Round(time.Second))))
	}
	seen, err := look(ctx, e.Team, members, l.home(), dir, l.Shared, now, nil)
	if err != nil {
		return nil, err
	}
	seen.outside.Uncommitted = l.uncommitted(ctx, e.Team, now)
	if t := e.Team; t.Observed == "" && Refusal(t) == nil {
		missing, err := Place(ctx, t, members, dir)
		if err != nil {
			return nil, err
		}
		e.Place = append(e.Place, missing...)
	}
	e.Lead, e.Facts, e.Skew = seen.lead, seen.facts, append(e.Skew, seen.skew...)
	for _, m := range roster {
		e.member(ctx, seen.shared, m, held[m.Name], seen.outside.Sights[m.Name])
	}
	rep.View(func(s *team.State) {
		for i := range e.Members {
			e.Members[i].Status = s.Standing(e.Members[i].Name, &seen.outside)
		}
		e.Attention = append([]team.Item{}, s.Attention(team.Time(now.UnixMilli()), &seen.outside)...)
	})
	e.progress(past, workable)
	return e, e.mail(ctx, rep, mail)
}

// member adds what is known of the member.
func (e *Examination) member(ctx context.Context, shared store.Team, m team.Member, task string,
	seen team.Sight) {
	e.Unread += len(m.Inbox)
	e.Late += len(m.Late)
	one := Member{Name: m.Name, Agent: m.Agent, Life: seen.Life, Why: seen.Why,
		LastSeen: seen.Seen, Task: task, Context: m.Context, Session: m.Session}
	_, one.Saved, _ = host.ReadSaved(ctx, shared, m.Name) // an unreadable file is reported when its work is kept
	e.Members = append(e.Members, one)
}

// progress counts what is done. It estimates the rest only if work is going on, or could.
func (e *Examination) progress(past pace, workable bool) {
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
	if workable {
		e.Left = team.Duration(past.left(open, workers).Truncate(time.Millisecond))
	}
}

// mail finds the last messages in the history, at the places in the state.
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
	// a record with many messages pushes earlier ones out
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
