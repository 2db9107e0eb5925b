package team

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// CreateTask adds a task to the list.
type CreateTask struct {
	Name        string // "" for its number
	Subject     string
	Description string
	ActiveForm  string
	Owner       string
	Role        string
	BlockedBy   []string // ids, or names as [ByName] has them
	Priority    string   // "" for medium
	Run         string
	In          string          // [InMerged], for a task with a command
	Dir         string          // below the directory of its member, for a task with a command
	Env         []string        // NAME=value, for a task with a command
	When        string          // [Always], [OnFailure], or "" or [OnSuccess] for when all its blockers are done
	Schema      json.RawMessage // JSON Schema that its result must fit
	// must pass before it is completed; with a Name and no Run, the team's command of that name
	Check       *TaskCheck
	Timeout     time.Duration
	Retries     int64
	Paths       []string // patterns of the files that it changes
	ForEach     *ForEach // the task makes one task for each item; nil for a task by itself
	Verify      *Verify  // who must accept it before it counts as completed
	Metadata    map[string]json.RawMessage
	FileDigests []string // see [Task]
}

// DefaultPriority is the priority of a task that was given none.
const DefaultPriority = "medium"

func (b *CreateTask) decide(d *decision) error {
	t := Task{Name: b.Name, Subject: b.Subject, Description: b.Description, ActiveForm: b.ActiveForm,
		Status: Pending, Owner: b.Owner,
		Assigned: b.Owner != "", Role: b.Role,
		Priority: b.Priority, Run: b.Run, In: b.In, Dir: b.place(), Env: b.Env, When: when(b.When), Timeout: b.Timeout,
		Retries: b.Retries, CreatedBy: d.Actor, FileDigests: b.FileDigests}
	t.ID = d.nextTask()
	var err error
	if t.Paths, err = cleanPaths(b.Paths); err != nil {
		return err
	}
	if t.Schema, t.Check, err = d.checkDemands(b.Schema, b.Check); err != nil {
		return err
	}
	if t.ForEach, err = b.ForEach.Clean(); err != nil {
		return err
	}
	if t.Verify, err = d.checkVerify(b.Verify, b.Owner); err != nil {
		return err
	}
	t.Priority = cmp.Or(t.Priority, DefaultPriority)
	if err := cmp.Or(b.check(t.Priority), d.checkTaskName(b.Name), checkDigests(b.FileDigests)); err != nil {
		return err
	}
	var owner *Member
	if b.Owner != "" {
		if owner, err = d.nextOwner(b.Owner); err != nil {
			return err
		}
	}
	if t.BlockedBy, err = b.blockers(d, t.ID); err != nil {
		return err
	}
	if t.When == OnFailure && len(t.BlockedBy) == 0 {
		return refuse(Invalid, "a task with when %s waits for other tasks, and this one waits for none", OnFailure)
	}
	if owner != nil {
		if err := cmp.Or(d.sees(owner, &t, t.BlockedBy), owner.unable(&t, t.Run)); err != nil {
			return err
		}
	}
	meta, err := metadata(nil, b.Metadata)
	if err != nil {
		return err
	}
	t.Metadata = merged(nil, meta)
	d.create(t)
	if b.Owner != "" && b.Owner != d.Actor && t.ForEach == nil {
		d.assigned(b.Owner, t.ID, "Task %s is yours: %s", t.Called(), Quoted(b.Subject))
	}
	return nil
}

// blockers returns the ids of the tasks that the new task waits for, each once.
func (b *CreateTask) blockers(d *decision, task string) (ids []string, err error) {
	once := map[string]bool{}
	for _, ref := range b.BlockedBy {
		if ref == task {
			return nil, refuse(Invalid, "task %s cannot block itself", task)
		}
		blocker, err := d.live(ref)
		if err != nil {
			return nil, err
		}
		if !once[blocker.ID] {
			once[blocker.ID] = true
			ids = append(ids, blocker.ID)
		}
	}
	return ids, nil
}

