// Package report writes the lead's report: what a team was to do, what it did, and what it did not
// do.
//
// # Authority
//
// The package decides what a report looks like. It is a function of its [Report]: it looks at no
// clock, no disk and no team, and the same input gives the same bytes.
//
// # Format
//
// Markdown as GitHub reads it, with one heading of level 1 (the title) and a heading of level 2 for
// each part:
//
//	Title, goal, where and when
//	<lead> reports       in its own words, where an agent leads
//	At a glance          how it went, and the first line of each result
//	Failed               exit status and the end of the output; only if a task failed
//	Not done             which tasks, and what they waited for; only if there are any
//	Skipped              which tasks, and why; only if there are any
//	Tasks                the table
//	<subject>            one for each task that is done: its result, what it changed, and who checked
//	                     it how
//	a closing line       team, members, usage
//
// # Guarantees
//
// Results are Markdown that a program or a model wrote, and may contain anything. A report is
// well-formed anyway. Headings of a result are below the heading of its task. A fence that a result
// leaves open ends with the result. HTML is shown, not interpreted. Output is in a fence that it
// cannot end. A table cell stays a cell. Nothing controls a terminal, and no text is longer than
// [MaxText].
package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"cadre/internal/team"
)

// MaxText bounds the bytes of one result or output in a report.
const MaxText = 64 << 10

// Outcome says how a task ended.
type Outcome string

const (
	Done       Outcome = "done"
	Failed     Outcome = "failed"
	Skipped    Outcome = "skipped"    // it can never run, and what waited for it continued
	Unfinished Outcome = "unfinished" // started, but not ended when the report was written
	NotRun     Outcome = "not run"
)

// Report is the content of a report. A zero field is unknown and left out.
type Report struct {
	Title    string
	Goal     string
	Team     string
	TeamID   string
	Lead     string
	Dir      string // the team's directory
	Commit   string // of Dir, when the team started
	Started  time.Time
	Finished time.Time
	Members  []Member
	Tasks    []Task   // in the order of the table
	Sections []string // ids of tasks whose results to show, in this order; nil for all, in the order of Tasks
	Usage    Usage    // of the whole team
	Short    string   // why not everything is done; "" if it is
	Words    string   // the lead's own report; Markdown
}

// Member is a teammate.
type Member struct {
	Name, Agent, Role string
}

// Task is a task and its outcome.
type Task struct {
	ID       string
	Subject  string
	Member   string // that did it
	Outcome  Outcome
	Duration time.Duration
	Attempts int
	Result   string // Markdown
	Words    bool   // Result is what its member said last
	Files    string // which files it changed, in words; "" for none that are known
	Checked  string // how it was checked, in words
	Verdicts []Verdict

	Reason    string   // why it is not done or skipped, in a few words
	ExitCode  int      // of a failed command
	Output    string   // what a failed command printed; its end matters most
	BlockedBy []string // ids of the open tasks that it waits for
}

// Verdict is what a member said of a task.
type Verdict struct {
	Words  string // who said what
	Reason string // Markdown
}

// Usage is what sessions used.
type Usage struct {
	Tokens int64
	USD    float64
}

// Markdown writes the report. Only w can fail.
func Markdown(w io.Writer, r Report) error {
	b := &page{Report: r, byID: make(map[string]Task, len(r.Tasks))}
	for _, t := range r.Tasks {
		b.byID[t.ID] = t
	}
	b.head()
	b.words()
	b.glance()
	b.failures()
	b.notDone()
	b.skipped()
	b.table()
	b.results()
	b.foot()
	_, err := io.WriteString(w, b.String())
	return err
}

