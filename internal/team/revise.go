package team

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A team that was made from a team file keeps, as FileDigests, what the file said: one "key=digest"
// for each key. A front end that reads the file again finds the keys that changed, and sends the
// commands below. Other fields stay as they are, so nothing that people changed in the meantime is
// undone. The core does not read the digests.

// The events of a changed team file; Fields names the fields that each one sets, with their names
// in JSON.
type (
	// TeamRevised says that the team changed in its team file. It sets the fields of the team that
	// Fields names, and always the digests of the file.
	TeamRevised struct {
		Team   Team
		Fields []string
	}
	// MemberRevised sets the fields of the member that Fields names, and the digests of its part of
	// the team file. A member with another agent gets a fresh session.
	MemberRevised struct {
		Member Member
		Fields []string
	}
	// TaskRevised sets the fields of a pending task that Fields names, and the digests of its part
	// of the team file. It clears the failures of the task.
	TaskRevised struct {
		Task   Task
		Fields []string
	}
)

func (*TeamRevised) Kind() string   { return "team_revised" }
func (*MemberRevised) Kind() string { return "member_revised" }
func (*TaskRevised) Kind() string   { return "task_revised" }

func (e *TeamRevised) fields(c *coder) {
	c.sub("team", false, &e.Team)
	c.strs("fields", &e.Fields)
}

func (e *MemberRevised) fields(c *coder) {
	c.sub("member", false, &e.Member)
	c.strs("fields", &e.Fields)
}

func (e *TaskRevised) fields(c *coder) {
	c.sub("task", false, &e.Task)
	c.strs("fields", &e.Fields)
}

// setTeamField copies one field of a team; is reports whether a revision can set it.
func setTeamField(to, from *Team, field string) (is bool) {
	switch field {
	case "goal":
		to.Goal = from.Goal
	case "hooks":
		to.Hooks = from.Hooks
	case "permissions":
		to.Permissions = from.Permissions
	case "handoverAt":
		to.HandoverAt = from.HandoverAt
	case "maxTeammates":
		to.MaxTeammates = from.MaxTeammates
	case "maxParallel":
		to.MaxParallel = from.MaxParallel
	case "maxDepth":
		to.MaxDepth = from.MaxDepth
	case "timing":
		to.Timing = from.Timing
	case "checks":
		to.Checks = from.Checks
	case "commands":
		to.Commands = from.Commands
	case "clean":
		to.Clean = from.Clean
	case "changes":
		to.Changes = from.Changes
	case "remote":
		to.Remote = from.Remote
	case "metadata":
		to.Metadata = from.Metadata
	default:
		return false
	}
	return true
}

// setMemberField copies one field of a member; is reports whether a revision can set it.
func setMemberField(to, from *Member, field string) (is bool) {
	switch field {
	case "agent":
		to.Agent = from.Agent
	case "model":
		to.Model = from.Model
	case "program":
		to.Program = from.Program
	case "args":
		to.Args = from.Args
	case "env":
		to.Env = from.Env
	case "role":
		to.Role = from.Role
	case "prompt":
		to.Prompt = from.Prompt
	case "plan":
		to.Plan.Required = from.Plan.Required
	case "nested":
		to.Nested = from.Nested
	case "dropped":
		to.Dropped = from.Dropped
	default:
		return false
	}
	return true
}

// setTaskField copies one field of a task; is reports whether a revision can set it.
func setTaskField(to, from *Task, field string) (is bool) {
	switch field {
	case "subject":
		to.Subject = from.Subject
	case "description":
		to.Description = from.Description
	case "role":
		to.Role = from.Role
	case "priority":
		to.Priority = from.Priority
	case "run":
		to.Run = from.Run
	case "in":
		to.In = from.In
	case "dir":
		to.Dir = from.Dir
	case "env":
		to.Env = from.Env
	case "when":
		to.When = from.When
	case "schema":
		to.Schema = from.Schema
	case "check":
		to.Check = from.Check
	case "verify":
		to.Verify = from.Verify
	case "timeoutMs":
		to.Timeout = from.Timeout
	case "retries":
		to.Retries = from.Retries
	case "paths":
		to.Paths = from.Paths
	case "forEach":
		to.ForEach = from.ForEach
	case "metadata":
		to.Metadata = from.Metadata
	default:
		return false
	}
	return true
}

