package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"cadre/internal/engine"
	"cadre/internal/render"
	"cadre/internal/render/excerpt"
	"cadre/internal/render/sanitize"
	"cadre/internal/run"
	"cadre/internal/team"
)

// progress shows a run: a line for each important event, and on a terminal a last line with the
// state of the team.
type progress struct {
	app  *app
	live bool

	waiting   run.Waiting
	uncounted []string // agents that were reported to have no cost figures

	showing sync.Mutex // held while lines are chosen and shown, so that they keep their order
	digest  render.Digest
	due     *time.Timer // shows what the digest delays; nil before the first delay
	over    bool

	mu     sync.Mutex
	of     *engine.Team // the running team; nil before the first record
	status string
	hidden bool              // the screen has the terminal
	kept   []keptLine        // what was not printed: the last lines, and all notes
	unkept int               // how many other lines were not
	notes  chan string       // gets the notes while the screen has the terminal; nil for no screen
	words  map[string]string // what each member said last, where all of it was shown
	last   team.Time         // the latest time that was shown
}

// clock returns the time of a line that is shown now. A delayed line shows the time of the line
// before it, so that the times stay in order.
func (p *progress) clock(at team.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = max(p.last, at)
	return render.Clock(p.last)
}

func (p *progress) began(t team.Team, again bool) {
	if p.app.json {
		return
	}
	what := "begins"
	if again {
		what = "continues"
	}
	p.printf("team %s %s in %s", t.Name, what, t.Dir)
}

// sessions counts the members whose sessions run.
func (p *progress) sessions() int {
	p.mu.Lock()
	of := p.of
	p.mu.Unlock()
	if of == nil {
		return 0
	}
	return sessions(of)
}

func (p *progress) saw(r *team.Record, of *engine.Team) {
	p.mu.Lock()
	p.of = of
	p.mu.Unlock()
	if p.app.json {
		p.warn(of)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.app.out.Value(r)
		return
	}
	now := ""
	of.View(func(s *team.State) {
		all := s.Count(team.Pending) + s.Count(team.InProgress) + s.Count(team.Completed)
		now = fmt.Sprintf("%s, %d in progress", team.TasksDone(s.Count(team.Completed), all), s.Count(team.InProgress))
	})
	p.mu.Lock()
	p.status = now
	p.mu.Unlock()
	p.warn(of)
	fresh := p.waiting.Fresh(context.Background(), r, of)
	p.showing.Lock()
	defer p.showing.Unlock()
	var lines []render.News
	of.View(func(s *team.State) {
		lines = p.digest.Add(r, s, func(e team.Event) bool { return run.About(fresh, e) || p.repeats(e) })
	})
	p.show(lines)
	if len(fresh) > 0 {
		p.show(p.digest.Held())
	}
	p.showDue()
	for _, i := range fresh {
		if i.Kind == team.ItemTaskFailed && i.Hint.Action == team.ActRetryTask { // a line before has said why
			p.printf("%s  %s %s", render.Faint.On(p.clock(r.At)), render.Wait.On("!"),
				sanitize.Hanging{At: textColumn + 2, Indent: textColumn, Text: fmt.Sprintf(
					"To try task %s again within this run: %s", i.TaskCalled(), stepFor(p.app.callable(of.Team()), i))})
			continue
		}
		p.printf("%s  %s %s\n            %s", render.Faint.On(p.clock(r.At)), render.Wait.On("!"),
			sanitize.Hanging{Text: i.Text, At: textColumn + 2, Indent: textColumn},
			stepFor(p.app.callable(of.Team()), i))
	}
	p.await(r, of)
}

// await names the external members that tasks wait for, and the commands for them.
func (p *progress) await(r *team.Record, of *engine.Team) {
	if r.Seq < of.Seq() { // a later record has the newer state
		return
	}
	var all []run.Awaited
	of.View(func(s *team.State) { all = p.waiting.Outside(s) })
	if len(all) > 0 { // first what it is about
		p.show(p.digest.Held())
	}
	for _, one := range all {
		t := of.Team()
		h := one.Task.Hint(&t, team.ActClaimTask)
		h.Team, h.Member = p.app.callable(t), one.Members[0]
		what := "waits for member " + strings.Join(one.Members, " or ") + ". To take it"
		switch verifies := one.Task.Verifies != ""; {
		case one.Task.Status == team.InProgress && verifies:
			h.Action, what = team.ActVerify, "is verified by member "+one.Members[0]+". To accept it"
		case one.Task.Status == team.InProgress:
			h.Action, what = team.ActCompleteTask, "is in progress by member "+one.Members[0]+". To complete it"
		}
		types := render.CommandFor(h).Line
		if h.Action == team.ActCompleteTask {
			types += " --as " + one.Members[0]
		}
		p.printf("%s  %s %s\n            %s", render.Faint.On(p.clock(r.At)), render.Wait.On("!"),
			sanitize.Hanging{Text: fmt.Sprintf("Task %s %s:", one.Task.Called(), what), At: textColumn + 2,
				Indent: textColumn}, types)
	}
}

// textColumn is where the text of a line starts, after the time.
const textColumn = len("15:04:05  ")

