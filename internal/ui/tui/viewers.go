package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/engine"
	"cadre/internal/engine/upkeep"
	"cadre/internal/render/sanitize"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/sleep"
	"cadre/internal/team"
	"cadre/internal/ui/sessionview"
)

// OpenSession implements [outside].
func (s *source) OpenSession(order int, ref, member string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if order < s.sessionOrder {
		return
	}
	s.sessionOrder = order
	if s.endSession != nil {
		s.endSession()
		s.endSession = nil
	}
	if member == "" || s.ctx.Err() != nil {
		return
	}
	var ctx context.Context
	ctx, s.endSession = context.WithCancel(s.ctx)
	s.running.Go(func() { s.watch(ctx, ref, member) })
}

// watch sends what the member's session shows, until ctx or the session ends.
func (s *source) watch(ctx context.Context, ref, member string) {
	t, err := s.engine.Look(ctx, ref)
	if err != nil {
		s.send(sessionMsg{ref: ref, member: member, err: oneLine(explain(err))})
		return
	}
	defer t.Close()
	entries, err := t.Session(ctx, member, engine.Follow)
	if err != nil {
		s.send(sessionMsg{ref: ref, member: member, err: oneLine(explain(err))})
		return
	}
	var mu sync.Mutex
	var next sessionMsg // not sent yet
	changed := make(chan struct{}, 1)
	wake := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	done := make(chan struct{})
	var reading sync.WaitGroup
	defer reading.Wait()
	reading.Go(func() {
		defer close(done)
		var lines sessionview.Lines
		for e, err := range entries {
			mu.Lock()
			if err != nil {
				next.err = oneLine(explain(err))
			} else if next.lines = append(next.lines, lines.Add(e)...); len(next.lines) > 2*mostSession {
				next.lines = append([]sessionview.Line(nil), next.lines[mostSession:]...)
			}
			next.writing = unfinished(lines.Writing())
			mu.Unlock()
			wake()
		}
		mu.Lock()
		defer mu.Unlock()
		next.lines, next.writing, next.ended = append(next.lines, lines.Rest()...), nil, true
	})
	for over := false; !over; {
		select {
		case <-ctx.Done():
			return
		case <-done:
			over = true
		case <-changed:
		}
		mu.Lock()
		msg := next
		next = sessionMsg{}
		mu.Unlock()
		msg.ref, msg.member = ref, member
		s.send(msg)
		rest(ctx, 0)
	}
}

// mostUnfinished bounds an unfinished text on the screen, in bytes. It is more than a screen can
// show.
const mostUnfinished = 8 << 10

// unfinished sanitizes the end of a text, and splits it into lines.
func unfinished(text string) []string {
	if len(text) > mostUnfinished {
		text = text[len(text)-mostUnfinished:]
		_, text, _ = strings.Cut(text, "\n")
	}
	if text = strings.TrimRight(sanitize.Lines(text), " \t\n"); text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = sanitize.Line(lines[i])
	}
	return lines
}

// Reassign implements [outside].
func (s *source) Reassign(ref, task, to string, force bool) tea.Msg {
	t, err := s.engine.Open(s.ctx, ref)
	if err != nil {
		return actedMsg{err: oneLine(explain(err))}
	}
	defer t.Close()
	now, err := t.Reassign(s.ctx, team.User, upkeep.Reassignment{Task: task, To: to, Force: force})
	if busy, is := errors.AsType[*upkeep.BusyError](err); is {
		return busyMsg{ref: ref, task: task, to: to, why: oneLine(busy.Error()), owner: oneLine(busy.Member.Name)}
	}
	if err != nil {
		return actedMsg{err: oneLine(explain(err))}
	}
	return actedMsg{said: "Task " + now.Called() + " is for " + oneLine(to) + " now."}
}

// Answered implements [outside].
func (s *source) Answered(ref, request string) tea.Msg {
	t, err := s.engine.Look(s.ctx, ref)
	if err != nil {
		return nil
	}
	defer t.Close()
	var a team.Answer
	var known bool
	t.View(func(s *team.State) { a, known = s.Answered(request) })
	if !known {
		return nil
	}
	return actedMsg{said: answered(a, engine.Now())}
}

// These limit a command of the palette: its time and its output.
const (
	commandTime     = 10 * time.Minute
	consolidateTime = 4 * time.Hour // its checks have limits of their own
	mostOutput      = 1 << 20
)

