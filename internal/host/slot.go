package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/envelope"
	"cadre/internal/agent/prompts"
	"cadre/internal/agent/sessionlog"
	"cadre/internal/agent/traceparent"
	"cadre/internal/git/checkout"
	"cadre/internal/git/worktree"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// slot is one session that this host runs, from taking its lease to its last report.
type slot struct {
	host        *Host
	member      string
	incarnation int64
	lease       int64
	teamID      string
	lead        string // name of the team's lead
	ctx         context.Context
	leave       context.CancelFunc // ends ctx: the session must end

	agent agent.Agent
	dir   string   // in which it works
	env   []string // of the session's programs
	bound bool     // its role lacks some tools
	told  bool     // it gets its tasks in prompts; otherwise it claims them by itself

	gifts chan team.Want           // pending wants, the newest of each kind
	given map[team.WantKind]string // key of the last want of each kind that was given; only the host uses it
	again chan team.WantKind       // kinds that could not be given, to be given again
	post  post

	interrupting sync.WaitGroup // running interrupts of its turn

	saving    sync.WaitGroup // running saves of its work, while no session leads
	savedFile lock
	keeping   lock // locked before savedFile

	mu    sync.Mutex
	how   ending
	why   string
	grace time.Duration // for the session to end by itself
	turn  turn          // the state of the current turn

	session     agent.Session // nil while none is running
	interrupted string        // key of the want for which the turn was interrupted last

	calm <-chan time.Time // after a hook's rejection, what to wait for before it is reported idle again

	problem agent.Problem // of stopHopeless
}

// ending is how the end of a session is reported.
type ending int

const (
	running      ending = iota
	stopReport          // it was asked to end: the member is stopped
	stopDetach          // it is not wanted here now: the member is started again some time
	stopFresh           // a fresh session is to replace it
	stopFull            // a fresh session replaces it, as its context is full
	stopRest            // it waits for a lead: its tasks return to the queue
	stopHopeless        // it cannot recover by itself
	stopQuietly         // this host no longer has the member
)

// lock is held while commands are sent. It is a channel because simulated time stands still while a
// goroutine waits for a mutex, and passes while it waits for a channel.
type lock chan struct{}

func newLock() lock { return make(lock, 1) }

func (l lock) Lock()   { l <- struct{}{} }
func (l lock) Unlock() { <-l }

func (h *Host) slot(m team.Member, a agent.Agent) {
	ctx, cancel := context.WithCancel(context.Background())
	t := h.Replica.Team()
	_, worker := a.(agent.Worker)
	s := &slot{host: h, member: m.Name, incarnation: m.Incarnation, lease: m.Lease, teamID: t.ID, lead: t.Lead,
		ctx: ctx, leave: cancel, agent: a, dir: t.Dir, told: !worker,
		gifts: make(chan team.Want, 12), given: map[team.WantKind]string{}, again: make(chan team.WantKind, 8),
		savedFile: newLock(), keeping: newLock()}
	s.turn.since = h.Replica.Seq()
	h.slots[m.Name] = s
	h.pulse.next = time.Time{} // send the first heartbeat at once
	h.fence.enter(s)
	go s.run(m)
}

// stop asks the slot to end its session. The first reason counts.
func (s *slot) stop(how ending, why string, grace time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.how == running {
		s.how, s.why, s.grace = how, why, grace
		s.leave()
	}
}

func (s *slot) ending() ending {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.how
}

// give passes on a want that the session was not given yet. It does not wait: a want that does not
// fit comes again.
func (s *slot) give(w team.Want) {
	for more := true; more; {
		select {
		case kind := <-s.again:
			delete(s.given, kind)
		default:
			more = false
		}
	}
	if s.given[w.Kind] == w.Key {
		return
	}
	select {
	case s.gifts <- w:
		s.given[w.Kind] = w.Key
	default:
	}
}

