package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/engine"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// diffing is the diff that the pager shows. It is read again while the pager shows it.
type diffing struct {
	ref, task string
	asked     bool      // a read is running
	due       team.Time // when to read it again
}

// diffMsg carries the changes of a task. Its texts are sanitized.
type diffMsg struct {
	ref, task string
	head      string // where the changes were read
	patch     string
	left      []string // what the patch leaves out
	live      bool     // the changes are not final
	took      time.Duration
	err       string
}

// A diff is read again after these times. A saved diff rarely changes.
const (
	diffEvery  = 2_000 // milliseconds
	savedEvery = 10_000
)

// Diff implements [outside].
func (s *source) Diff(ref, task string) tea.Msg {
	began := engine.Now()
	msg := diffMsg{ref: ref, task: task, live: true}
	t, done, err := s.reading(ref)
	var c engine.Changes
	if err == nil {
		defer done()
		c, err = t.Changes(s.ctx, task)
	}
	msg.took = engine.Now().Sub(began)
	if err != nil {
		msg.err = sanitize.Lines(explain(err))
		return msg
	}
	msg.patch, msg.live = sanitize.Lines(c.Patch), c.Dir != ""
	msg.head = "recorded work"
	if msg.live {
		msg.head = oneLine(c.Member) + "'s worktree as it is now: " + oneLine(c.Dir)
	}
	for _, one := range c.Left {
		msg.left = append(msg.left, oneLine(one))
	}
	return msg
}

// openDiff shows the changes for a task of the open team.
func (m *Model) openDiff(task string) tea.Cmd {
	called := task
	if id, is := strings.CutPrefix(task, "#"); is {
		called = m.called(id)
	}
	m.overlay = &pager{title: "Diff of task " + oneLine(called),
		text: []string{"  " + faint.on("reading …")}, diff: &diffing{ref: m.ref, task: task}}
	return m.readDiff()
}

// readDiff reads the shown diff again, if it is due.
func (m *Model) readDiff() tea.Cmd {
	if m.overlay == nil || m.overlay.diff == nil || m.overlay.diff.asked || m.now < m.overlay.diff.due {
		return nil
	}
	d, out := m.overlay.diff, m.out
	d.asked = true
	ref, task := d.ref, d.task
	return func() tea.Msg { return out.Diff(ref, task) }
}

// readsDiff stores a diff. The lines on the screen stay where they are.
func (m *Model) readsDiff(msg diffMsg) {
	if m.overlay == nil || m.overlay.diff == nil || m.overlay.diff.ref != msg.ref || m.overlay.diff.task != msg.task {
		return
	}
	d := m.overlay.diff
	every := team.Time(savedEvery)
	if msg.live {
		every = max(diffEvery, team.Time(9*msg.took.Milliseconds())) // reading takes at most a tenth of the time
	}
	d.asked, d.due = false, m.now+every
	m.overlay.lay = func(width int) []string { return diffLines(msg, width) }
	m.overlay.resized(m.width)
}

func diffLines(msg diffMsg, width int) (out []string) {
	if msg.err != "" {
		return wrapAll(msg.err, width, waits)
	}
	out = append(wrapAll(msg.head, width, faint), "")
	if msg.patch == "" && len(msg.left) == 0 {
		out = append(out, "  No changes.")
	}
	for l := range strings.Lines(msg.patch) {
		look := diffLook(strings.TrimRight(l, "\n"))
		if strings.HasPrefix(l, "diff --git ") {
			look = strong
		}
		for _, part := range plainText(l, width-2) {
			out = append(out, " "+look.on(part))
		}
	}
	for i, one := range msg.left {
		if i == 0 {
			out = append(out, "", " "+strong.on("Not shown"))
		}
		for _, part := range wrap(one, width-4) {
			out = append(out, "  "+waits.on(part))
		}
	}
	return out
}

// notInThePast returns why no diff can be shown of the past.
func notInThePast(m *Model) string {
	if m.away() {
		return "Diffs of the past are not kept. 0 returns to the present."
	}
	return ""
}
