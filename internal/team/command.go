package team

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Limits on what a command may carry.
const (
	MaxText    = 1 << 20 // bytes of a message, prompt, description, result or plan
	MaxSubject = 4 << 10 // bytes of a subject and of other short texts
	MaxID      = 256     // bytes of a command's id
	MaxName    = 64      // bytes of the name of a team or a member
	MaxStrikes = 10      // rejections of the same thing in a row, after which the lead is notified
)

// Command asks for one change. It carries everything that the decision depends on, apart from the
// state.
type Command struct {
	ID    string // globally unique; a repetition with the same id changes nothing
	Actor string // a member's name, [User], or [Host] with an id
	At    Time
	// Incarnation, when not 0, is the actor's incarnation. A command from an earlier session of the
	// member is refused.
	Incarnation int64
	// Lease, when not 0, is the lease under which a host acts for the member that the body names.
	Lease int64
	// Via, when not "", says through what the command came in, for the history: the name of a
	// token.
	Via  string
	Body Body
}

// Body says what a command asks for. Each kind of command is one struct, and its decide method has
// the rules.
type Body interface {
	decide(d *decision) error
}

// Decision is the answer to an accepted command.
type Decision struct {
	// Record is what to append to the journal. It is nil when nothing changes.
	Record *Record
	// Repeats is the seq of the record that this command became earlier; 0 for a new command.
	Repeats int64
}

// Decide says what c changes, and never changes s. A refusal is an [*Error].
func Decide(s *State, c Command) (Decision, error) {
	switch {
	case c.ID == "":
		return Decision{}, refuse(Invalid, "the command has no id")
	case len(c.ID) > MaxID:
		return Decision{}, refuse(TooLarge, "the id of the command has %d bytes, of at most %d", len(c.ID), MaxID)
	case len(c.Via) > MaxID:
		return Decision{}, refuse(TooLarge, "the name of the token has %d bytes, of at most %d", len(c.Via), MaxID)
	case c.Body == nil:
		return Decision{}, refuse(Invalid, "the command asks for nothing")
	}
	if seq := s.recent.seq(c.ID); seq != 0 {
		return Decision{Repeats: seq}, nil
	}
	d := &decision{State: s, Command: c}
	if err := d.enter(); err != nil {
		return Decision{}, err
	}
	if err := c.Body.decide(d); err != nil {
		return Decision{}, err
	}
	_, several := c.Body.(*Batch)
	if !several {
		d.settle()
	}
	if err := d.settleSkips(); err != nil {
		return Decision{}, err
	}
	if !several {
		d.returnToSenders()
	}
	if len(d.events) == 0 {
		return Decision{}, nil
	}
	r := &Record{Seq: s.seq + 1, ID: c.ID, Actor: c.Actor, At: c.At, Via: c.Via, Events: d.events}
	clean(r)
	return Decision{Record: r}, nil
}

// decision is the state of one call of Decide.
type decision struct {
	*State
	Command
	actor  *Member // nil for the user and for hosts
	events []Event
	sent   int64           // messages among the events
	asked  int64           // requests among the events
	ending map[string]bool // members that end with this command
	// members that were told the news with this command
	informed map[string]bool
	unneeded []*Task // verifications that end with this command
	// for [decision.settle]
	created   int                 // tasks that the events create
	finished  int                 // groups that the events complete
	awaited   int                 // groups whose items a host must find now
	madeBytes int                 // size of the tasks that groups made
	freed     []string            // ids of the tasks that wait for nothing more, because of those groups
	looked    int                 // events that were looked at
	closed    map[string]bool     // tasks that those close
	waiting   map[string]blockage // of groups, once those tasks are closed
	reopened  bool                // the events return tasks to the queue
}

func (d *decision) emit(e ...Event) { d.events = append(d.events, e...) }

