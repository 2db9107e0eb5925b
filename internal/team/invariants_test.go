package team

import (
	"fmt"
	"slices"
	"strings"
)

// invariants checks what holds in every state that decisions lead to.
func invariants(s *State) error {
	var wrong []string
	check := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	if s.team.ID == "" {
		check(len(s.members) == 0 && len(s.tasks) == 0, "there is something in a team that does not exist")
		return failure(wrong)
	}
	c := s.team.Consolidation
	check(!c.Open() || s.team.Status == TeamConsolidating || s.team.CleanedUp, "a consolidation is under way in a "+
		"team that is %s", s.team.Status)
	check(c.Step != Done || s.team.Status == TeamComplete && len(c.Passed) == len(s.team.Checks) &&
		(c.Tree == "") == (c.Commit == ""), "the consolidation is %+v in a team that is %s", c, s.team.Status)
	checkMembers(s, check)
	checkTasks(s, check)
	checkMail(s, check)
	checkNotes(s, check)
	return failure(wrong)
}

func failure(wrong []string) error {
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(wrong, "; "))
}

func checkMembers(s *State, check func(bool, string, ...any)) {
	leads := 0
	folded := map[string]bool{}
	for i := range s.members {
		m := &s.members[i]
		if m.Name == s.team.Lead {
			leads++
			check(i == 0 && m.Status.Running() && m.Shutdown == Shutdown{}, "the lead is at %d, %s, with the "+
				"shutdown %+v", i, m.Status, m.Shutdown)
		}
		check(s.named[m.Name] == i, "%s is not found by its name", m.Name)
		check(!folded[strings.ToLower(m.Name)], "there are two named %s", m.Name)
		folded[strings.ToLower(m.Name)] = true
		if !m.Status.Running() {
			check(m.Host == "" && len(m.Inbox) == 0 && m.Shutdown == Shutdown{}, "%s has ended and has a host, mail "+
				"or a shutdown", m.Name)
			check(!slices.ContainsFunc(s.permissions, func(p Permission) bool { return p.Member == m.Name }),
				"%s has ended and asks for permission", m.Name)
		}
		check(m.Status != ShuttingDown || m.Shutdown.Answer == "approved",
			"%s shuts down without having agreed", m.Name)
		check(m.Handover == "" || m.Host != "", "%s is to be handed over and has no session", m.Name)
		check(m.Setbacks <= MaxSetbacks && (m.RetryAt == 0 || m.Setbacks > 0), "%s has had %d troubles and is tried "+
			"again at %d", m.Name, m.Setbacks, m.RetryAt)
		check(m.Setbacks < MaxSetbacks || i == 0 || !m.Status.Running(), "%s continues after %d troubles",
			m.Name, m.Setbacks)
		over := s.team.CleanedUp || s.team.Status == TeamComplete || s.team.Status == TeamAborted
		check(!over || i == 0 || !m.Status.Running(), "%s runs in a team that is over", m.Name)
		for j := range s.tasks {
			t := &s.tasks[j]
			check(m.Exhausted == "" || t.Owner != m.Name || t.Status == Completed || t.Status == Deleted ||
				t.Status == InProgress && (m.Host != "" || m.Agent == External) ||
				t.Status == Pending && t.Assigned, "the budget of %s is spent, and it has task %s, %s", m.Name, t.ID,
				t.Status)
		}
	}
	check(leads == 1, "there are %d leads", leads)
	check(s.team.LastWords == "" || s.team.ReportAsked, "a report was given that was not asked for")
	check(!s.team.ReportAsked || s.members[0].Agent != External, "an external lead is asked for a report")
	for _, p := range s.permissions {
		m := s.member(p.Member)
		check(m != nil && m.Incarnation == p.Incarnation, "the request %s is of a session that is gone", p.Request)
	}
}