// staying are the commands that run sessions. They must outlive the screen.
var staying = []string{"host", "resume", "run"}

// continues reports whether a command outlives the screen.
func continues(args []string) bool { return slices.Contains(staying, args[0]) }

// firstWords is how long the screen waits for the first output of such a command.
const firstWords = 3 * time.Second

// behind starts a command that outlives the screen, and returns its first output. The end of ctx
// ends only the wait for that.
func (s *source) behind(ctx context.Context, args, env []string) (string, error) {
	f, err := os.CreateTemp("", "cadre-screen-*.log")
	if err != nil {
		return "", err
	}
	defer f.Close()
	defer os.Remove(f.Name()) // the command keeps it open
	ended, err := proc.DetachWatched(s.engine.Home.Running(), args, env, f)
	if err != nil {
		return "", err
	}
	first, cancel := context.WithTimeout(s.ctx, firstWords)
	defer cancel()
	ends := "\nIt continues in the background, also when you quit."
	select {
	case <-ended:
		ends = ""
	case <-ctx.Done():
	case <-first.Done():
	}
	said := make([]byte, mostOutput)
	n, _ := f.ReadAt(said, 0)
	return sanitize.Strip(string(said[:n])) + ends, nil
}

// commandsEnd is how long the end of the screen waits for commands of the palette, which get their
// signals meanwhile.
const commandsEnd = 20 * time.Second

// starts counts a command that begins, and reports false if the screen has ended.
func (s *source) starts() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.commands.Add(1)
	return true
}

// ends waits until the commands of the palette have ended, once the screen has.
func (s *source) ends(most time.Duration) {
	s.mu.Lock() // no command starts any more: the context has ended
	ended := make(chan struct{})
	s.mu.Unlock()
	go func() {
		s.commands.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(most):
	}
}

// Command implements [outside]. The command has no terminal and no input.
func (s *source) Command(ctx context.Context, number int, ref string, args []string) tea.Msg {
	msg := outputMsg{args: args}
	if !s.starts() {
		return msg
	}
	defer s.commands.Done()
	fail := func(err error) tea.Msg {
		msg.text, msg.code = sanitize.Lines(err.Error()), cmp.Or(msg.code, 1)
		return msg
	}
	env := append(append([]string(nil), s.env...), "NO_COLOR=1", s.teamVariable+"="+cmp.Or(ref, StrangerPrefix))
	if continues(args) {
		text, err := s.behind(ctx, append([]string{s.self}, args...), env)
		if err != nil {
			return fail(err)
		}
		msg.text = text
		return msg
	}
	most := commandTime
	if args[0] == "consolidate" {
		most = consolidateTime
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	output := &proc.Capture{Head: mostOutput, Tail: mostOutput}
	defer s.printing(ctx, number, output)()
	exit, err := s.engine.RunForUser(ctx, proc.Cmd{Args: append([]string{s.self}, args...), Env: env, Stdout: output,
		Stderr: output})
	msg.code, msg.text = exit.Code, sanitize.Strip(output.String())
	switch {
	case err == nil:
	case errors.Is(err, context.Canceled): // the person knows, and wants the output
		msg.code = cmp.Or(msg.code, 1)
		return msg
	case errors.Is(err, context.DeadlineExceeded):
		msg.code = cmp.Or(msg.code, 1)
		msg.text += fmt.Sprintf("\nThe screen ended it after %v.", most)
		return msg
	default:
		return fail(err)
	}
	msg.asked = s.asks(msg.text, exit.Code)
	return msg
}

// mostPrinting bounds what is shown of a command before it ends, in bytes.
const mostPrinting = 64 << 10

// printing sends what a command has printed, whenever that has grown, until the function that it
// returns is called.
func (s *source) printing(ctx context.Context, number int, output *proc.Capture) (stop func()) {
	if number == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var sending sync.WaitGroup
	sending.Go(func() {
		for sent := int64(0); sleep.For(ctx, 4*frame) == nil; {
			n := output.Total()
			if n == sent {
				continue
			}
			sent = n
			text := output.String()
			if over := len(text) - mostPrinting; over > 0 {
				_, text, _ = strings.Cut(strings.ToValidUTF8(text[over:], ""), "\n")
			}
			s.send(printingMsg{number, sanitize.Strip(text)})
		}
	})
	return func() {
		cancel()
		sending.Wait()
	}
}
