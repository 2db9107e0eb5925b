package team

// TaskExpanded says that the group has made its tasks, and waits for them.
type TaskExpanded struct {
	Task  string
	Tasks []string // ids of the tasks, in the order of the items
}

// TaskFolded says that a group is done again from its beginning: it no longer waits for the tasks
// that it made, which are deleted in the same record.
type TaskFolded struct{ Task string }

func (*TaskExpanded) Kind() string { return "task_expanded" }
func (*TaskFolded) Kind() string   { return "task_folded" }

func (e *TaskExpanded) fields(c *coder) {
	c.str("task", &e.Task)
	c.strs("tasks", &e.Tasks)
}

func (e *TaskFolded) fields(c *coder) { c.str("task", &e.Task) }

func (e *TaskExpanded) apply(s *State, r *Record) {
	s.change(e.Task, r, func(t *Task) {
		t.Expanded = true
		t.Failure, t.FailedBy = "", ""
		for _, id := range e.Tasks {
			made := s.task(id)
			if made == nil || made == t || made.Of != t.ID || len(made.Blocks) > 0 &&
				made.Blocks[len(made.Blocks)-1] == t.ID {
				continue
			}
			t.BlockedBy = append(t.BlockedBy, made.ID)
			made.Blocks = append(made.Blocks, t.ID)
			t.blockage.count(made.blockage.counted, +1)
		}
	})
}

func (e *TaskFolded) apply(s *State, r *Record) {
	s.change(e.Task, r, func(t *Task) {
		t.Expanded = false
		var kept []string // a new list, because readers may hold the old one
		for _, id := range t.BlockedBy {
			made := s.task(id)
			if made == nil || made.Of != t.ID {
				kept = append(kept, id)
				continue
			}
			t.blockage.count(made.blockage.counted, -1)
			made.Blocks = without(made.Blocks, t.ID)
		}
		t.BlockedBy = kept
	})
}