func (s *slot) run(m team.Member) {
	defer func() {
		select {
		case s.host.ended <- s:
		case <-s.host.over:
		}
	}()
	defer s.leave()
	scratch := filepath.Join(s.host.Hosts, s.host.ID, "scratch-"+s.member)
	defer os.RemoveAll(scratch)

	failure := s.live(m, scratch)
	s.host.fence.leave(s)

	s.mu.Lock()
	how, why := s.how, s.why
	s.mu.Unlock()
	// The session has ended; the end of the slot must not cut its report short.
	kept := s.lastSave(how, why)
	if how == stopReport {
		s.host.leaveWork(m)
	}
	noting, noted := context.WithTimeout(context.Background(), giveBack)
	body := s.endReport(noting, how, why, failure)
	noted()
	if how == stopDetach || how == stopFresh || how == stopRest {
		words := s.carry(m)
		if d, is := body.(*team.DetachMember); is && words != "" {
			d.Note = strings.TrimSpace(d.Note + words)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), giveBack) // the work took its own time
	defer cancel()
	// otherwise its tasks would be queued without the saved work; the host sees later that the
	// session has ended
	if body != nil && kept {
		if err := s.host.do(ctx, body, s.lease); err != nil {
			s.host.Log("not recorded that " + s.member + " ended: " + err.Error())
		}
	}
	if how != stopReport {
		s.host.keepWork(m)
	}
}

// endReport returns the report about the end of the session; nil for none.
func (s *slot) endReport(ctx context.Context, how ending, why string, failure error) team.Body {
	switch how {
	case stopReport:
		return &team.ReportStopped{Member: s.member, Reason: why}
	case stopDetach, stopRest:
		return &team.DetachMember{Member: s.member, Reason: why}
	case stopFresh:
		return &team.DetachMember{Member: s.member, Reason: why, Fresh: true, Note: s.note(ctx, why)}
	case stopFull:
		return &team.ReportTrouble{Member: s.member, Trouble: string(agent.ProblemContext), Text: why, Gone: true,
			Note: s.note(ctx, why)}
	case stopHopeless:
		failure = &s.problem
	case stopQuietly:
		return nil
	}
	if failure == nil {
		failure = errors.New(team.EndedItself)
	}
	if s.told || s.member == s.lead {
		trouble, text := "crash", failure.Error()
		if p, ok := errors.AsType[*agent.Problem](failure); ok {
			trouble, text = string(p.Kind), s.wordsOf(*p)
			if b := s.limit(*p); b != nil {
				b.Gone = true
				return b
			}
		}
		return &team.ReportTrouble{Member: s.member, Trouble: trouble, Text: text, Gone: true}
	}
	return &team.ReportFailed{Member: s.member, Reason: failure.Error()}
}

// note returns the text that hands over to a fresh session, which replaces this one.
func (s *slot) note(ctx context.Context, why string) (note string) {
	h := prompts.Handover{Reason: why}
	s.mu.Lock()
	h.Last = s.turn.last
	mail := slices.DeleteFunc(slices.Clone(s.turn.mail), func(m team.Message) bool {
		// it was for this session alone, or the task itself says it
		return m.Incarnation != 0 || m.Type == team.TypeTaskAssignment
	})
	s.mu.Unlock()
	h.Mail = envelope.Batch(s.teamID, s.member, mail)
	h.Changed = s.changed(ctx)
	s.host.Replica.View(func(st *team.State) { note = h.Note(st, s.member) })
	return note
}

// changed returns the files that differ where the member works; none if that is unknown.
func (s *slot) changed(ctx context.Context) []string {
	if p := s.host.Machine.Project; p != nil {
		w := SavedWork{Member: s.member}
		_ = p.Changes(ctx, s.dir, &w)
		return w.Files
	}
	files, _ := worktree.Changed(ctx, s.host.Procs, s.dir) // outside a repository the list is empty
	return files
}