// Results writes the title of the report and the results that it shows, each below the subject of
// its task, and nothing else.
func Results(w io.Writer, r Report) error {
	b := &page{Report: r, byID: make(map[string]Task, len(r.Tasks))}
	for _, t := range r.Tasks {
		b.byID[t.ID] = t
	}
	if r.Title != "" {
		b.block("# " + plain(r.Title, 200))
	}
	for _, t := range b.shown() {
		b.result(t)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// page is a report being written: blocks with an empty line between them.
type page struct {
	strings.Builder
	Report
	byID map[string]Task
}

func (p *page) block(text string) {
	if text = strings.Trim(text, "\n"); text == "" {
		return
	}
	if p.Len() > 0 {
		p.WriteString("\n")
	}
	p.WriteString(text)
	p.WriteString("\n")
}

func (p *page) blockf(format string, args ...any) { p.block(fmt.Sprintf(format, args...)) }

func (p *page) head() {
	p.block("# " + plain(cmp.Or(p.Title, p.Team, "Report"), 200))
	if goal := strings.TrimSpace(p.Goal); goal != "" {
		p.block("> " + plain(goal, 2000))
	}
	var facts []string
	if p.Dir != "" {
		facts = append(facts, "in "+code(p.Dir))
	}
	if p.Commit != "" {
		facts = append(facts, "at commit "+code(p.Commit))
	}
	if !p.Started.IsZero() {
		facts = append(facts, "on "+p.Started.UTC().Format("2 January 2006, 15:04 UTC"))
	}
	if len(facts) > 0 {
		p.block("Worked " + strings.Join(facts, ", ") + ".")
	}
}

// words writes the lead's own report, if an agent leads.
func (p *page) words() {
	if p.Words != "" {
		p.block("## " + cmp.Or(plain(p.Lead, 60), "The lead") + " reports")
		p.block(demote(p.Words, 2))
	}
}

func (p *page) count(o Outcome) (n int) {
	for _, t := range p.Tasks {
		if t.Outcome == o {
			n++
		}
	}
	return n
}

// glance writes the summary: how it went, and the first line of each result.
func (p *page) glance() {
	p.block("## At a glance")
	verdict := fmt.Sprintf("%d of %s done", p.count(Done), team.Count(len(p.Tasks), "task"))
	for _, o := range []Outcome{Failed, Skipped, Unfinished, NotRun} {
		if n := p.count(o); n > 0 {
			verdict += fmt.Sprintf(", %d %s", n, o)
		}
	}
	if took := p.Finished.Sub(p.Started); !p.Started.IsZero() && took > 0 {
		verdict += "; it took " + team.Span(took)
	}
	p.blockf("**%s.**", verdict)
	if p.Short != "" {
		p.block("Not finished: " + strings.TrimRight(plain(p.Short, 1000), ".") + ".")
	}

	var lines []string
	for _, t := range p.Tasks {
		if t.Outcome == Failed {
			lines = append(lines, fmt.Sprintf("- **%s** failed: %s", plain(t.Subject, 200), why(t)))
		}
	}
	p.block(strings.Join(lines, "\n"))
	notDone := len(lines) > 0 || p.Short != ""
	lines = nil
	for _, t := range p.shown() {
		if text := firstLine(t.Result); text != "" {
			lines = append(lines, fmt.Sprintf("- **%s**: %s", plain(t.Subject, 200), text))
		}
	}
	if notDone && len(lines) > 0 {
		p.block("What is done:")
	}
	p.block(strings.Join(lines, "\n"))
}

// shown returns the done tasks whose results the report shows, in its order.
func (p *page) shown() []Task {
	if p.Sections == nil {
		return slices.DeleteFunc(slices.Clone(p.Tasks), func(t Task) bool { return t.Outcome != Done })
	}
	var tasks []Task
	for _, id := range p.Sections {
		if t, known := p.byID[id]; known && t.Outcome == Done {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// why says in a few words why a task failed.
func why(t Task) string {
	reason := plain(t.Reason, 300)
	if t.ExitCode != 0 {
		reason = strings.TrimPrefix(reason+fmt.Sprintf(", exit status %d", t.ExitCode), ", ")
	}
	return cmp.Or(reason, "no reason is known")
}

func (p *page) failures() {
	if p.count(Failed) == 0 {
		return
	}
	p.block("## Failed")
	for _, t := range p.Tasks {
		if t.Outcome != Failed {
			continue
		}
		p.block("### " + plain(t.Subject, 200))
		facts := []string{"Task " + code(t.ID) + ": " + why(t)}
		if t.Member != "" {
			facts = append(facts, "by "+code(t.Member))
		}
		if t.Attempts > 1 {
			facts = append(facts, fmt.Sprintf("tried %d times", t.Attempts))
		}
		p.block(strings.Join(facts, ", ") + ".")
		if output := fence(t.Output); output != "" {
			p.block("The end of its output:")
			p.block(output)
		} else if strings.TrimSpace(t.Result) == "" {
			p.block("It printed nothing.")
		}
		p.block(demote(t.Result, 3))
	}
}

func (p *page) notDone() {
	if p.count(NotRun)+p.count(Unfinished) == 0 {
		return
	}
	p.block("## Not done")
	var lines []string
	for _, t := range p.Tasks {
		if t.Outcome != NotRun && t.Outcome != Unfinished {
			continue
		}
		line := fmt.Sprintf("- **%s** (%s)", plain(t.Subject, 200), code(t.ID))
		var waits []string
		for _, id := range t.BlockedBy {
			if blocker, known := p.byID[id]; known {
				waits = append(waits, fmt.Sprintf("%s (%s)", code(id), blocker.Outcome))
			} else {
				waits = append(waits, code(id))
			}
		}
		const shown = 10
		if len(waits) > shown {
			waits = append(waits[:shown], fmt.Sprintf("%d more", len(waits)-shown))
		}
		switch {
		case len(waits) > 0:
			line += " waited for " + strings.Join(waits, ", ")
		case t.Reason != "":
			line += ": " + plain(t.Reason, 300)
		case t.Outcome == Unfinished:
			line += " was started and had not ended"
		default:
			line += ": no member took it"
		}
		lines = append(lines, line)
	}
	p.block(strings.Join(lines, "\n"))
}

// skipped lists the tasks that never run. They count neither as done nor as failed.
func (p *page) skipped() {
	var lines []string
	for _, t := range p.Tasks {
		if t.Outcome == Skipped {
			lines = append(lines, fmt.Sprintf("- **%s** (%s): %s", plain(t.Subject, 200), code(t.ID), plain(t.Reason, 300)))
		}
	}
	if len(lines) > 0 {
		p.block("## Skipped")
		p.block(strings.Join(lines, "\n"))
	}
}

func (p *page) table() {
	if len(p.Tasks) == 0 {
		return
	}
	p.block("## Tasks")
	lines := []string{"| Task | Subject | Member | Outcome | Time | Attempts |", "| :--- | :--- | :--- | :--- | ---: " +
		"| ---: |"}
	for _, t := range p.Tasks {
		outcome := string(t.Outcome)
		if t.Outcome != Done {
			outcome = "**" + outcome + "**"
		}
		took, attempts := "", ""
		if t.Duration > 0 {
			took = team.Span(t.Duration)
		}
		if t.Attempts > 0 {
			attempts = fmt.Sprint(t.Attempts)
		}
		cells := []string{cellCode(t.ID), plain(t.Subject, 100), cellCode(t.Member), outcome, took, attempts}
		lines = append(lines, "| "+strings.Join(cells, " | ")+" |")
	}
	p.block(strings.Join(lines, "\n"))
}

func (p *page) results() {
	for _, t := range p.shown() {
		p.result(t)
		p.came(t)
	}
}

func (p *page) result(t Task) {
	p.block("## " + plain(t.Subject, 200))
	if t.Words {
		p.block("It reported no result. Its member said at the end:")
	}
	p.block(cmp.Or(demote(t.Result, 2), "It is done, and reported no result."))
}

// came writes what a task changed, and who checked it how.
func (p *page) came(t Task) {
	var facts []string
	if t.Files != "" {
		facts = append(facts, "- Files changed: "+plain(t.Files, MaxText))
	}
	if t.Checked != "" {
		facts = append(facts, "- Checked: "+plain(t.Checked, MaxText))
	}
	for _, v := range t.Verdicts {
		facts = append(facts, strings.TrimSuffix("- "+plain(v.Words, 200)+": "+plain(v.Reason, 1000), ": "))
	}
	p.block(strings.Join(facts, "\n"))
}

func (p *page) foot() {
	var facts []string
	if p.Team != "" {
		team := "Team " + code(p.Team)
		if p.TeamID != "" && p.TeamID != p.Team {
			team += " (" + code(p.TeamID) + ")"
		}
		if p.Lead != "" {
			team += ", led by " + code(p.Lead)
		}
		facts = append(facts, team)
	}
	var members []string
	for _, m := range p.Members {
		about := plain(m.Agent, 60)
		if m.Role != "" {
			about = strings.TrimPrefix(about+", "+plain(m.Role, 60), ", ")
		}
		name := code(m.Name)
		if about != "" {
			name += " (" + about + ")"
		}
		members = append(members, name)
	}
	if len(members) > 0 {
		facts = append(facts, team.Count(len(members), "member")+": "+strings.Join(members, ", "))
	}
	var used []string
	if p.Usage.Tokens > 0 {
		used = append(used, thousands(p.Usage.Tokens)+" tokens")
	}
	if p.Usage.USD > 0 {
		used = append(used, fmt.Sprintf("%.2f USD", p.Usage.USD))
	}
	if len(used) > 0 {
		facts = append(facts, "Used "+strings.Join(used, ", "))
	}
	if len(facts) > 0 {
		p.block("---")
		p.block(strings.Join(facts, ". ") + ".")
	}
}
