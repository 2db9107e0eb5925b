package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/render"
	"cadre/internal/render/excerpt"
	"cadre/internal/render/sanitize"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
	"cadre/internal/ui/pane"
	"cadre/internal/ui/presence"
	"cadre/internal/ui/sessionview"
)

const (
	// hostPace is the time between two looks at the host of a member.
	hostPace = time.Second
	// hostGrace is how long a member may be without a host before the person is told: a new host
	// takes a moment.
	hostGrace = 3 * time.Second
	// sendPatience is how long the end of a view waits for the message that is being sent.
	sendPatience = time.Second
	// mostRedrawn is how many lines a viewer draws again after a resize.
	mostRedrawn = 1000
	// mostRepeated is how many bytes of a sent message a viewer repeats.
	mostRepeated = 300
)

// noHost is the state of a member in the title of its pane while no process runs its session.
const noHost = "no host"

// viewer shows the session of a member in a terminal. One goroutine prints.
type viewer struct {
	*app
	of     *engine.Team
	member string
	pane   bool // the terminal is a pane that cadre opened, so it may be drawn again

	drawn   []sessionview.Line // the last ones
	width   int
	said    string    // what stands above the lines
	missing time.Time // since when no host has the member; 0 while one has
	told    bool      // the person was told of that
	titled  pane.Member
	looks   *presence.Viewer
	line    *linePrompt
	asks    *message // it would end the member's command; the next line says whether it is sent
}

// message is a message that a person typed, and how sending it went.
type message struct {
	typed string
	body  *team.SendMessage
	asked string // the question that the person agreed to; "" for none
	err   error
}

// arrival is some lines, or the error that ends them.
type arrival struct {
	lines []sessionview.Line
	err   error
}

// show prints lines, and sends what the person types, until the member ends or the person leaves.
func (v *viewer) show(c *cobra.Command, lines iter.Seq2[[]sessionview.Line, error]) error {
	v.width, _ = v.out.size()
	v.said = fmt.Sprintf("a line that you type goes to %s; leave with Ctrl-C", v.member)
	v.note(v.said)
	v.looks = presence.Open(v.home.Root, os.Getenv)
	defer v.looks.Close()
	v.looks.Show(presence.View{Team: v.of.Team().ID, Member: v.member})
	v.looks.Press(now())
	resized, stop := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	var who pane.Member
	v.of.View(func(s *team.State) { who = pane.Of(s, v.member) })
	v.line = openPrompt(v.out, v.member, who.Color)
	defer v.line.close()
	if v.line.tty != nil { // otherwise nothing has to be restored before the process stops
		signal.Notify(stop, syscall.SIGTSTP)
		defer signal.Stop(stop)
	}
	out := &outbox{write: make(chan message), written: make(chan message, 1)}
	go v.send(c, out.write, out.written)
	defer func() { v.leave(out) }()
	left := make(chan struct{})
	defer close(left)
	look := time.NewTicker(hostPace)
	defer look.Stop()
	v.look(c.Context(), time.Now())
	return v.follow(c.Context(), out, happenings{
		come: arrivals(lines, left), typed: readAll(c.InOrStdin()), resized: resized, stop: stop, look: look.C,
	})
}

// happenings are what a viewer waits for, besides the messages that are sent.
type happenings struct {
	come          <-chan arrival
	typed         <-chan []byte
	resized, stop <-chan os.Signal
	look          <-chan time.Time // when it looks at the host of the member again
}

// follow shows what happens until the lines end.
func (v *viewer) follow(ctx context.Context, out *outbox, on happenings) error {
	for {
		v.line.draw()
		next, first := out.next()
		var err error
		select {
		case n, more := <-on.come:
			if !more {
				return nil
			}
			if err = n.err; err == nil {
				err = v.draw(n.lines)
			}
		case <-on.resized:
			err = v.redraw()
		case <-on.stop:
			v.line.stop(ctx)
		case now := <-on.look:
			err = v.look(ctx, now)
		case data, more := <-on.typed:
			if !more {
				on.typed = nil
			}
			var some []message
			some, err = v.entered(ctx, data)
			out.unsent = append(out.unsent, some...)
		case next <- first:
			out.unsent, out.sending = out.unsent[1:], true
		case sent := <-out.written:
			out.sending = false
			err = v.sent(sent)
		}
		if err != nil {
			return err
		}
	}
}

// outbox has the messages that the person typed and that were not sent yet. One is sent at a time.
type outbox struct {
	unsent  []message
	sending bool // a message is being sent
	write   chan message
	written chan message
}

// next returns the next message to send, and the channel for it. The channel is nil if no message
// is waiting.
func (o *outbox) next() (chan<- message, message) {
	if len(o.unsent) == 0 {
		return nil, message{}
	}
	return o.write, o.unsent[0]
}

