package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"cadre/internal/agent/prompts"
	"cadre/internal/git/transport"
	"cadre/internal/git/worktree"
	"cadre/internal/replica"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Runner is the machine of a host that runs the members of a team by their labels, and leaves
// everything else to the host where the team is run. Its members work in worktrees of the machine's
// clone, and their branches travel through the team's remote.
type Runner struct {
	Machine string // its name, which no other running machine has
	Labels  []string
	// Takes reports whether the machine takes the member now: it has room, and no other machine
	// should rather have it. Then it has reserved a slot, until Taken is called. The record of the
	// member says by then whether the machine has it.
	Takes func(ctx context.Context, m team.Member) bool
	Taken func(member string)
	// Drained reports whether the machine gives its members away, each at the end of its turn.
	Drained func() bool
}

// RunnerPrefix begins the ids of the hosts of such machines.
const RunnerPrefix = "runner-"

// runnerPause is how soon a machine looks again at a member that it did not take.
const runnerPause = 500 * time.Millisecond

// remotePause is how long a machine waits before it asks a remote again that was away.
const remotePause = 5 * time.Second

// serves reports whether the member's session may be on this host.
func (h *Host) serves(m *team.Member) bool {
	if h.Runner == nil {
		return len(m.RunsOn) == 0
	}
	return len(m.RunsOn) > 0 && m.RunsWith(h.Runner.Labels)
}

// machine returns the name of the host's machine, "" where the team itself is run.
func (h *Host) machine() string {
	if h.Runner == nil {
		return ""
	}
	return h.Runner.Machine
}

// takes reports whether this host takes a member that no host has. A machine may have no room, or
// leave the member to another one. Afterwards taken must be called.
func (h *Host) takes(ctx context.Context, m team.Member) bool {
	if h.Runner == nil || h.Runner.Takes(ctx, m) {
		return true
	}
	h.round.next = min(h.round.next, runnerPause)
	return false
}

// taken ends what takes has begun.
func (h *Host) taken(m team.Member) {
	if h.Runner != nil {
		h.Runner.Taken(m.Name)
	}
}

// carryTime is how much more time a machine has at its end, to send the work of its members.
func (h *Host) carryTime() time.Duration {
	if h.Runner == nil {
		return 0
	}
	return workTime
}

// attach returns the command that takes the lease of the member.
func (h *Host) attach(m team.Member) *team.AttachMember {
	a := &team.AttachMember{Member: m.Name, From: m.Host, Ending: m.Shutdown.Request, Pool: h.pool(&m, h.round.members)}
	if h.Runner == nil {
		return a
	}
	a.Machine, a.Labels = h.Runner.Machine, h.Runner.Labels
	if m.Session != "" && m.Machine != a.Machine {
		why := fmt.Sprintf("It was on the machine %s, and this one is %s. Its worktree has what was sent from there.",
			m.Machine, a.Machine)
		h.Replica.View(func(s *team.State) { a.Note = prompts.Handover{Reason: why}.Note(s, m.Name) })
	}
	return a
}