func (e *TeamRevised) apply(s *State, _ *Record) {
	for _, field := range e.Fields {
		setTeamField(&s.team, &e.Team, field)
	}
	s.team.OriginDigest, s.team.FileDigests = e.Team.OriginDigest, e.Team.FileDigests
}

func (e *MemberRevised) apply(s *State, _ *Record) {
	m := s.member(e.Member.Name)
	if m == nil {
		return
	}
	for _, field := range e.Fields {
		if setMemberField(m, &e.Member, field); field == "agent" { // another agent cannot resume its session
			m.Session, m.SessionCost, m.Context = "", 0, 0
		}
	}
	m.FileDigests = e.Member.FileDigests
}

func (e *TaskRevised) apply(s *State, r *Record) {
	if t := s.task(e.Task.ID); t == nil || t.Status == Deleted {
		return
	} else if t.OutOfRetries() {
		s.reopenReport()
	}
	s.change(e.Task.ID, r, func(t *Task) {
		if t.Skipped != "" { // what it waits for may be something else now
			t.Status, t.Skipped, t.CompletedAt = Pending, "", 0
		}
		for _, field := range e.Fields {
			setTaskField(t, &e.Task, field)
		}
		t.FileDigests = e.Task.FileDigests
		t.Failures, t.Failure, t.FailedBy, t.Rejected = 0, "", "", nil
	})
}

// revises checks that the actor may change what the team file says.
func (d *decision) revises() error {
	if d.Actor != User {
		return refuse(Denied, "%s is not the user and cannot apply a changed team file", brief(d.Actor))
	}
	if d.team.Consolidation.Open() {
		return Refuse(NotReady, "team %s is being consolidated", d.team.Name).
			With(d.team.hint(ActFinish), d.team.hint(ActRollBack))
	}
	return nil
}

func noField(field, what string) error {
	return refuse(Invalid, "%q of a %s cannot be revised", brief(field), what)
}

// checkDigests refuses digests that are too long.
func checkDigests(digests []string) error {
	return limit(text{"digests", strings.Join(digests, ""), MaxText})
}

// ReviseTeam records that the team file has changed, and sets Fields of the team as To has them. Of
// the metadata it sets the keys of To; null removes a key.
type ReviseTeam struct {
	To     Team // with OriginDigest and FileDigests
	Fields []string
}

func (b *ReviseTeam) decide(d *decision) error {
	if err := d.revises(); err != nil {
		return err
	}
	after, to := d.team, b.To
	meta, wrong := metadata(d.team.Metadata, to.Metadata)
	to.Metadata = merged(d.team.Metadata, meta)
	for _, field := range b.Fields {
		if !setTeamField(&after, &to, field) {
			return noField(field, "team")
		}
	}
	if err := cmp.Or(wrong, checkMaxDepth(after.Depth, after.MaxDepth),
		checkLimits(after.HandoverAt, after.MaxTeammates, after.MaxParallel),
		after.Permissions.check(), after.Timing.check(), checkChecks(after.Checks), checkCommands(after.Commands),
		checkHooks(after.Hooks), checkDigests(b.To.FileDigests),
		limit(text{"goal", after.Goal, MaxText}, text{"digest", b.To.OriginDigest, MaxSubject})); err != nil {
		return err
	}
	if len(b.Fields) == 0 && b.To.OriginDigest == d.team.OriginDigest &&
		slices.Equal(b.To.FileDigests, d.team.FileDigests) {
		return nil
	}
	e := &TeamRevised{Fields: b.Fields}
	for _, field := range b.Fields {
		setTeamField(&e.Team, &to, field)
	}
	e.Team.OriginDigest, e.Team.FileDigests = b.To.OriginDigest, b.To.FileDigests
	d.emit(e)
	if slices.Contains(b.Fields, "goal") && after.Goal != d.team.Goal {
		for i := range d.members {
			d.changed(&d.members[i], "The goal of the team is now:"+cited(after.Goal))
		}
	}
	return nil
}

// ReviseMember sets Fields of the member To.Name as To has them. A running session keeps what it
// was started with; the next one has the new values.
type ReviseMember struct {
	To     Member // with FileDigests
	Fields []string
}