// arrivals returns the lines as they come, until they end or left is closed.
func arrivals(lines iter.Seq2[[]sessionview.Line, error], left <-chan struct{}) <-chan arrival {
	come := make(chan arrival)
	go func() {
		defer close(come)
		for some, err := range lines {
			select {
			case come <- arrival{some, err}:
			case <-left:
				return
			}
		}
	}()
	return come
}

// entered returns the messages that the person completed with what was typed.
func (v *viewer) entered(ctx context.Context, data []byte) (all []message, err error) {
	v.looks.Press(now())
	entered, tooLong := v.line.typed(data)
	for _, text := range entered {
		m := message{typed: text, body: v.messageOf(text)}
		if v.asks != nil {
			if m = v.answered(text); m.body == nil {
				continue
			}
		}
		if m.body.Body == "" {
			continue
		}
		asks, err := v.confirms(ctx, m)
		if err != nil {
			return all, err
		}
		if !asks {
			all = append(all, m)
		}
	}
	if tooLong != nil {
		v.fail(tooLong)
	}
	return all, nil
}

// confirms asks the person if the message would end the command of the member. It reports whether
// it asked. It asks again if another command runs than the one that the person agreed to end.
func (v *viewer) confirms(ctx context.Context, m message) (asks bool, err error) {
	if m.body.Priority == "" {
		return false, nil
	}
	question := ""
	if v.of.Refresh(ctx); !v.of.Served(ctx, v.member) { // no command runs
		return false, nil
	}
	v.of.View(func(s *team.State) { question = s.EndOfCommand(v.member) })
	if question == "" || question == m.asked {
		return false, nil
	}
	m.asked, v.asks = question, &m
	v.line.label = "to " + v.member + " [y/N] ▸ "
	return true, v.tell("? " + question)
}

// answered returns the message that was asked about if the text agrees; otherwise a zero message,
// and the text of the message returns to the line.
func (v *viewer) answered(text string) message {
	m := *v.asks
	v.asks = nil
	v.line.label = v.line.to
	if answer := strings.ToLower(strings.TrimSpace(text)); answer == "y" || answer == "yes" {
		return m
	}
	v.line.hide()
	v.note("the message was not sent to " + v.member)
	if v.line.tty != nil && v.line.Empty() {
		v.line.Set(m.typed)
	}
	return message{}
}

// leave waits for a message that is being sent, and says how many were not sent.
func (v *viewer) leave(out *outbox) {
	if out.sending {
		select {
		case m := <-out.written:
			if m.err == nil {
				out.sending = false
			}
		case <-time.After(sendPatience):
		}
	}
	v.line.hide()
	missed := len(out.unsent)
	if out.sending {
		missed++
	}
	if text := notSent(v.member, missed); text != "" {
		v.note(text)
	}
}