// drain asks the members of a machine that gives them away to continue elsewhere. A session with a
// context hands over at the end of its turn. A shell ends when it has no task.
func (h *Host) drain(ctx context.Context, r *round) error {
	if h.Runner == nil || !h.Runner.Drained() {
		return nil
	}
	why := h.Runner.away()
	for name, s := range h.inOrder() {
		switch m := r.member(name); {
		case m == nil || m.Host != h.ID || m.Shutdown.Request != "":
		case m.Status == team.Spawning, m.Agent == team.Shell && m.Status == team.Idle:
			s.stop(stopDetach, why, h.StopGrace)
		case m.Agent != team.Shell && m.Status == team.Idle && m.Handover == "":
			if err := h.do(ctx, &team.HandOver{Member: name, Reason: why}, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// away is why a member of a drained machine continues elsewhere.
func (r *Runner) away() string {
	return fmt.Sprintf("the machine %s is drained, and another one continues", r.Machine)
}

// keeps reports whether a want must wait for another machine: one that is drained begins no turn.
func (h *Host) keeps(kind team.WantKind) bool {
	return h.Runner != nil && h.Runner.Drained() && (kind == team.WantWork || kind == team.WantDelivery)
}

// drained refuses a claim of a session whose machine gives it away.
func (h *Host) drained() error {
	if h.Runner == nil || !h.Runner.Drained() {
		return nil
	}
	return &team.Error{Code: team.NotReady, Text: "the machine " + h.Runner.Machine + " is drained, and takes no task"}
}

// publish sends the work of a member through the team's remote, for other machines. A team
// without one is on one machine.
func publish(ctx context.Context, procs *proc.Register, t team.Team, member string) error {
	if t.Remote == "" {
		return nil
	}
	road, err := transport.Open(ctx, procs, t.Dir, t)
	if err != nil {
		return err
	}
	return road.Send(ctx, member)
}

// welcome brings the member's branch to this machine as the remote has it, before the member's
// worktree is made or continued. What an earlier session here did not send, while the member went
// on elsewhere, is kept on a branch of its own.
func (s *slot) welcome(ctx context.Context, t team.Team, p worktree.Place) error {
	h := s.host
	road, err := transport.Open(ctx, h.Procs, t.Dir, t)
	if err != nil {
		return err
	}
	for said := false; ; said = true { // a session that began without the remote would have failed
		if err = road.Fetch(ctx); err == nil {
			break
		}
		if !said {
			h.Log(fmt.Sprintf("%s waits for the remote: %v", s.member, err))
		}
		select {
		case <-time.After(remotePause):
		case <-ctx.Done():
			return err
		}
	}
	news, err := road.News(ctx, s.member)
	if err != nil || !news {
		return err
	}
	if _, err := worktree.Leave(ctx, h.Procs, p.Dir, p.Branch, workOf(s.member, t.Name)); err != nil {
		return err
	}
	aside, err := road.Take(ctx, s.member)
	if aside != "" {
		h.Log(fmt.Sprintf("the branch %s had other work here, which is on the branch %s now", p.Branch, aside))
	}
	return err
}

// carry commits what the member left in its worktree, removes the worktree, and sends the branch,
// before the member's session may continue on another machine. It returns words for that session
// about what could not be sent.
func (s *slot) carry(m team.Member) (words string) {
	h := s.host
	if h.Runner == nil || m.Isolation != team.Worktree {
		return ""
	}
	h.settle(m.Name)
	ctx, cancel := context.WithTimeout(context.Background(), workTime)
	defer cancel()
	t := h.Replica.Team()
	p := Place(t, filepath.Dir(h.Hosts), m.Name)
	_, err := worktree.Leave(ctx, h.Procs, p.Dir, p.Branch, workOf(m.Name, t.Name))
	if err == nil {
		err = publish(ctx, h.Procs, t, m.Name)
	}
	if err == nil {
		return ""
	}
	h.Log("the work of " + m.Name + " stays here: " + err.Error())
	return fmt.Sprintf("\nWhat it did last is on the machine %s alone: %s", h.Runner.Machine, brief(err))
}

// Arrive brings the branches of members that work on other machines than this one into the
// repository of the team's directory. machine is the name of this one, "" where the team is run. It
// does nothing for a team on one machine.
func Arrive(ctx context.Context, rep *replica.Replica, procs *proc.Register, machine string) error {
	_, err := arrive(ctx, rep, procs, machine)
	return err
}

// arrive is Arrive, and returns the road on which the branches came; nil for no other machine.
func arrive(ctx context.Context, rep *replica.Replica, procs *proc.Register, machine string) (*transport.Road, error) {
	t := rep.Team()
	if t.Remote == "" {
		return nil, nil
	}
	var away []string
	rep.View(func(s *team.State) {
		for _, m := range s.Members() {
			if m.Isolation == team.Worktree && m.Machine != machine {
				away = append(away, m.Name)
			}
		}
	})
	if len(away) == 0 {
		return nil, nil
	}
	road, err := transport.Open(ctx, procs, t.Dir, t)
	if err == nil {
		err = road.Fetch(ctx)
	}
	for _, member := range away {
		sent := false
		if err == nil {
			sent, err = road.Sent(ctx, member)
		}
		if sent && err == nil {
			_, err = road.Take(ctx, member)
		}
	}
	return road, err
}

// ArriveAll is Arrive where the team is run, and refuses while work of a completed task is missing.
func ArriveAll(ctx context.Context, rep *replica.Replica, procs *proc.Register) error {
	road, err := arrive(ctx, rep, procs, "")
	if road == nil || err != nil {
		return err
	}
	aside, err := road.Aside(ctx)
	if err != nil {
		return err
	}
	var tasks []team.Task
	rep.View(func(s *team.State) { tasks = slices.Collect(s.Tasks()) })
	t := rep.Team()
	for _, task := range tasks {
		w := task.Work
		if w == nil || w.Machine == "" || task.Status != team.Completed {
			continue
		}
		there := !w.Open()
		if there && w.Commit != "" {
			if there, err = road.Holds(ctx, w.Member, w.Commit); err != nil {
				return err
			}
		}
		if there {
			continue
		}
		for _, branch := range aside {
			if has, err := road.On(ctx, branch, w.Commit); has && err == nil && w.Commit != "" {
				return team.Refuse(team.NotReady, "the work of task %s is on the branch %s: another machine went on "+
					"without it. Merge that branch, or have the task done again", task.Called(), branch).
					With(team.Hint{Action: team.ActMergeBranch, Team: t.Name, Name: branch, Dir: t.Dir},
						task.Hint(&t, team.ActRetryTask))
			}
		}
		return team.Refuse(team.NotReady, "the work of task %s is on the machine %s alone, which sends it as soon as "+
			"it runs and reaches the remote. Or have the task done again", task.Called(), w.Machine).
			With(team.Hint{Action: team.ActShowHosts}, task.Hint(&t, team.ActRetryTask))
	}
	return nil
}

// CatchUp records and sends what a machine has of a team and the remote has not: after a kill, or
// because the remote was away. all is false while something cannot be sent yet. No session of the
// team may be on the machine.
func CatchUp(ctx context.Context, rep *replica.Replica, dir, machine string, log func(string)) (all bool, err error) {
	procs, err := proc.Open("")
	if err != nil {
		return false, err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	if err := recordWork(ctx, rep, procs, dir, machine, "", log); err != nil {
		return false, err
	}
	t := rep.Team()
	road, err := transport.Open(ctx, procs, t.Base.Top, t)
	if err != nil {
		return false, err
	}
	var members []team.Member
	rep.View(func(s *team.State) { members = s.Members() })
	all = true
	for _, m := range members {
		if m.Isolation != team.Worktree {
			continue
		}
		unsent, err := road.Unsent(ctx, m.Name)
		if err != nil {
			return false, err
		}
		// it went on elsewhere, or has ended
		if (m.Machine != machine || !m.Status.Running()) && Worktree(dir, m.Name) {
			p := Place(t, dir, m.Name)
			if _, err := worktree.Leave(ctx, procs, p.Dir, p.Branch, workOf(m.Name, t.Name)); err != nil {
				return false, err
			}
			if unsent, err = road.Unsent(ctx, m.Name); err != nil {
				return false, err
			}
		}
		if !unsent {
			continue
		}
		switch err := road.Send(ctx, m.Name); {
		case errors.Is(err, transport.ErrOther):
			if err := road.SendAside(ctx, m.Name); err != nil {
				log(err.Error())
				all = false
			}
		case err != nil:
			log(err.Error())
			all = false
		}
	}
	return all, nil
}

// DropSent removes what the remote has of a team that is cleaned up, and whose branches are here.
func DropSent(ctx context.Context, t team.Team) error {
	if t.Remote == "" {
		return nil
	}
	procs, err := proc.Open("")
	if err != nil {
		return err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	road, err := transport.Open(ctx, procs, t.Dir, t)
	if err != nil {
		return err
	}
	return road.Drop(ctx)
}

// LeaveMachine removes from a machine what a team does not need there while no session of it is
// there: the branches of its members that were sent. The others stay, and are logged. dir is the
// team's folder.
func LeaveMachine(ctx context.Context, rep *replica.Replica, dir, machine string, log func(string)) error {
	procs, err := proc.Open("")
	if err != nil {
		return err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	t := rep.Team()
	t.Dir = t.Base.Top // the clone may not have the directory
	road, err := transport.Open(ctx, procs, t.Base.Top, t)
	if err != nil {
		return err
	}
	var members []team.Member
	rep.View(func(s *team.State) { members = s.Members() })
	all := true
	for _, m := range members {
		if m.Isolation != team.Worktree || m.Machine == "" {
			continue
		}
		if Worktree(dir, m.Name) { // it could not be committed
			all = false
			continue
		}
		sent, err := road.Leave(ctx, m.Name)
		if err != nil {
			return err
		}
		if !sent && m.Machine == machine {
			all = false
			log(fmt.Sprintf("the branch %s stays: the remote does not have all of it", team.BranchOf(t.Name, m.Name)))
		}
	}
	if !all {
		return nil
	}
	return errors.Join(DropWork(ctx, t), road.Forget(ctx))
}

// reach fetches a commit that another machine made, unless it is here.
func (h *Host) reach(ctx context.Context, t team.Team, commit string) error {
	if t.Remote == "" {
		return nil
	}
	road, err := transport.Open(ctx, h.Procs, t.Dir, t)
	if err != nil {
		return err
	}
	there, err := road.Has(ctx, commit)
	if there || err != nil {
		return err
	}
	if err := road.Fetch(ctx); err != nil {
		return &team.Error{Code: team.NotReady, Text: err.Error()}
	}
	if there, err = road.Has(ctx, commit); err == nil && !there {
		err = &team.Error{Code: team.NotReady, Text: fmt.Sprintf("the commit %.12s was not sent yet", commit)}
	}
	return err
}

// awaitRecords refuses for now while another machine has not recorded the work of the tasks.
func (h *Host) awaitRecords(tasks []team.Task) error {
	for _, t := range tasks {
		if t.Work.Open() && t.Work.Machine != h.machine() {
			return &team.Error{Code: team.NotReady, Text: fmt.Sprintf("the work of task %s is not recorded yet",
				t.Called())}
		}
	}
	return nil
}