// enter checks what holds for every command: that there is a team to act on, and that the actor
// exists and may act.
func (d *decision) enter() error {
	switch d.Body.(type) {
	case *CreateTeam, *RestoreTeam: // these come first
		return nil
	}
	if d.team.ID == "" {
		return Refuse(NotFound, "the team does not exist").With(Hint{Action: ActCreate})
	}
	if err := d.team.CheckOurs(); err != nil {
		return err
	}
	if _, cleaning := d.Body.(*CleanUp); !cleaning {
		_, releasing := d.Body.(*ReleaseTeam)
		_, taking := d.Body.(*TakeBackTeam)
		if err := d.team.CheckHere(); err != nil && !releasing && !taking {
			return err
		}
		switch {
		case (releasing || taking) && !d.team.CleanedUp: // also for a team that has ended
		case d.team.CleanedUp:
			return refuse(Finished, "team %s was cleaned up", d.team.Name)
		case d.team.Status == TeamComplete || d.team.Status == TeamAborted:
			_, receiving := d.Body.(mailReading)
			_, consolidating := d.Body.(*Consolidate)
			_, recording := d.Body.(*RecordWork) // recorded work stays true after the team has ended
			_, rollingBack := d.Body.(*RollBackTask)
			_, moving := d.Body.(*MoveTeam) // its work is still to be consolidated
			if !receiving && !recording && !((consolidating || rollingBack || moving) && d.team.reopens()) {
				return Refuse(Finished, "team %s is %s and can no longer change", d.team.Name, d.team.Status).
					With(d.team.Onward())
			}
		}
	}
	if d.Actor == User || d.isHost() {
		return nil
	}
	if d.actor = d.member(d.Actor); d.actor == nil {
		return d.unknown(d.Actor)
	}
	if !d.actor.Status.Running() {
		return refuse(Finished, "%s has %s and can no longer act; team %s has: %s", d.actor.Name, ended(d.actor.Status),
			d.team.Name, names(d.Recipients()))
	}
	if d.Incarnation != 0 && d.Incarnation != d.actor.Incarnation {
		return refuse(Conflict, "this is session %d of %s, whose present session is %d: it was replaced and must end",
			d.Incarnation, d.actor.Name, d.actor.Incarnation)
	}
	return nil
}

// isHost reports whether the actor is a host. A host needs an id: without one it would match every
// member that has no host.
func (d *decision) isHost() bool {
	return strings.HasPrefix(d.Actor, hostPrefix) && len(d.Actor) > len(hostPrefix)
}

func ended(s MemberStatus) string {
	if s == Failed {
		return "failed"
	}
	return "stopped"
}

// leads checks that the actor may lead: it is the lead itself or the user.
func (d *decision) leads(what string) error {
	if d.Actor == User || d.Actor == d.team.Lead {
		return nil
	}
	return Refuse(Denied, "%s is not the lead and cannot %s", brief(strings.TrimPrefix(d.Actor, "@")), what).
		With(Hint{Action: ActAsk, Team: d.team.Name, Member: d.team.Lead})
}

// known returns the member of that name.
func (d *decision) known(name string) (*Member, error) {
	if m := d.member(name); m != nil {
		return m, nil
	}
	return nil, d.unknown(name)
}

// running returns the member of that name. It refuses a member that has ended.
func (d *decision) running(name string) (*Member, error) {
	m, err := d.known(name)
	if err == nil && !m.Status.Running() {
		return nil, Refuse(Finished, "%s has %s; valid names: %s", name, ended(m.Status), names(d.Recipients())).
			With(d.team.hint(ActShowTeam))
	}
	return m, err
}

// teammate returns the running member of that name. It refuses the lead.
func (d *decision) teammate(name, what string) (*Member, error) {
	m, err := d.running(name)
	if err == nil && name == d.team.Lead {
		end := ActAbort
		if d.Actor != User { // an agent has no other way
			end = ActCleanUp
		}
		return nil, Refuse(Denied, "%s is the lead, for the life of the team, and cannot be %s; the team ends as a whole",
			name, what).With(d.team.hint(end))
	}
	return m, err
}

// hosted returns the running member of that name. It checks that the actor is the member's host or
// the member itself.
func (d *decision) hosted(name string) (*Member, error) {
	m, err := d.running(name)
	if err != nil {
		return nil, err
	}
	switch {
	case d.Actor == name || d.Actor == User:
		return m, nil
	case !d.isHost():
		return nil, refuse(Denied, "%s cannot act for %s; only %s itself, its host and the user can",
			d.Actor, name, name)
	case m.Host == "":
		return nil, refuse(Conflict, "%s does not hold the lease of %s; no host does", brief(d.Actor), name)
	case d.Actor != Host(m.Host) || d.Lease != 0 && d.Lease != m.Lease:
		return nil, refuse(Conflict, "%s does not hold the lease of %s: another host took it", brief(d.Actor), name)
	}
	return m, nil
}

// self returns the member that the command is about. That is the actor, or the named member where
// the user or a host sends the command.
func (d *decision) self(name string) (*Member, error) {
	if name == "" && d.actor == nil {
		return nil, d.forWhom()
	}
	if name == "" {
		name = d.Actor
	}
	return d.hosted(name)
}

// forWhom refuses a command of the user for a member that it does not name.
func (d *decision) forWhom() error {
	return refuse(Invalid, "say which member it is for: %s", names(d.Recipients()))
}