// readAll returns what is read, until there is no more. It ends with the process: a read of a
// terminal cannot be cancelled.
func readAll(from io.Reader) <-chan []byte {
	read := make(chan []byte)
	go func() {
		defer close(read)
		for {
			buffer := make([]byte, 4<<10)
			n, err := from.Read(buffer)
			if n > 0 {
				read <- buffer[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	return read
}

// messageOf returns the message for a typed line. A line that begins with ! is urgent.
func (v *viewer) messageOf(text string) *team.SendMessage {
	body := &team.SendMessage{To: v.member, Body: strings.TrimSpace(text)}
	if urgent, is := strings.CutPrefix(body.Body, "!"); is {
		body.Body, body.Priority = strings.TrimSpace(urgent), "urgent"
	}
	return body
}

// send sends messages, one after the other, until ctx ends.
func (v *viewer) send(c *cobra.Command, messages <-chan message, sent chan<- message) {
	for {
		select {
		case m := <-messages:
			m.err = v.act(c, v.of.Name, m.body, func(*engine.Team, *team.Record) error { return nil })
			sent <- m // it has room for one, and a view that has ended gives no further message
		case <-c.Context().Done():
			return
		}
	}
}

// notSent says how many messages to the member the end of the view prevented; "" if it was none.
func notSent(member string, n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "your last message to " + member + " was not sent"
	}
	return fmt.Sprintf("your last %d messages to %s were not sent", n, member)
}

// sent shows that a message was sent, or why not. A message that was refused returns to an empty
// line.
func (v *viewer) sent(m message) error {
	if m.err != nil {
		v.line.hide()
		v.fail(m.err)
		if v.line.Empty() && v.line.tty != nil {
			v.line.Set(m.typed)
		}
		return nil
	}
	if v.line.tty == nil { // the terminal shows what was typed
		return nil
	}
	how := "you write: "
	if m.body.Priority != "" {
		how = "you write as urgent: "
	}
	return v.tell("· " + how + excerpt.Line(m.body.Body, mostRepeated))
}

func (v *viewer) draw(lines []sessionview.Line) error {
	if v.pane {
		v.drawn = append(v.drawn, lines...)
		v.drawn = v.drawn[max(0, len(v.drawn)-mostRedrawn):]
	}
	v.line.hide()
	return v.printSession(lines)
}

// redraw draws the lines again where the pane has another width: what a terminal makes of lines
// that were broken for another width is hard to read.
func (v *viewer) redraw() error {
	width, _ := v.out.size()
	v.line.hide()
	if !v.pane || width == v.width {
		return nil
	}
	v.width = width
	v.out.Draw(sanitize.WipeTerminal)
	v.note(v.said)
	return v.printSession(v.drawn)
}

// look finds out whether a host runs the session. It tells the person when that changes.
func (v *viewer) look(ctx context.Context, now time.Time) error {
	var m team.Member
	var shown pane.Member
	v.of.View(func(s *team.State) { m, _ = s.Member(v.member); shown = pane.Of(s, v.member) })
	switch served := v.of.Served(ctx, v.member) || !m.Status.Running(); {
	case served && v.told:
		v.missing, v.told = time.Time{}, false
		if err := v.tell("✓ A process runs this session again."); err != nil {
			return err
		}
	case served:
		v.missing = time.Time{}
	case v.missing.IsZero() && m.Host == "": // a host may be about to take it
		v.missing = now
	case !v.told && (m.Host != "" || now.Sub(v.missing) >= hostGrace):
		v.missing, v.told = now, true
		if err := v.tell("! " + sessionview.Unhosted("cadre resume "+v.resumable(v.of.Team()))); err != nil {
			return err
		}
	}
	if v.told {
		shown.State = noHost
	}
	v.title(ctx, shown)
	return nil
}

func (v *viewer) tell(text string) error {
	return v.draw([]sessionview.Line{{At: now(), Text: text}})
}

// title shows the member's state at the pane. The viewer does that because it lives as long as the
// pane does.
func (v *viewer) title(ctx context.Context, m pane.Member) {
	if !v.pane || v.titled == m {
		return
	}
	v.out.Draw(sanitize.TitleBegin, m.Name+" "+m.State, sanitize.TitleEnd)
	if os.Getenv("TMUX") != "" {
		if there, err := pane.Border(ctx, os.Getenv, v.of.Team().ID, m); err == nil && !there {
			return // it is not marked yet: the next look tries again
		}
	}
	v.titled = m
}

// printSession prints lines of a session, each with the time at which it was shown.
func (a *app) printSession(lines []sessionview.Line) error {
	now := team.Time(time.Now().UnixMilli())
	for _, line := range lines {
		at := strings.Repeat(" ", len("15:04:05"))
		if line.At != 0 {
			at = render.When(now, line.At)
		}
		symbol, text := render.Symbol(line.Text)
		begins := len(at) + 2
		behind := begins + utf8.RuneCountInString(line.Text) - utf8.RuneCountInString(text) // the symbol
		if err := a.out.Printf("%s  %s%s\n", render.Faint.On(at), symbol,
			sanitize.Hanging{Text: text, At: behind, Indent: begins + 2}); err != nil {
			return err
		}
	}
	return nil
}

// keepTerminal shows the terminal of the member in this pane whenever there is one. left says that
// it was shown until now.
func (a *app) keepTerminal(ctx context.Context, d *engine.Team, member string, left bool) error {
	said := false
	every := time.NewTicker(hostPace)
	defer every.Stop()
	if left { // its session may have ended, which its host learns in a moment
		select {
		case <-every.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for {
		socket, err := d.Terminal(member)
		switch code := team.CodeOf(err); {
		case err == nil && left: // the person left it
			return nil
		case err == nil: // a server that has just started refuses to attach
			show := `env -u TMUX -u TMUX_PANE ` + a.withoutPlace() + `tmux -S "$1" attach-session && left=--left || ` +
				`sleep 1; shift; exec "$@" $left`
			return proc.Become([]string{"sh", "-c", show, "sh", socket, self(), "attach", d.Team().ID, member,
				"--pane"},
				a.home.ForOurs(os.Environ()))
		case code != team.NotReady:
			return err
		}
		left = false
		if d.Refresh(ctx); !a.lasts(d, member) {
			return nil
		}
		if !said && !d.Served(ctx, member) {
			said = true
			a.note(sessionview.Unhosted("cadre resume " + a.resumable(d.Team())))
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// lasts reports whether neither the member nor the team has ended.
func (a *app) lasts(d *engine.Team, member string) (lasts bool) {
	d.View(func(s *team.State) {
		m, err := s.Named(member)
		of := s.Team()
		lasts = err == nil && m.Status.Running() && !of.Ended()
	})
	return lasts
}

// withoutPlace returns the options of env that keep a program from what leads to a database.
func (a *app) withoutPlace() (options string) {
	for _, variable := range a.home.ForOurs(nil) {
		name, _, _ := strings.Cut(variable, "=")
		options += "-u " + name + " "
	}
	return options
}
