package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cadre/internal/engine"
	"cadre/internal/render/excerpt"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// asker asks the person at the terminal about each item that waits for the user, one question at a
// time. Without a terminal it prints how to answer from elsewhere. It drops a question that is
// answered elsewhere or times out.
type asker struct {
	app      *app
	progress *progress
	terminal atomic.Bool
	in       io.Reader // the lines that are typed

	once      sync.Once
	questions chan question
	lines     chan typed
}

// typed is a line from the terminal. A line that was typed before a question was on the screen does
// not answer it.
type typed struct {
	text string
	at   time.Time
}

type question struct {
	engine.Question
	team *engine.Team
}

// answer returns the command that answers the question.
func (q question) answer(yes bool) team.Body {
	switch {
	case q.Plan == "" && yes:
		return &team.AnswerPermission{Request: q.Request, Allow: true}
	case q.Plan == "":
		return &team.AnswerPermission{Request: q.Request, Reason: "the user denied it"}
	case yes:
		return &team.AnswerPlan{Request: q.Request, Approved: true}
	}
	return &team.AnswerPlan{Request: q.Request, Feedback: "The user rejected it."}
}

// waits reports whether the question is still open after the record seq.
func (q question) waits() (open bool, seq int64) {
	q.team.View(func(s *team.State) {
		seq = s.Seq()
		open = slices.ContainsFunc(engine.Questions(s),
			func(one engine.Question) bool { return one.Request == q.Request })
	})
	return open, seq
}

func newAsker(a *app, p *progress) *asker {
	q := &asker{app: a, progress: p, in: os.Stdin, questions: make(chan question, 1024), lines: make(chan typed)}
	q.terminal.Store(a.asks())
	return q
}

// saw looks for questions to the user in the record.
func (q *asker) saw(ctx context.Context, r *team.Record, of *engine.Team) {
	var open []engine.Question
	of.View(func(s *team.State) { open = engine.Questions(s) })
	for _, one := range open {
		if !one.IsIn(r) {
			continue
		}
		verb := "permit"
		if one.Plan != "" {
			verb = "plan"
		}
		q.put(ctx, question{one, of}, fmt.Sprintf("cadre %s %s %s", verb, of.Team().Name, one.Request))
	}
}

// mostAsked bounds how much of a tool's input is shown with the question: enough for a command, not
// for a file.
const mostAsked = 4000

// shortened returns the beginning of a tool's input. It says if it was cut, because the end may
// matter.
func shortened(input, name string) string {
	return excerpt.Bytes(input, mostAsked, fmt.Sprintf(" … (%d more bytes; all of it: cadre status %s --json)",
		len(input)-mostAsked, name))
}

// settled describes the end of a question that was answered elsewhere, or that timed out.
func settled(one question) string {
	var answer team.Answer
	one.team.View(func(s *team.State) { answer, _ = s.Answered(one.Request) })
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
	if !q.terminal.Load() {
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

// read reads the terminal line by line until the program ends, because a read from a terminal
// cannot be cancelled.
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

// pose asks one question. It reports whether the terminal can still be asked.
func (q *asker) pose(ctx context.Context, one question) bool {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	moot := make(chan struct{})
	go func() { // closes moot when the question was answered elsewhere
		defer close(moot)
		for {
			open, seq := one.waits()
			if !open || one.team.Await(waiting, seq) != nil {
				return
			}
		}
	}()
	if one.Plan != "" {
		q.progress.printf("? %s plans:\n%s\n? [y/N]", one.Member, sanitize.Block(one.Plan))
	} else {
		q.progress.printf("? %s asks to use %s: %s [y/N]", one.Member, one.Tool,
			shortened(one.Input, one.team.Team().Name))
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
	word := strings.ToLower(strings.TrimSpace(line.text))
	if _, err := one.team.Do(ctx, team.Command{Actor: team.User,
		Body: one.answer(word == "y" || word == "yes")}); err != nil {
		q.progress.beside(func() { q.progress.app.fail(err) })
	}
	return true
}