func checkTasks(s *State, check func(bool, string, ...any)) {
	var counts [4]int
	for i := range s.tasks {
		t := &s.tasks[i]
		check(taskIndex(t.ID) == i, "task %s is at %d", t.ID, i)
		counts[statusIndex(t.Status)]++
		open := 0
		for _, id := range t.BlockedBy {
			b := s.task(id)
			check(slices.Contains(b.Blocks, t.ID), "task %s does not know that it blocks %s", id, t.ID)
			if b.Status.open() && !(t.When != "" && t.Submission == nil && (t.Status != Pending || never(s, *b))) {
				open++
			}
		}
		for _, id := range t.Blocks {
			check(slices.Contains(s.task(id).BlockedBy, t.ID), "task %s does not know that %s blocks it", id, t.ID)
		}
		check(len(slices.Compact(slices.Sorted(slices.Values(t.BlockedBy)))) == len(t.BlockedBy),
			"task %s is blocked twice by the same", t.ID)
		check(t.waits() == open, "task %s counts %d blockers of %d", t.ID, t.waits(), open)
		check(t.Status != InProgress || open == 0, "task %s is in progress and blocked", t.ID)
		for p := range s.ready {
			has := slices.Contains(slices.Collect(s.ready[p].all()), i)
			check(has == (t.Status == Pending && open == 0 && !t.OutOfRetries() && t.Submission == nil &&
				Priorities[p] == t.Priority && !t.Group()),
				"task %s: ready at %s is %v", t.ID, Priorities[p], has)
		}
		due := slices.Contains(slices.Collect(s.due.all()), i)
		check(due == (t.Status == Pending && open == 0 && !t.OutOfRetries() && t.Group()), "task %s: due is %v", t.ID,
			due)
		made := len(s.madeBy(t))
		check(made == 0 || t.Expanded && t.Group(), "task %s has %d tasks without being expanded", t.ID, made)
		if t.Status == InProgress {
			m := s.member(t.Owner)
			check(m != nil && m.Status.Running() && t.Fence > 0 && t.Attempts > 0,
				"task %s is in progress by %q, fence %d", t.ID, t.Owner, t.Fence)
			for j := range i {
				other := &s.tasks[j]
				check(!s.takesPaths(t) || !s.takesPaths(other) || other.Owner == t.Owner ||
					!meets(t.Holds, other.Holds),
					"tasks %s and %s of %s and %s both have %v and %v", t.ID, other.ID, t.Owner, other.Owner, t.Holds,
					other.Holds)
			}
		}
		if m := s.member(t.Owner); m != nil && t.Status == Pending {
			check(m.Status.Running(), "task %s waits for %s, who has ended", t.ID, t.Owner)
		}
		check(t.Status == InProgress || t.Holds == nil, "task %s is %s and has the paths %v", t.ID, t.Status, t.Holds)
		checkSkipped(s, t, check)
		check(!reaches(s, t.ID, t.ID), "task %s waits for itself", t.ID)
	}
	check(counts == s.counts, "the counts are %v of %v", s.counts, counts)
	for i := range s.tasks {
		checkVerified(s, &s.tasks[i], check)
	}
}

// checkVerified checks what holds for a submitted task, and for a verification.
func checkVerified(s *State, t *Task, check func(bool, string, ...any)) {
	if b := t.Submission; b != nil {
		open := 0
		for _, id := range b.Tasks {
			v := s.task(id)
			check(v.Verifies == t.ID && slices.Contains(t.BlockedBy, id), "task %s is verified with task %s", t.ID, id)
			if v.Status.open() {
				open++
			}
		}
		check(t.Status == Pending && t.Failure == "" && open > 0, "task %s is %s and verified with %d tasks", t.ID,
			t.Status, open)
	}
	if t.Verifies == "" {
		return
	}
	of := s.verified(t)
	check(!t.Status.open() || of != nil, "task %s is %s and verifies nothing", t.ID, t.Status)
	check(t.Status != Completed || slices.Contains(Verdicts, t.Verdict) && t.Result != "", "task %s has the verdict %q",
		t.ID, t.Verdict)
	if of != nil && t.Status == InProgress {
		m := s.member(t.Owner)
		check(t.Owner != of.Submission.By && t.Owner != of.Submission.Holder && m.Agent != Shell,
			"%s verifies task %s, which is its own, or is a shell", t.Owner, of.ID)
	}
}