// show prints lines; the caller holds p.showing.
func (p *progress) show(lines []render.News) {
	for _, line := range lines {
		symbol, text := render.Symbol(line.Text)
		p.printf("%s  %s%s", render.Faint.On(p.clock(line.At)), symbol, sanitize.Hanging{Text: text,
			At: textColumn + 1, Indent: textColumn + 2})
	}
}

// showDue prints the delayed lines that are due, and schedules the next call. The caller holds
// p.showing.
func (p *progress) showDue() {
	lines, next := p.digest.Due(now())
	p.show(lines)
	if next == 0 || p.over {
		return
	}
	wait := max(0, next.Sub(now()))
	if p.due != nil {
		p.due.Reset(wait)
		return
	}
	p.due = time.AfterFunc(wait, func() {
		p.showing.Lock()
		defer p.showing.Unlock()
		if !p.over {
			p.showDue()
		}
	})
}

// warn names, once, the agents that the budget does not limit.
func (p *progress) warn(of *engine.Team) {
	var agents []string
	of.View(func(s *team.State) { agents = s.Uncounted() })
	if len(agents) > 0 && !slices.Equal(agents, p.uncounted) {
		p.uncounted = agents
		p.note(uncounted(agents))
	}
}

// mostShown bounds, in bytes, how much of an agent's text is shown.
const mostShown = 300

// said shows a text that an agent wrote.
func (p *progress) said(member, text string) {
	text = strings.TrimSpace(text)
	if p.app.json {
		line, _, _ := strings.Cut(text, "\n")
		p.note(member + ": " + line)
		return
	}
	whole := len(text) <= mostShown
	shown := excerpt.Bytes(text, mostShown, " …")
	p.printf("%s    %s", render.Faint.On(p.clock(now())), sanitize.Hanging{
		Text: member + ": " + render.Clean(shown), At: textColumn + 2, Indent: textColumn + 4})
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.words == nil {
		p.words = map[string]string{}
	}
	if p.words[member] = text; !whole {
		delete(p.words, member)
	}
}

// repeats reports whether the event is a member's report with the text that was shown last.
func (p *progress) repeats(e team.Event) bool {
	sent, ok := e.(*team.MessageSent)
	if !ok || sent.Message.Type != team.TypeIdle {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	words, said := p.words[sent.Message.From]
	return said && words == strings.TrimSpace(sent.Message.Body)
}

// note prints a message that is not a result.
func (p *progress) note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.print(func() { p.app.note(text) }, true)
	if p.hidden {
		select {
		case p.notes <- text:
		default: // it stands in the terminal afterwards
		}
	}
}

// stops prints that the run is being stopped, after the lines about what happened before. Tasks
// that start later have no line.
func (p *progress) stops(text string) {
	p.showing.Lock()
	defer p.showing.Unlock()
	p.show(p.digest.End())
	p.note(text)
}

// beside prints a message that is not a result, with a function.
func (p *progress) beside(what func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.print(what, true)
}

// These bound how many lines and notes are kept while the screen has the terminal.
const mostKept, mostKeptNotes = 12, 100

// keptLine is something that is printed when the screen has closed. Notes are in no history, so
// they are kept before lines.
type keptLine struct {
	print func()
	note  bool
}

// print prints something beside the last line. While the screen has the terminal, it keeps it. The
// caller holds p.mu.
func (p *progress) print(what func(), note bool) {
	if p.hidden {
		p.kept = append(p.kept, keptLine{what, note})
		most, same := mostKept, 0
		if note {
			most = mostKeptNotes
		}
		for _, one := range p.kept {
			if one.note == note {
				same++
			}
		}
		if same > most {
			first := slices.IndexFunc(p.kept, func(one keptLine) bool { return one.note == note })
			p.kept = slices.Delete(p.kept, first, first+1)
			p.unkept++
		}
		return
	}
	p.erase()
	what()
	p.draw()
}

// draw prints the last line.
func (p *progress) draw() {
	if p.live && p.status != "" {
		width, _ := p.app.out.size()
		p.app.out.Printf("  %s", render.Faint.On(render.Cut(p.status, width-3)))
	}
}

// hide keeps lines until reveal, because the screen has the terminal.
func (p *progress) hide() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	p.hidden = true
}

// reveal prints the lines that were kept, and prints from then on. log is the command that shows
// those before them.
func (p *progress) reveal(log string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hidden = false
	if p.unkept > 0 {
		p.app.out.Printf("%s\n", render.Faint.On(fmt.Sprintf("… %s before: %s", team.Count(p.unkept, "line"), log)))
	}
	for _, line := range p.kept {
		line.print()
	}
	p.kept, p.unkept = nil, 0
	p.draw()
}

// leave prints from now on to a file instead of a terminal.
func (p *progress) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	p.live = false
	for _, o := range []output{p.app.out, p.app.err} {
		o.paint(neverColor)
		o.Columns = nil
	}
}

// printf prints a line. The arguments may contain untrusted text.
func (p *progress) printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.print(func() { p.app.out.Printf(format+"\n", args...) }, false)
}

// clear ends the progress.
func (p *progress) clear() {
	p.showing.Lock()
	p.show(p.digest.End())
	if p.over = true; p.due != nil {
		p.due.Stop()
	}
	p.showing.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	p.status = ""
}

// erase removes the last line, if there is one.
func (p *progress) erase() {
	if p.live {
		p.app.out.Draw(sanitize.EraseLine)
	}
}