func (b *ReviseMember) decide(d *decision) error {
	if err := d.revises(); err != nil {
		return err
	}
	m, err := d.known(b.To.Name)
	if err != nil {
		return err
	}
	after := *m
	for _, field := range b.Fields {
		if !setMemberField(&after, &b.To, field) {
			return noField(field, "member")
		}
	}
	if (m.Agent == External) != (after.Agent == External) {
		return refuse(Invalid, "%s cannot change its agent from %s to %s; give the new member another name", m.Name,
			brief(m.Agent), brief(after.Agent))
	}
	as := SpawnMember{Name: m.Name, Agent: after.Agent, PlanApproval: after.Plan.Required, Isolation: after.Isolation,
		Program: after.Program, Args: after.Args, Nested: after.Nested}
	if slices.Contains(b.Fields, "nested") || slices.Contains(b.Fields, "agent") {
		if _, err := d.nests(&as); err != nil {
			return err
		}
	}
	if err := cmp.Or(as.checkAgent(), checkProgram(after.Program, after.Args, after.Env),
		checkDigests(b.To.FileDigests), limit(text{"agent", after.Agent, MaxSubject},
			text{"model", after.Model, MaxSubject},
			text{"role", after.Role, MaxSubject}, text{"prompt", after.Prompt, MaxText})); err != nil {
		return err
	}
	e := &MemberRevised{Fields: b.Fields}
	for _, field := range b.Fields {
		setMemberField(&e.Member, &b.To, field)
	}
	e.Member.Name, e.Member.FileDigests = m.Name, b.To.FileDigests
	d.emit(e)
	if slices.Contains(b.Fields, "prompt") && after.Prompt != m.Prompt && after.Agent == m.Agent && after.Prompt != "" {
		d.changed(m, "The user changed your instructions. They are now:"+cited(after.Prompt))
	}
	return nil
}

// ReviseTask sets Fields of a pending task as To has them, or deletes the task. A task that a
// member works on is refused, and so is a completed one.
type ReviseTask struct {
	Task        string
	To          CreateTask // Name and BlockedBy do not count
	Fields      []string   // names of the JSON form; "owner" too
	FileDigests []string
	Delete      bool
}

func (b *ReviseTask) decide(d *decision) error {
	if err := d.revises(); err != nil {
		return err
	}
	t, err := d.live(b.Task)
	switch {
	case err != nil:
		return err
	case d.fixed(t) != nil:
		return d.fixed(t)
	case b.Delete:
		return (&DeleteTask{Task: t.ID}).decide(d)
	case t.Expanded:
		return refuse(NotReady, "%s has made its tasks and cannot be changed; have it done again", t.label())
	}
	to, err := b.target(d, t)
	if err != nil {
		return err
	}
	after, owner := *t, t.Owner
	e := &TaskRevised{}
	reassigned := false
	for _, field := range b.Fields {
		if field == "owner" {
			owner, reassigned = b.To.Owner, b.To.Owner != t.Owner
			continue
		}
		if !setTaskField(&after, &to, field) {
			return noField(field, "task")
		}
		setTaskField(&e.Task, &to, field)
		e.Fields = append(e.Fields, field)
	}
	as := CreateTask{Subject: after.Subject, Description: after.Description, Priority: after.Priority, Run: after.Run,
		In: after.In, Dir: after.Dir, Env: after.Env, When: after.When, Timeout: after.Timeout, Retries: after.Retries,
		Check: after.Check, ForEach: after.ForEach}
	_, wrong := d.checkVerify(after.Verify, owner)
	if m := d.member(owner); m != nil {
		wrong = cmp.Or(wrong, m.unable(t, after.Run))
	}
	if err := cmp.Or(as.check(after.Priority), checkDigests(b.FileDigests),
		limit(text{"role", after.Role, MaxSubject}), wrong); err != nil {
		return err
	}
	e.Task.ID, e.Task.FileDigests = t.ID, b.FileDigests
	d.emit(e)
	d.retried(t)
	if !reassigned {
		return nil
	}
	if err := d.reassign(t, owner); err != nil {
		return err
	}
	d.updated(t, &TaskUpdated{Task: t.ID, Owner: &owner})
	if owner != "" {
		d.assigned(owner, t.ID, "Task %s is yours: %s", t.Called(), Quoted(after.Subject))
	}
	return nil
}

// fixed refuses to change a task that is done, or that somebody works on or verifies.
func (d *decision) fixed(t *Task) error {
	switch {
	case t.Status == InProgress:
		return Refuse(NotReady, "%s is in progress by %s and cannot be changed", t.label(), t.Owner).
			With(t.Hint(&d.team, ActRetryTask))
	case t.Submission != nil:
		return Refuse(NotReady, "%s is being verified and cannot be changed", t.label()).
			With(t.Hint(&d.team, ActRetryTask))
	case t.Status != Pending && t.Skipped == "":
		return refuse(NotReady, "%s is %s and cannot be changed", t.label(), t.Status)
	}
	return nil
}