// tell sends a message from the team itself.
func (d *decision) tell(to, ref, format string, args ...any) {
	m := d.member(to)
	if m == nil || !m.Status.Running() || d.ending[to] {
		return
	}
	d.post(Message{To: to, Type: TypeSystem, Ref: ref, Body: clip(fmt.Sprintf(format, args...)), Priority: "normal"})
}

// cited returns a text of a member or a program for quoting below words of the team: on lines of
// its own, each marked as quoted. On a line of ours its first sentence could pass for our own.
func cited(s string) string {
	return "\n> " + strings.Join(splitLines(strings.TrimRight(s, "\r\n")), "\n> ")
}

// likeQuotes are signs that a model may take for the end of a quotation.
const likeQuotes = "\u00ab\u00bb\u02ba\u02dd\u02ee\u02f6\u05f4\u201c\u201d\u201e\u201f\u2033\u2034\u2036\u2037\u2057" +
	"\u275d\u275e\u2e42\u3003\u300d\u300f\u301d\u301e\u301f\uff02\U0001f676\U0001f677\U0001f678"

// Quoted returns a short text of a member or a program for a line of ours. Nothing inside it looks
// like its closing quotation mark.
func Quoted(s string) string {
	var b strings.Builder
	for _, r := range strconv.Quote(s) {
		if strings.ContainsRune(likeQuotes, r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Inline returns such a text for use within our own marks, such as brackets. It is quoted where it
// has more than plain words, which could close those marks.
func Inline(s string) string {
	special := func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.M, unicode.N) &&
			!strings.ContainsRune(" !#$%&'*+,-./:;=?@\\^_`|~", r)
	}
	if s == "" || strings.ContainsFunc(s, special) {
		return Quoted(s)
	}
	return s
}

var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n",
	"\u2029", "\n")

// splitLines returns the lines of a text as a model would see them.
func splitLines(s string) []string { return strings.Split(lineBreaks.Replace(s), "\n") }

// changed notifies a member that something is different for it from now on. While it works it reads
// that at its next step, else with its next prompt.
func (d *decision) changed(m *Member, words string) {
	started := m.Session != "" || m.Status != Spawning // else it starts with the new setting
	// nothing is enforced on an external session
	if started && m.Agent != External && m.Status.Running() && !d.ending[m.Name] {
		d.post(Message{To: m.Name, Type: TypeSystem, Body: words, Priority: "normal", Quiet: m.Status != Active})
	}
}

// hint sends a message that does not start a turn.
func (d *decision) hint(to, words string) {
	if m := d.member(to); m != nil && m.Status.Running() && !d.ending[to] {
		d.post(Message{To: to, Type: TypeSystem, Body: clip(words), Priority: "normal", Quiet: true})
	}
}

// assigned notifies a member of a task that is meant for it. A session of ours is given the task
// itself as soon as it is free, so the notice starts no turn.
func (d *decision) assigned(to, task, format string, args ...any) {
	if m := d.member(to); m != nil && m.Status.Running() && !d.ending[to] {
		d.post(Message{To: to, Type: TypeTaskAssignment, Ref: task, Body: clip(fmt.Sprintf(format, args...)),
			Priority: "normal", Quiet: m.Agent != External})
	}
}

// post sends a message, with the news for its recipients.
func (d *decision) post(m Message) {
	d.inform(&m)
	d.sent++
	m.Seq = d.messageSeq + d.sent
	d.emit(&MessageSent{Message: m})
}

func (d *decision) newRequest(kind, member string) string {
	d.asked++
	return fmt.Sprintf("%s-%d@%s", kind, d.requestSeq+d.asked, member)
}

// clip shortens a text of ours to the limit of a message.
func clip(s string) string {
	if len(s) <= MaxText {
		return s
	}
	const mark = "\n[shortened]"
	return strings.ToValidUTF8(s[:MaxText-len(mark)], "") + mark
}

type text struct {
	what, value string
	max         int
}

func limit(texts ...text) error {
	for _, t := range texts {
		if len(t.value) > t.max {
			return refuse(TooLarge, "the %s has %d bytes, of at most %d; put the rest into a file and name it", t.what,
				len(t.value), t.max)
		}
	}
	return nil
}

func oneOf(what, value string, valid []string) error {
	if slices.Contains(valid, value) {
		return nil
	}
	return refuse(Invalid, "%q is not a %s; use one of: %s", brief(value), what, strings.Join(valid, ", "))
}

// brief shortens a text of a command for an error, and keeps enough to identify it.
func brief(s string) string { return clipTo(s, 80) }

func clipTo(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…" // drop the bytes of a character that was cut
}
