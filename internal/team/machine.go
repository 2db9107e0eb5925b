package team

import (
	"slices"
	"strings"
	"time"
)

// A member that runs on a machine with certain labels is run by a host of such a machine, in a
// worktree of that machine's clone. Its branch travels through a git remote that the team names.

// MaxLabels limits the labels of a member and of a machine.
const MaxLabels = 16

// CheckLabels refuses labels of machines that are no names, or too many.
func CheckLabels(labels []string) error {
	if len(labels) > MaxLabels {
		return refuse(Invalid, "%d labels are too many; the limit is %d", len(labels), MaxLabels)
	}
	for _, label := range labels {
		if err := CheckName("label", label); err != nil {
			return err
		}
	}
	return nil
}

// RunsWith reports whether a machine with these labels can run the member.
func (m *Member) RunsWith(labels []string) bool {
	return !slices.ContainsFunc(m.RunsOn, func(label string) bool { return !slices.Contains(labels, label) })
}

// checkMachine refuses a member for a machine of its own if its work could not come back.
func (b *SpawnMember) checkMachine(d *decision) error {
	switch {
	case len(b.RunsOn) == 0:
		return nil
	case b.Agent == External || b.Agent == NestedTeam:
		return refuse(Invalid, "%s cannot run on another machine: its agent is %s; leave runsOn out", b.Name, b.Agent)
	case b.Isolation != Worktree:
		return refuse(Invalid, "%s works in the directory of the team, which other machines do not have; give it "+
			"isolation: worktree, or leave runsOn out", b.Name)
	case d.team.Remote == "":
		return refuse(Invalid, "%s runs on another machine, so the team needs a remote of the repository for its work: "+
			"remote: origin, for example; or leave runsOn out", b.Name)
	}
	return CheckLabels(b.RunsOn)
}

// checkMachine refuses a member that the host is not for.
func (b *AttachMember) checkMachine(m *Member) error {
	switch {
	case b.Machine == "" && len(m.RunsOn) > 0:
		return refuse(Conflict, "%s runs on a machine with %s", m.Name, labelled(m.RunsOn))
	case b.Machine != "" && len(m.RunsOn) == 0:
		return refuse(Conflict, "%s runs where the team is run, not on the machine %s", m.Name, b.Machine)
	case !m.RunsWith(b.Labels):
		return refuse(Conflict, "%s runs on a machine with %s, and %s has others", m.Name, labelled(m.RunsOn),
			b.Machine)
	}
	return nil
}

// labelled lists labels in a sentence.
func labelled(labels []string) string {
	return word(len(labels), "the label ", "the labels ") + strings.Join(labels, ", ")
}

// moveTo puts the member on a machine. Its agent's own session stays on the one before, so it
// starts another one, with the note.
func (m *Member) moveTo(machine, note string) {
	if m.Machine == machine {
		return
	}
	if m.Machine = machine; m.Session != "" {
		m.Session = ""
		if note != "" {
			m.Note = note
		}
	}
	own(&m.Machine, &m.Note)
}

// machineTime is how long a member may wait for a machine before a person is told.
const machineTime = 30 * time.Second

// machines adds the members that no machine runs.
func (a *attention) machines() {
	for i := range a.s.members {
		m := &a.s.members[i]
		if len(m.RunsOn) == 0 || m.Status != Spawning || m.Host != "" || m.RetryAt > a.now ||
			a.now.Sub(m.Since) < machineTime || a.t.Status != TeamActive {
			continue
		}
		a.add(Item{Kind: ItemMachine, Member: m.Name, Since: m.Since, Hint: Hint{Action: ActShowHosts}},
			"%s waits for a machine with %s, and none has taken it.", m.Name, labelled(m.RunsOn))
	}
}

// Here says where the team's project is on this machine, if that is not the directory that the team
// has recorded. It is not part of the state: nothing is recorded of it.
type Here struct {
	Dir string // absolute; "" for the recorded one
	Top string // top of its work tree
}

// SetHere has [State.Team] return the team as it is on this machine. The caller has the state to
// itself.
func (s *State) SetHere(here Here) { s.here = here }

// of returns the team with what is elsewhere on this machine.
func (h Here) of(t Team) Team {
	if h.Dir == "" {
		return t
	}
	below, is := strings.CutPrefix(t.Dir, t.Base.Top+"/")
	if t.Dir, t.Base.Top = h.Dir, h.Top; is {
		t.Dir = h.Top + "/" + below
	} else {
		t.Dir = h.Top
	}
	return t
}
