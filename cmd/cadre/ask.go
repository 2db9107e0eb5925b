package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"cadre/internal/render/excerpt"
	"cadre/internal/render/sanitize"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// asker puts what waits for the user before the person at the terminal, one question at a time.
// Where there is no terminal it says how to answer from elsewhere. A question that is answered
// elsewhere, or times out, is passed over.
type asker struct {
	app      *app
	progress *progress
	terminal bool
	in       io.Reader // what is typed

	once      sync.Once
	questions chan question
	lines     chan typed
}

// typed is a line from the terminal. What was typed before a question was on the screen is no
// answer to it.
type typed struct {
	text string
	at   time.Time
}

type question struct {
	text    string // in one line
	request string
	plan    sanitize.Block // that it is about
	yes     team.Body
	no      team.Body
	waits   func(s *team.State) bool // whether it is still one
	replica *replica.Replica
}

func newAsker(a *app, p *progress) *asker {
	return &asker{app: a, progress: p, terminal: !a.json && atTerminal() && a.err.terminal(), in: os.Stdin,
		questions: make(chan question, 1024), lines: make(chan typed)}
}

// saw looks for what the record asks of the user.
func (q *asker) saw(ctx context.Context, r *team.Record, rep *replica.Replica) {
	t := rep.Team()
	hosted := false
	rep.View(func(s *team.State) {
		lead, _ := s.Member(t.Lead)
		hosted = lead.Agent != team.External
	})
	answered := map[string]bool{}
	for _, e := range r.Events {
		if e, ok := e.(*team.PermissionAnswered); ok {
			answered[e.Request] = true
		}
	}
	for _, e := range r.Events {
		switch e := e.(type) {
		case *team.PermissionRequested:
			p := e.Permission
			asks := false
			rep.View(func(s *team.State) { asks = s.AsksUser(p.Member) })
			if answered[p.Request] || !asks {
				continue
			}
			q.put(ctx, question{replica: rep, request: p.Request, text: fmt.Sprintf("%s asks to use %s: %s", p.Member,
				p.Tool, shortened(p.Input, t.Name)),
				yes: &team.AnswerPermission{Request: p.Request, Allow: true},
				no:  &team.AnswerPermission{Request: p.Request, Reason: "the user said no"},
				waits: func(s *team.State) bool {
					for _, open := range s.Permissions() {
						if open.Request == p.Request {
							return true
						}
					}
					return false
				}}, fmt.Sprintf("cadre permit %s %s", t.Name, p.Request))
		case *team.PlanSubmitted:
			if hosted {
				continue // the lead decides
			}
			q.put(ctx, question{replica: rep, request: e.Request, text: e.Member + " plans:",
				plan: sanitize.Block(e.Plan),
				yes:  &team.AnswerPlan{Request: e.Request, Approved: true}, no: &team.AnswerPlan{Request: e.Request,
					Feedback: "The user said no."},
				waits: func(s *team.State) bool {
					m, _ := s.Member(e.Member)
					return m.Plan.Request == e.Request && m.Plan.State == "submitted"
				}}, fmt.Sprintf("cadre plan %s %s", t.Name, e.Request))
		}
	}
}

// mostAsked is how much of a tool's input is shown with the question: more than a command has, and
// less than a file.
const mostAsked = 4000

// shortened is the input of a tool. Where it is cut that is said: its end may be what matters.
func shortened(input, name string) string {
	return excerpt.Bytes(input, mostAsked, fmt.Sprintf(" … (%d more bytes; all of it: cadre status %s --json)",
		len(input)-mostAsked, name))
}

// settled says how a question ended that was answered elsewhere, or by nobody.
func settled(one question) string {
	var answer team.Answer
	one.replica.View(func(s *team.State) { answer, _ = s.Answered(one.request) })
	switch {
	case answer.Outcome == "timed_out":
		return "timed out"
	case answer.By == team.User:
		return "settled meanwhile: you answered elsewhere, " + answer.Outcome
	case answer.By != "":
		return fmt.Sprintf("settled meanwhile: %s by %s", answer.Outcome, answer.By)
	}
	return "settled meanwhile"
}

func (q *asker) put(ctx context.Context, one question, how string) {
	if !q.terminal {
		if q.app.json { // else it is shown with what waits
			q.progress.note("to answer: " + how)
		}
		return
	}
	q.once.Do(func() {
		go q.read()
		go q.ask(ctx)
	})
	select {
	case q.questions <- one:
	default:
		q.progress.note("to answer: " + how)
	}
}

// read reads the terminal line by line. It ends with the program: a read from a terminal cannot be
// called back.
func (q *asker) read() {
	scan := bufio.NewScanner(q.in)
	for scan.Scan() {
		q.lines <- typed{scan.Text(), time.Now()}
	}
	close(q.lines)
}

func (q *asker) ask(ctx context.Context) {
	for {
		var one question
		select {
		case one = <-q.questions:
		case <-ctx.Done():
			return
		}
		if !q.pose(ctx, one) {
			return
		}
	}
}

// pose asks one question. It reports whether there is somebody to ask more.
func (q *asker) pose(ctx context.Context, one question) bool {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	moot := make(chan struct{})
	go func() { // closes moot when it is no question any more
		defer close(moot)
		for {
			var seq int64
			var open bool
			one.replica.View(func(s *team.State) { seq, open = s.Seq(), one.waits(s) })
			if !open || one.replica.Wait(waiting, seq) != nil {
				return
			}
		}
	}()
	if one.plan != "" {
		q.progress.printf("? %s\n%s\n? [y/N]", one.text, one.plan)
	} else {
		q.progress.printf("? %s [y/N]", one.text)
	}
	shown := time.Now()
	var line typed
	for line.at.Before(shown) {
		var ok bool
		select {
		case line, ok = <-q.lines:
			if !ok {
				return false
			}
		case <-moot:
			q.progress.printf("? %s", settled(one))
			return ctx.Err() == nil
		case <-ctx.Done():
			return false
		}
	}
	body := one.no
	if word := strings.ToLower(strings.TrimSpace(line.text)); word == "y" || word == "yes" {
		body = one.yes
	}
	if _, err := one.replica.Do(ctx, team.Command{Actor: team.User, Body: body}); err != nil {
		q.progress.note(explain(err))
	}
	return true
}