// checkSkipped checks that a task with When failed is skipped exactly while none of its blockers is
// open and it was not run because of a failure.
func checkSkipped(s *State, t *Task, check func(bool, string, ...any)) {
	open := slices.ContainsFunc(t.BlockedBy, func(id string) bool { return s.task(id).Status.open() })
	check(t.When != OnFailure || t.Status != Pending || t.OutOfRetries() || open,
		"task %s waits for a failure that cannot come", t.ID)
	check(t.Skipped == "" || t.Status == Deleted ||
		t.When == OnFailure && t.Status == Completed && t.CompletedBy == "" && !open,
		"task %s is skipped, %s, with when %q and blockers open: %v", t.ID, t.Status, t.When, open)
	r := t.Rejected
	check(r == nil || t.Status != Completed && r.Results < MaxMisfits && (t.Check == nil || r.Checks < t.Check.Limit()),
		"task %s is %s after the rejections %+v", t.ID, t.Status, r)
}

// reaches reports, in the simplest way, whether a task waits for another one, directly or through
// others.
func reaches(s *State, from, to string) bool {
	seen := map[string]bool{}
	var walk func(id string) bool
	walk = func(id string) bool {
		for _, by := range s.task(id).BlockedBy {
			if by == to {
				return true
			}
			if !seen[by] {
				seen[by] = true
				if walk(by) {
					return true
				}
			}
		}
		return false
	}
	return walk(from)
}

func checkMail(s *State, check func(bool, string, ...any)) {
	waiting := map[int64]int{}
	for i := range s.members {
		m := &s.members[i]
		check(slices.IsSorted(m.Inbox), "the inbox of %s is out of order: %v", m.Name, m.Inbox)
		for _, seq := range m.Late {
			check(slices.Contains(m.Inbox, seq), "%s has no message %d, which is late", m.Name, seq)
		}
		check(m.ReadSeq <= m.DeliveredSeq, "%s read more than it was given", m.Name)
		for _, seq := range m.Inbox {
			waiting[seq]++
			msg := s.messages[seq]
			check(msg != nil && msg.From != m.Name || msg != nil && m.Name == s.team.Lead, "%s has message %d, which "+
				"is not there or its own", m.Name, seq)
		}
	}
	check(slices.IsSorted(s.team.Outbox), "the mail to the parent is out of order: %v", s.team.Outbox)
	for _, seq := range s.team.Outbox {
		waiting[seq]++
		msg := s.messages[seq]
		check(msg != nil && msg.From == s.team.Lead && msg.To == ParentName, "message %d to the parent is not there, or "+
			"not from the lead", seq)
	}
	check(len(waiting) == len(s.messages), "%d messages are kept and %d are waited for", len(s.messages), len(waiting))
	for seq, msg := range s.messages {
		check(msg.waiting == waiting[seq], "message %d waits for %d of %d", seq, msg.waiting, waiting[seq])
		check(seq <= s.messageSeq, "message %d is newer than the newest, %d", seq, s.messageSeq)
	}
}

func checkNotes(s *State, check func(bool, string, ...any)) {
	size := 0
	for i, n := range s.notes {
		size += len(n.Text)
		check(i == 0 || s.notes[i-1].Key < n.Key, "the note %s is at place %d", n.Key, i)
		check(n.Seq > 0 && n.Seq <= s.noteSeq && n.otherSeq < n.Seq, "the note %s is at change %d after %d, of %d",
			n.Key, n.Seq, n.otherSeq, s.noteSeq)
		check(ValidNoteKey(n.Key) && n.Text != "" && len(n.Text) <= MaxNote, "the note %q has %d bytes", n.Key,
			len(n.Text))
	}
	check(len(s.notes) <= MaxNotes && size <= MaxNotesText, "%d notes have %d bytes", len(s.notes), size)
}