// spec describes the session to start.
func (s *slot) spec(ctx context.Context, m team.Member, scratch string) (agent.Spec, error) {
	var t team.Team
	var spec agent.Spec
	s.host.Replica.View(func(st *team.State) {
		t = st.Team()
		spec = agent.Spec{TeamID: t.ID, Team: t.Name, Home: s.host.home(), Member: m.Name, Incarnation: m.Incarnation,
			Lead: t.Lead, Role: m.Role, Prompt: m.Prompt,
			Instructions: prompts.Instructions(st, m.Name, prompts.Hosted), Model: m.Model, Program: m.Program,
			Args: m.Args, Resume: m.Session, Spent: m.SessionCost, Dir: t.Dir, Scratch: scratch,
			Access: s.access(st), Procs: s.host.Procs}
		spec.Env = slices.Concat([]string{agent.NoLocks}, s.host.Env, m.Env,
			traceparent.Environment(surroundings(agent.Spec{Env: s.host.Env}), t.ID, m.Name, m.Incarnation),
			spec.Identity())
	})
	if err := s.host.missing(ctx, t); checkout.IsMissing(err) {
		return spec, &agent.Problem{Kind: agent.ProblemMissing, Text: fmt.Sprintf("%s cannot work: %v", m.Name, err)}
	} else if err != nil {
		return spec, err
	}
	s.env = surroundings(spec)
	spec.Gate = func(tool, input string) (err error) {
		gate := func(reads bool) {
			s.host.Replica.View(func(st *team.State) { err = st.Gate(m.Name, tool, reads) })
		}
		if gate(false); err != nil && s.reads(tool, input) { // reads looks at files: call it last
			gate(true)
		}
		return cmp.Or(err, s.mayWrite(tool, input))
	}
	spec.Reads = s.reads
	spec.Where = s.where
	spec.Carries = func(text string) []int64 { return envelope.Carries(t.ID, m.Name, text) }
	if m.Role != "" && s.host.Role != nil {
		if err := s.takeRole(&spec, m, t.Dir); err != nil {
			return spec, err
		}
	}
	if m.Isolation == team.Worktree {
		dir, err := s.worktree(ctx, t, m)
		if err != nil {
			return spec, &agent.Problem{Kind: agent.ProblemMissing,
				Text: fmt.Sprintf("%s cannot have a worktree of its own: %v", m.Name, err)}
		}
		s.dir, spec.Dir = dir, dir
	}
	return spec, nil
}

// worktree makes the member's worktree, or continues it. A record of a worktree, of a member that
// never had a session, was left by an earlier team, whose folder was lost.
func (s *slot) worktree(ctx context.Context, t team.Team, m team.Member) (string, error) {
	place := Place(t, filepath.Dir(s.host.Hosts), m.Name)
	if s.host.Runner != nil {
		if err := s.welcome(ctx, t, place); err != nil {
			return "", err
		}
	}
	dir, err := worktree.Add(ctx, s.host.Procs, place)
	if _, broken := errors.AsType[*worktree.BrokenError](err); !broken || m.Lease > 1 || m.Incarnation > 1 {
		return dir, err
	}
	words, failure := ForgetLost(ctx, s.host.Procs, place)
	if failure != nil || words == "" {
		return "", cmp.Or(failure, err)
	}
	s.host.Log(m.Name + ": " + words)
	return worktree.Add(ctx, s.host.Procs, place)
}

// takeRole adds to the spec what the member's role defines, if there is a role of that name.
func (s *slot) takeRole(spec *agent.Spec, m team.Member, dir string) error {
	role, ok, err := s.host.Role(dir, m.Role)
	if err != nil {
		return &agent.Problem{Kind: agent.ProblemMissing,
			Text: fmt.Sprintf("the role of %s cannot be read: %v", m.Name, err)}
	}
	if !ok {
		return nil
	}
	spec.Instructions += "\n" + role.Prompt
	if spec.Model == "" && m.Agent == role.Agent {
		spec.Model = role.Model
	}
	s.bound = len(role.Tools)+len(role.Disallowed) > 0
	spec.Access.Gated = spec.Access.Gated || s.bound
	gate := spec.Gate
	spec.Gate = func(tool, input string) error {
		if err := role.Allows(tool); err != nil {
			return err
		}
		return gate(tool, input)
	}
	return nil
}

// access returns what the session may do without asking.
func (s *slot) access(st *team.State) agent.Access {
	m, _ := st.Member(s.member)
	allow := st.Team().Permissions.Allow
	if s.member == s.lead { // the lead is asked to look at the merged work, and may do so without asking
		allow = append(slices.Clip(allow), "Read(/"+filepath.ToSlash(MergedDir(filepath.Dir(s.host.Hosts)))+"/**)")
	}
	return agent.Access{Mode: m.PermissionMode, Writes: st.Writes(s.member), Gated: s.bound ||
		st.Gated(s.member), Allow: allow}
}