// target returns the task as the revision wants it.
func (b *ReviseTask) target(d *decision, t *Task) (to Task, err error) {
	to = Task{Subject: b.To.Subject, Description: b.To.Description, Role: b.To.Role,
		Priority: cmp.Or(b.To.Priority, DefaultPriority), Run: b.To.Run, In: b.To.In, Dir: b.To.place(), Env: b.To.Env,
		When: when(b.To.When), Timeout: b.To.Timeout, Retries: b.To.Retries}
	if to.Schema, to.Check, err = d.checkDemands(b.To.Schema, b.To.Check); err != nil {
		return to, err
	}
	meta, err := metadata(t.Metadata, b.To.Metadata)
	if err != nil {
		return to, err
	}
	to.Metadata = merged(t.Metadata, meta)
	if to.Paths, err = cleanPaths(b.To.Paths); err != nil {
		return to, err
	}
	if b.To.Verify != nil {
		to.Verify = b.To.Verify.whole()
	}
	to.ForEach, err = b.To.ForEach.Clean()
	return to, err
}

// RedoTask returns a completed task to the queue, because its result no longer stands. Tasks that
// build on it and are completed keep their results. A group, completed or not, makes its tasks
// again: those that it made are deleted. A group whose task is done again waits for it.
type RedoTask struct{ Task, Reason string }

func (b *RedoTask) decide(d *decision) error {
	if err := d.revises(); err != nil {
		return err
	}
	t, err := d.live(b.Task)
	switch {
	case err != nil:
		return err
	case t.Status != Completed && !t.Expanded:
		return refuse(NotReady, "%s is %s, not completed", t.label(), t.Status)
	case t.Verifies != "":
		return refuse(NotReady, "%s verified task %s; when that is done again, it is verified again", t.label(),
			d.Called(t.Verifies))
	}
	made := d.madeBy(t)
	for _, one := range append([]*Task{t}, made...) {
		if d.WorkWanted(one.ID) == WantRecord && one.Work.Machine == "" {
			return Refuse(NotReady, "a host must still record the work of %s", one.label()).
				With(d.team.hint(ActResume))
		}
	}
	if err := d.noneBuilds(t, made); err != nil {
		return err
	}
	if err := limit(text{"reason", b.Reason, MaxText}); err != nil {
		return err
	}
	owner := ""
	if t.Assigned {
		if _, err := d.running(t.Owner); err == nil {
			owner = t.Owner
		}
	}
	if d.team.Status == TeamConsolidating {
		d.emit(&TeamStatusChanged{Status: TeamActive, Reason: fmt.Sprintf("task %s is done again", t.Called())})
	}
	for _, one := range made {
		d.remove(one)
	}
	if t.Status == Completed {
		d.releaseTo(owner, t, b.Reason)
	}
	if t.Expanded {
		d.emit(&TaskFolded{Task: t.ID})
	}
	d.reopenGroup(t, b.Reason)
	return nil
}

// noneBuilds refuses that a task is done again while a member works on what builds on it, or on a
// task that it made.
func (d *decision) noneBuilds(t *Task, made []*Task) error {
	behind := t.Blocks
	if g := d.task(t.Of); g != nil {
		behind = slices.Concat(behind, g.Blocks)
	}
	for _, id := range behind {
		if w := d.task(id); w != nil && w.begun() {
			return Refuse(NotReady, "%s builds on %s and is in progress by %s", w.label(), t.label(), w.Owner).
				With(w.Hint(&d.team, ActRetryTask))
		}
	}
	for _, one := range made {
		if one.begun() {
			return Refuse(NotReady, "%s is one of the tasks of %s and is in progress by %s", one.label(), t.label(),
				one.Owner).With(one.Hint(&d.team, ActRetryTask))
		}
	}
	return nil
}

// reopenGroup returns the group that made the task to the queue, if it is completed: the task is
// not done any more.
func (d *decision) reopenGroup(t *Task, reason string) {
	if g := d.task(t.Of); g != nil && g.Status == Completed {
		d.releaseTo(d.meantFor(g), g, reason)
	}
}
