package checkpoint

import (
	"fmt"
	"slices"
	"strings"

	"cadre/internal/team"
)

// news is what happened since the last checkpoint, for the subject of the commit. It consists of
// numbers and names of members, which have only letters, digits, - and _. So it contains nothing
// that an agent wrote.
type news struct {
	completed, failed []string // ids of tasks
	by                []string // members that completed them
	added, messages   int
	joined, lost      []string // members
	status            team.TeamStatus
	restored, merged  bool
}

func (n *news) add(e team.Event) {
	switch e := e.(type) {
	case *team.TaskCompleted:
		n.completed = append(n.completed, e.Task)
		if e.By != "" && !slices.Contains(n.by, e.By) {
			n.by = append(n.by, e.By)
		}
	case *team.TaskFailed:
		n.failed = append(n.failed, e.Task)
	case *team.TaskCreated:
		n.added++
	case *team.MessageSent:
		n.messages++
	case *team.MemberSpawned:
		n.joined = append(n.joined, e.Member.Name)
	case *team.MemberFailed:
		n.lost = append(n.lost, e.Member)
	case *team.TeamStatusChanged:
		n.status = e.Status
	case *team.TeamRestored:
		n.restored = true
	case *team.CommitMade:
		n.merged = e.Commit != ""
	}
}

// mostNamed is how many items of a kind the subject names. It gives the number of further ones.
const mostNamed = 3

// subject says in one line what happened, the most important first, and how many tasks are
// completed.
func (n *news) subject(doc document) string {
	var parts []string
	say := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if n.restored {
		say("restored")
	}
	switch n.status {
	case team.TeamComplete, team.TeamAborted, team.TeamConsolidating:
		say("%s", n.status)
	}
	if len(n.completed) > 0 {
		by := ""
		if names := known(n.by); len(names) > 0 && len(n.completed) <= mostNamed {
			by = " (" + strings.Join(names, ", ") + ")"
		}
		say("%s completed%s", numbered("task", n.completed), by)
	}
	if len(n.failed) > 0 {
		say("%s failed", numbered("task", n.failed))
	}
	for _, one := range []struct {
		names []string
		what  string
	}{{n.lost, "failed"}, {n.joined, "joined"}} {
		if names := known(one.names); len(names) > mostNamed {
			say("%d members %s", len(names), one.what)
		} else if len(names) > 0 {
			say("%s %s", strings.Join(names, ", "), one.what)
		}
	}
	if n.added > 0 {
		say("%s added", team.Count(n.added, "task"))
	}
	if n.messages > 0 {
		say("%s", team.Count(n.messages, "message"))
	}
	if n.merged {
		say("committed")
	}
	if len(parts) == 0 {
		say("checkpoint")
	}
	q := doc.Queue
	return fmt.Sprintf("%s: %s; %d/%d", doc.TeamName, strings.Join(parts, ", "), q.Count,
		q.Count+len(q.Pending)+len(q.InProgress))
}

// message returns the commit message. It tells CI not to build the commit.
func (n *news) message(doc document) string {
	q := doc.Queue
	return fmt.Sprintf("%s\n\n[skip ci]\n\nCheckpoint %d of team %s, which is %s. Teammates: %d. Tasks: %d pending, "+
		"%d in progress, %d completed.\n",
		n.subject(doc), doc.Sequence, doc.TeamName, doc.Status, doc.TeammateCount, len(q.Pending),
		len(q.InProgress), q.Count)
}

// known returns the names that are valid names of members.
func known(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !team.ValidName(name) })
}

func numbered(what string, ids []string) string {
	switch {
	case len(ids) == 1:
		return what + " " + ids[0]
	case len(ids) <= mostNamed:
		return what + "s " + strings.Join(ids, ", ")
	}
	return team.Count(len(ids), what)
}
