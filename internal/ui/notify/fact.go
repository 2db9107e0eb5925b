package notify

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"cadre/internal/inspect/attention"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// Fact is one thing to tell a person.
type Fact struct {
	ID     string    `json:"id"` // stays the same as long as the fact holds; see sent
	Team   string    `json:"team"`
	TeamID string    `json:"teamId,omitempty"` // empty for a damaged team
	Kind   string    `json:"kind"`             // the kind of the attention item, or [Complete] or [Aborted]
	Member string    `json:"member,omitempty"`
	Task   string    `json:"task,omitempty"`
	Text   string    `json:"text"`         // a sentence of one line
	Do     string    `json:"do,omitempty"` // the command that answers or shows it
	Since  team.Time `json:"since,omitempty"`

	name string // of the team, if no other team has it; else ""
}

// called returns the name by which a person knows the team.
func (f Fact) called() string { return cmp.Or(f.name, f.Team) }

// These kinds report the end of a team.
const (
	Complete = string(team.TeamComplete)
	Aborted  = string(team.TeamAborted)
)

// Title returns the headline of a notification.
func (f Fact) Title() string {
	switch f.Kind {
	case Complete:
		return "Team " + f.called() + " is done"
	case Aborted:
		return "Team " + f.called() + " was aborted"
	case kindTest:
		return "cadre: a test"
	case kindSeveral:
		return "Team " + f.called() + " needs you"
	}
	if f.Member != "" {
		return f.Member + " of team " + f.called() + " needs you"
	}
	return "Team " + f.called() + " needs you"
}

// Body returns the text, and what to type.
func (f Fact) Body() string {
	if f.Do == "" {
		return f.Text
	}
	return f.Text + "\n" + f.Do
}

const (
	kindTest    = "test"
	kindSeveral = "several"
)

// Test returns the notification with which a person tests a channel.
func Test(now team.Time) Fact {
	return Fact{ID: "test/" + strconv.FormatInt(int64(now), 10), Kind: kindTest,
		Text: "Notifications of this kind arrive.", Since: now}
}

// settle is how long a fact must hold if the restart of a process may cause it.
const settle = 5 * time.Second

// Facts returns the facts of which a person should be notified now, each with the command that
// helps.
func Facts(teams []attention.Found) (facts []Fact) {
	named := map[string]int{}
	for _, t := range teams {
		named[t.Team.Name]++
	}
	for _, t := range teams {
		id := cmp.Or(t.Team.ID, t.Folder)
		of := Fact{Team: t.Folder, TeamID: t.Team.ID}
		if named[t.Team.Name] == 1 {
			of.name = sanitize.Line(t.Team.Name)
		}
		switch t.Team.Status {
		case team.TeamComplete, team.TeamAborted:
			end := of
			end.Kind, end.ID, end.Since = string(t.Team.Status), id+"/end", t.Team.UpdatedAt
			end.Text, end.Do = ended(t.Team), render.CommandFor(team.Hint{Action: team.ActShowLog, Team: t.Folder}).Line
			if t.Team.Released == (team.Released{}) && t.Team.Observed == "" {
				facts = append(facts, end)
			}
		}
		for _, i := range t.Items {
			if i.WaitsFor != team.ForUser || quiet(i, t.Paused) {
				continue
			}
			f := of
			f.ID, f.Kind, f.Member, f.Task, f.Since = id+"/"+i.Key(), string(i.Kind), i.Member, i.Task, i.Since
			hint := i.Known(t.Team.Name, t.Folder).Hint
			hint.Team = cmp.Or(hint.Team, t.Folder)
			f.Text, f.Do = sanitize.Line(i.Text), render.CommandFor(hint).Line
			facts = append(facts, f)
		}
	}
	return facts
}

// quiet reports whether the item causes no notification, because the person caused it.
func quiet(i team.Item, paused bool) bool {
	switch i.Kind {
	case team.ItemHeld: // the person interrupted the member
		return true
	case team.ItemNested: // what waits there is a fact of its own
		return true
	case team.ItemDormant, team.ItemUnhosted: // the person stopped the team
		return paused
	}
	return false
}

// end reports whether the fact is the end of a team.
func (f Fact) end() bool { return f.Kind == Complete || f.Kind == Aborted }

// lasting reports whether the fact must hold for a while before it is sent, because another process
// may be about to end it.
func (f Fact) lasting() bool {
	switch team.ItemKind(f.Kind) {
	case team.ItemDormant, team.ItemUnhosted, team.ItemOffline, team.ItemLeadLost,
		team.ItemConsolidate:
		return true
	}
	return false
}

// sent returns the fact as a channel is given it. Its id also says since when the fact holds: a
// receiver that drops ids that it knows gets a task's second failure as well as the first.
func (f Fact) sent() Fact {
	if f.Since != 0 {
		f.ID += "/" + strconv.FormatInt(int64(f.Since), 10)
	}
	return f
}

func ended(t team.Team) string {
	text := fmt.Sprintf("Team %s is %s", t.Name, t.Status)
	if t.Report != "" {
		text += "; its report is in " + t.Report
	}
	return sanitize.Line(text + ".")
}

// digest joins facts of one team into one, so that many at once are one notification.
func digest(facts []Fact) Fact {
	first := facts[0]
	if len(facts) == 1 {
		return first
	}
	return Fact{ID: first.ID, Team: first.Team, name: first.name, TeamID: first.TeamID, Kind: kindSeveral,
		Since: first.Since,
		Text:  fmt.Sprintf("%d things need you. The first: %s", len(facts), first.Text),
		Do:    render.Typed("attention", first.Team)}
}