// check refuses an invalid task or a text that is too long.
func (b *CreateTask) check(priority string) error {
	switch {
	case strings.TrimSpace(b.Subject) == "":
		return refuse(Invalid, "a task needs a subject")
	case b.Timeout < 0 || b.Retries < 0:
		return refuse(Invalid, "timeout and retries of a task cannot be negative")
	case b.Owner != "" && b.Role != "":
		return refuse(Invalid, "a task has an owner or a role, not both")
	case b.In != "" && b.In != InMerged:
		return refuse(Invalid, "%q is not a place for a task; it is %s, or left out", brief(b.In), InMerged)
	case b.ForEach != nil && b.When != "":
		return refuse(Invalid, "a task with forEach makes its tasks when its blockers are completed, so it has no when; "+
			"leave when out")
	case b.In != "" && strings.TrimSpace(b.Run) == "":
		return refuse(Invalid, "a task runs in the merged worktree by its command, and this one has none")
	}
	if err := b.checkPlace(); err != nil {
		return err
	}
	return cmp.Or(oneOf("priority", priority, Priorities),
		limit(text{"subject", b.Subject, MaxSubject}, text{"active form", b.ActiveForm, MaxSubject},
			text{"role", b.Role, MaxSubject},
			text{"description", b.Description, MaxText}, text{"command", b.Run, MaxText}))
}

// nextTask returns the id of the next task.
func (d *decision) nextTask() string { return strconv.Itoa(len(d.tasks) + d.created + 1) }

func (s *State) noTask(ref string) error {
	if t := s.referred(ref); t != nil && t.Status == Deleted {
		return Refuse(NotFound, "task %s was deleted", t.Called()).With(s.team.hint(ActShowTasks))
	}
	name, meant := strings.TrimPrefix(ref, byName), ""
	var known []string
	for named, i := range s.tasksNamed {
		// a number is near to most other numbers, so none is suggested
		if _, number := strconv.Atoi(named); number != nil && s.tasks[i].Status != Deleted {
			known = append(known, named)
		}
	}
	slices.Sort(known)
	if near := Nearest(name, known); near != "" {
		meant = ", did you mean " + near + "?"
	}
	return Refuse(NotFound, "no task %q in team %s%s", brief(name), s.team.Name, meant).With(s.team.hint(ActShowTasks))
}

// live returns the task that the command names, which must not be deleted.
func (d *decision) live(ref string) (*Task, error) {
	if t := d.referred(ref); t != nil && t.Status != Deleted {
		return t, nil
	}
	return nil, d.noTask(ref)
}

// worker returns the member that acts on a task: the actor, or the member that the lead, the user
// or its host names.
func (d *decision) worker(name string) (*Member, error) {
	if name == "" || name == d.Actor {
		if d.actor == nil {
			return nil, d.forWhom()
		}
		return d.actor, nil
	}
	if d.leads("") == nil {
		return d.running(name)
	}
	return d.hosted(name)
}

// held returns the task and the [decision.worker] that acts on it. The worker must hold the task,
// under that fence if it is not 0.
func (d *decision) held(id, worker string, fence int64) (*Task, *Member, error) {
	m, err := d.worker(worker)
	if err != nil {
		return nil, nil, err
	}
	t, err := d.live(id)
	switch {
	case err != nil:
	case t.Status == Completed:
		err = Refuse(Conflict, "%s was completed by %s", t.label(), t.CompletedBy).With(t.Hint(&d.team, ActShowTask))
	case t.Submission != nil:
		err = d.verifying(t, "its end comes with that")
	case t.Status == Pending && m.BudgetSpent(d.At) != "":
		err = d.affords(m)
	case t.Status == Pending && fence != 0:
		err = refuse(Conflict, "%s lost its claim on %s: the task is in the queue again", m.Name, t.label())
	case t.Status == Pending:
		hint := t.Hint(&d.team, ActClaimTask)
		hint.Member = m.Name
		err = Refuse(NotReady, "%s is not in progress", t.label()).With(hint)
	case t.Owner != m.Name && fence == 0: // it may never have had it
		err = refuse(Conflict, "%s does not hold %s: %s works on it now", m.Name, t.label(), t.Owner)
	case t.Owner != m.Name:
		err = refuse(Conflict, "%s lost its claim on %s: %s holds it now", m.Name, t.label(), t.Owner)
	case fence != 0 && fence != t.Fence:
		err = refuse(Conflict, "%s has claimed %s again since: this claim (%d) is void, the present one is %d", m.Name,
			t.label(), fence, t.Fence)
	}
	return t, m, err
}
