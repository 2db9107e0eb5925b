package search

import (
	"iter"
	"strings"

	"cadre/internal/team"
)

// texts yields the texts of a record. What the team itself says in a message is left out: it cites
// results and notes that are found where they stand.
func texts(r *team.Record) iter.Seq[Match] {
	return func(yield func(Match) bool) {
		for _, e := range r.Events {
			for _, m := range textsOf(e) {
				if m.Text != "" && !yield(m) {
					return
				}
			}
		}
	}
}

func textsOf(e team.Event) []Match {
	switch e := e.(type) {
	case *team.MessageSent:
		return message(&e.Message)
	case *team.TaskCompleted:
		return []Match{{Kind: Result, By: e.By, Task: e.Task, Text: e.Result}}
	case *team.TaskFailed:
		return []Match{{Kind: Result, By: e.By, Task: e.Task, Failed: true, Text: joined(e.Reason, e.Result)}}
	case *team.TaskSubmitted:
		return []Match{{Kind: Result, By: e.By, Task: e.Task, Text: e.Result}}
	case *team.WordsRecorded:
		return []Match{{Kind: Result, By: e.Member, Task: e.Task, Text: e.Words}}
	case *team.TaskRejected:
		return rejected(e)
	case *team.NoteSet:
		return []Match{{Kind: Note, Note: e.Key, Seq: e.Seq, Text: e.Text}}
	case *team.NoteAppended:
		return []Match{{Kind: Note, Note: e.Key, Seq: e.Seq, Text: e.Text}}
	case *team.ReportGiven:
		return []Match{{Kind: Report, Text: e.Text}}
	case *team.TaskCreated:
		return []Match{taskText(&e.Task)}
	case *team.TaskRevised:
		return []Match{revised(e)}
	case *team.TaskUpdated:
		return []Match{{Kind: Task, Task: e.Task, Text: joined(value(e.Subject), value(e.Description))}}
	case *team.TeamRestored:
		return restored(e)
	}
	return nil
}

func message(m *team.Message) []Match {
	if m.From == "" {
		return nil
	}
	to := m.Recipients
	if len(to) == 0 {
		to = []string{m.To}
	}
	task := m.Ref
	if strings.Trim(task, "0123456789") != "" { // it is the id of a request
		task = ""
	}
	return []Match{{Kind: Message, By: m.From, To: to, Task: task, Seq: m.Seq, At: m.SentAt,
		Text: joined(m.Summary, m.Body)}}
}

func taskText(t *team.Task) Match {
	return Match{Kind: Task, By: t.CreatedBy, Task: t.ID, At: t.CreatedAt, Text: joined(t.Subject, t.Description)}
}

// revised returns what a changed team file says of the task now. The event has the whole task.
func revised(e *team.TaskRevised) Match {
	var now team.Task
	for _, field := range e.Fields {
		switch field {
		case "subject":
			now.Subject = e.Task.Subject
		case "description":
			now.Description = e.Task.Description
		}
	}
	return Match{Kind: Task, Task: e.Task.ID, Text: joined(now.Subject, now.Description)}
}

// rejected returns why a result was rejected. What members say that verified it is found as the
// results of their own tasks.
func rejected(e *team.TaskRejected) []Match {
	if e.By != team.ByCheck && e.By != team.ByResult {
		return nil
	}
	return []Match{{Kind: Result, By: e.Member, Task: e.Task, Failed: true, Text: e.Feedback}}
}

// restored returns the texts that came with a team from a checkpoint.
func restored(e *team.TeamRestored) (all []Match) {
	for i := range e.Messages {
		all = append(all, message(&e.Messages[i])...)
	}
	for i := range e.Tasks {
		t := &e.Tasks[i]
		all = append(all, taskText(t))
		if t.Result != "" {
			all = append(all, Match{Kind: Result, By: t.CompletedBy, Task: t.ID, At: t.CompletedAt, Text: t.Result})
		}
		if t.LastWords != "" {
			all = append(all, Match{Kind: Result, By: t.CompletedBy, Task: t.ID, At: t.CompletedAt, Text: t.LastWords})
		}
		if t.Failure != "" {
			all = append(all, Match{Kind: Result, By: t.FailedBy, Task: t.ID, Failed: true, Text: t.Failure})
		}
		if by := t.Submission; by != nil && by.Result != "" {
			all = append(all, Match{Kind: Result, By: by.By, Task: t.ID, At: by.At, Text: by.Result})
		}
		if t.Rejected != nil {
			all = append(all, rejected(&team.TaskRejected{Task: t.ID, Member: t.Owner, By: t.Rejected.By,
				Feedback: t.Rejected.Feedback})...)
		}
	}
	for i := range e.Notes {
		n := &e.Notes[i]
		all = append(all, Match{Kind: Note, By: n.UpdatedBy, Note: n.Key, Seq: n.Seq, At: n.UpdatedAt, Text: n.Text})
	}
	return append(all, Match{Kind: Report, By: e.Team.Lead, Text: e.Team.LastWords})
}

// joined puts two texts below each other.
func joined(above, below string) string {
	switch {
	case above == "":
		return below
	case below == "":
		return above
	}
	return above + "\n" + below
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
