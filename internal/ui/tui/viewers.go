package tui

import (
	"cmp"
	"context"
	"errors"
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
		s.send(sessionMsg{ref: ref, member: member, err: oneLine(s.explain(err))})
		return
	}
	defer t.Close()
	entries, err := t.Session(ctx, member, engine.Follow)
	if err != nil {
		s.send(sessionMsg{ref: ref, member: member, err: oneLine(s.explain(err))})
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
				next.err = oneLine(s.explain(err))
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
		return actedMsg{err: oneLine(s.explain(err))}
	}
	defer t.Close()
	now, err := t.Reassign(s.ctx, team.User, upkeep.Reassignment{Task: task, To: to, Force: force})
	if busy, is := errors.AsType[*upkeep.BusyError](err); is {
		return busyMsg{ref: ref, task: task, to: to, why: oneLine(busy.Error()), owner: oneLine(busy.Member.Name)}
	}
	if err != nil {
		return actedMsg{err: oneLine(s.explain(err))}
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

// firstWords is how long the screen waits for the first output of such a command.
const firstWords = 3 * time.Second

// behind starts a command that outlives the screen, and returns its first output.
func (s *source) behind(args, env []string) (string, error) {
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
	case <-first.Done():
	}
	said := make([]byte, mostOutput)
	n, _ := f.ReadAt(said, 0)
	return sanitize.Strip(string(said[:n])) + ends, nil
}

// Command implements [outside]. The command has no terminal and no input.
func (s *source) Command(ref string, args []string) tea.Msg {
	msg := outputMsg{args: args}
	fail := func(err error) tea.Msg {
		msg.text, msg.code = sanitize.Lines(err.Error()), cmp.Or(msg.code, 1)
		return msg
	}
	env := append(append([]string(nil), s.env...), "NO_COLOR=1")
	if ref != "" {
		env = append(env, s.teamVariable+"="+ref)
	}
	if slices.Contains(staying, args[0]) {
		text, err := s.behind(append([]string{s.self}, args...), env)
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
	ctx, cancel := context.WithTimeout(s.ctx, most)
	defer cancel()
	output := &proc.Capture{Head: mostOutput, Tail: mostOutput}
	exit, err := s.engine.RunForUser(ctx, proc.Cmd{Args: append([]string{s.self}, args...), Env: env, Stdout: output,
		Stderr: output})
	msg.code, msg.text = exit.Code, sanitize.Strip(output.String())
	if err != nil {
		return fail(err)
	}
	msg.asked = s.asks(msg.text, exit.Code)
	return msg
}