// live starts the session and follows it to its end. It returns when no process of it is left, with
// the reason if it ended by itself.
func (s *slot) live(m team.Member, scratch string) error {
	spec, err := s.spec(s.ctx, m, scratch)
	if err != nil {
		return err
	}
	if s.told {
		tools, err := s.serveTools(spec.Gate)
		if err != nil {
			return err
		}
		defer tools.close()
		spec.Tools, spec.ToolServer = tools, tools.command()
	}
	session, err := s.agent.Start(s.ctx, spec, memberTeam{s})
	if err != nil {
		return err
	}
	session = s.show(session)
	s.hold(session)
	defer s.interrupting.Wait()
	defer s.hold(nil)
	givers, stopGiving := context.WithCancel(s.ctx)
	var giving sync.WaitGroup
	started := make(chan agent.Started, 1)
	giving.Go(func() { s.deliver(givers, session, spec.Access, started) })
	stopped := make(chan struct{})
	finished := make(chan struct{})
	go func() { // ends the session when the slot must end
		defer close(stopped)
		select {
		case <-finished:
			return
		case <-s.ctx.Done():
		}
		s.mu.Lock()
		grace, cancel := context.WithTimeout(context.Background(), s.grace)
		s.mu.Unlock()
		var hastening sync.WaitGroup
		hastening.Go(func() { s.host.hasten(grace, cancel) })
		defer hastening.Wait()
		defer cancel()
		if err := session.Stop(grace); err != nil {
			s.host.Log("ending the session of " + s.member + ": " + err.Error())
		}
	}()
	err = s.follow(session, started)
	close(finished)
	<-stopped
	stopGiving()
	giving.Wait()
	s.saving.Wait()
	return err
}

// hold sets the session whose turns can be interrupted; nil for none.
func (s *slot) hold(session agent.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session = session
}

// interrupt ends the turn of the session, once for the want with that key. It does not wait.
func (s *slot) interrupt(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == nil || s.interrupted == key {
		return
	}
	s.interrupted, s.turn.cut = key, !s.turn.runs
	session := s.session
	s.interrupting.Go(func() { s.endTurnOf(session) })
}

// endTurnOf ends the turn of the session.
func (s *slot) endTurnOf(session agent.Session) {
	ctx, cancel := context.WithTimeout(s.ctx, s.host.StopGrace)
	defer cancel()
	if err := session.Interrupt(ctx); err != nil && s.ctx.Err() == nil {
		s.host.Log(s.member + " could not be interrupted: " + err.Error())
	}
}

// show returns the session with a log of its output. If the log cannot be written, that is
// reported, and the session works without it.
func (s *slot) show(session agent.Session) agent.Session {
	if s.host.Sessions == "" {
		return session
	}
	failed := func(err error) { s.host.Log("what " + s.member + " shows is not logged: " + err.Error()) }
	log, err := s.host.Sessions.Open(s.member)
	if err != nil {
		failed(err)
		return session
	}
	return sessionlog.Record(session, log, s.host.Replica.Now, failed)
}

// memberTeam is the replica as a session sees it: it acts as the session's member, in this
// incarnation.
type memberTeam struct{ slot *slot }

func (d memberTeam) Do(ctx context.Context, body team.Body) (*team.Record, error) {
	send := func(body team.Body) (replica.Receipt, error) {
		return d.slot.host.send(ctx, team.Command{ID: replica.NewID(), Actor: d.slot.member,
			Incarnation: d.slot.incarnation, Body: inWords(body)})
	}
	var receipt replica.Receipt
	var err error
	if c, ok := body.(*team.ClaimTask); ok && (c.Member == "" || c.Member == d.slot.member) {
		receipt, err = d.slot.takeTask(ctx, c, send)
	} else {
		receipt, err = send(body)
	}
	if err == nil && receipt.Record != nil {
		d.slot.host.tracer.follow(ctx, receipt.Record.Events)
	}
	return receipt.Record, err
}

func (d memberTeam) View(see func(*team.State)) { d.slot.host.Replica.View(see) }
