// Package shell is the agent that needs no model: it takes tasks from the list and runs their
// commands.
//
// # States
//
//	looking ──has or claimed a task──▶ running ──exit──▶ completing ──accepted──▶ looking
//	looking ──no task──▶ waiting ──Wake, Deliver──▶ looking         completing ──a hook rejected──▶ the task fails
//	asked to shut down: it finishes the running command, agrees, and waits to be stopped
//
// # A command
//
// /bin/sh runs the command in the team's directory, with the environment of cadre and
//
//	CADRE_TEAM, CADRE_TEAM_ID, CADRE_MEMBER_NAME, CADRE_SESSION_HOME, as in every session
//	CADRE_TASK_ID, CADRE_TASK_SUBJECT
//	CADRE_RESULTS    folder with a file for the result of each completed task that this one depends on, named
//	                 <id in the team file, else its id>.md
//	CADRE_FAILED_TASKS  the names of the failed tasks that this one waited for, directly or through
//	                 other tasks, separated by commas
//	CADRE_FEEDBACK   the feedback of a hook that rejected the last attempt of this session, if one did
//
// Exit status 0 completes the task. Its result is what the command printed, standard output and
// error together; of a long output, the beginning and the end. Any other status fails the task,
// with the output kept. Either way, the lead gets one line. Viewers see the end of the output while
// the command runs; it never waits for them.
package shell

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"cadre/internal/agent"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Agent starts shell sessions. The zero Agent is ready for use.
type Agent struct {
	Timeout time.Duration // of a command whose task sets none; 0 for an hour
	Output  int           // bytes kept of each end of an output; 0 for 32 KiB
	Ladder  proc.Ladder   // how a command is ended
}

const defaultTimeout = time.Hour

// TakesTasks reports that a session takes tasks by itself.
func (Agent) TakesTasks() {}

// Start starts a session.
func (a Agent) Start(_ context.Context, spec agent.Spec, its agent.Team) (agent.Session, error) {
	if info, err := os.Stat(spec.Dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("cannot work in the directory of team %s: %s: %w", spec.Team, spec.Dir,
			errOr(err, errors.New("not a directory")))
	}
	if a.Timeout <= 0 {
		a.Timeout = defaultTimeout
	}
	ctx, cancel := context.WithCancel(context.Background())
	hurry, hurryUp := context.WithCancel(context.Background())
	s := &session{agent: a, spec: spec, team: its, cancel: cancel, hurry: hurry, hurryUp: hurryUp,
		tried: map[string]int64{}, rejected: map[string]string{}, updates: make(chan agent.Update, 16), given: make(chan string, 16),
		wake: make(chan struct{}, 1), done: make(chan struct{})}
	go s.work(ctx)
	return s, nil
}

func errOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

type session struct {
	agent   Agent
	spec    agent.Spec
	team    agent.Team
	cancel  context.CancelFunc
	hurry   context.Context // done when a command that is to end has had its time
	hurryUp context.CancelFunc
	tried   map[string]int64 // the claims that were worked on, by task; owned by the goroutine work
	// the feedback of the hook that rejected the last attempt, by task; owned by the goroutine work
	rejected map[string]string
	updates  chan agent.Update
	given    chan string   // ids of prompts to acknowledge
	wake     chan struct{} // holds one wake-up
	done     chan struct{}

	mu        sync.Mutex
	shutdown  string                  // request to agree to
	interrupt context.CancelCauseFunc // ends the running command
}

func (s *session) Updates() <-chan agent.Update { return s.updates }

func (s *session) Give(ctx context.Context, p agent.Prompt) error {
	s.mu.Lock()
	for _, m := range p.Mail {
		if m.Type == team.TypeShutdownRequest {
			s.shutdown = m.Ref
		}
	}
	if p.Urgent && slices.ContainsFunc(p.Mail, stops) && s.interrupt != nil {
		s.interrupt(errUrgent)
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	select {
	case s.given <- p.ID:
		return nil
	case <-s.done:
		return errors.New("the session has ended")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// SetAccess has nothing to change: the tasks decide what a shell runs.
func (s *session) SetAccess(context.Context, agent.Access) error { return errors.ErrUnsupported }

// stops reports whether the message ends the running command. A shell reads no messages, so the only
// use of an urgent one to it is to stop the command. An urgent broadcast is meant for agents.
func stops(m team.Message) bool {
	return m.Type == team.TypeMessage && m.Priority == "urgent" && m.From == team.User
}

// These are the failures of a command that was ended for a person.
var (
	errInterrupted = errors.New("interrupted")
	errUrgent      = errors.New("interrupted by an urgent message of the user")
)

func (s *session) Interrupt(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.interrupt != nil {
		s.interrupt(errInterrupted)
	}
	return nil
}

func (s *session) Stop(ctx context.Context) error {
	s.cancel()
	select {
	case <-s.done:
	case <-ctx.Done():
		s.hurryUp()
		<-s.done
	}
	return nil
}

// say sends an update. If the session has ended, it does not wait for a reader.
func (s *session) say(ctx context.Context, u agent.Update) {
	select {
	case s.updates <- u:
		return
	default:
	}
	select {
	case s.updates <- u:
	case <-ctx.Done():
	}
}

// acknowledge reports every prompt as received, until the session ends.
func (s *session) acknowledge(ctx context.Context) {
	for {
		select {
		case id := <-s.given:
			s.say(ctx, agent.Received{ID: id})
		case <-ctx.Done():
			return
		}
	}
}

func (s *session) work(ctx context.Context) {
	defer s.hurryUp()
	defer close(s.done)
	defer close(s.updates)
	s.say(ctx, agent.Started{})
	acknowledging, stop := context.WithCancel(ctx)
	var aside sync.WaitGroup
	aside.Go(func() { s.acknowledge(acknowledging) })
	var err error
	for err == nil && ctx.Err() == nil {
		err = s.turn(ctx)
	}
	stop()
	aside.Wait()
	if ctx.Err() != nil {
		err = nil
	}
	select {
	case s.updates <- agent.Ended{Err: err}:
	case <-time.After(time.Second): // an absent reader must not block the session
	}
}

// turn works until there is nothing to do, and then waits for a reason to look again.
func (s *session) turn(ctx context.Context) error {
	for {
		if done, err := s.agreeToShutdown(ctx); done || err != nil {
			break
		}
		task, err := s.claim(ctx)
		if err != nil {
			return err
		}
		if task == nil {
			break
		}
		s.say(ctx, agent.TurnStarted{Summary: "task " + task.Called() + ": " + task.Subject})
		if err := s.attempt(ctx, *task); err != nil {
			return err
		}
	}
	s.say(ctx, agent.TurnEnded{})
	select {
	case <-s.wake:
	case <-ctx.Done():
	}
	return nil
}

func (s *session) agreeToShutdown(ctx context.Context) (bool, error) {
	s.mu.Lock()
	request := s.shutdown
	s.mu.Unlock()
	if request == "" {
		return false, nil
	}
	_, err := s.team.Do(ctx, &team.AnswerShutdown{Request: request, Approved: true})
	s.mu.Lock()
	s.shutdown = ""
	s.mu.Unlock()
	if team.CodeOf(err) == team.Conflict { // withdrawn in the meantime
		return false, nil
	}
	return err == nil, err
}

// claim takes the next task, or returns nil if none is ready. A task that the member holds already,
// and that was not tried here, comes first. Another member claimed it for this one, or the answer
// to a claim was lost.
func (s *session) claim(ctx context.Context) (*team.Task, error) {
	var held []team.Task
	s.team.View(func(st *team.State) { held = st.Held(s.spec.Member) })
	for i := range held {
		if t := &held[i]; s.tried[t.ID] != t.Fence {
			s.tried[t.ID] = t.Fence
			return t, nil
		}
	}
	r, err := s.team.Do(ctx, &team.ClaimTask{})
	switch team.CodeOf(err) {
	case team.Nothing, team.NotReady, team.Exhausted, team.Finished:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	claimed, ok := team.EventIn[*team.TaskClaimed](r)
	if !ok {
		return nil, nil
	}
	var task team.Task
	s.team.View(func(st *team.State) { task, _ = st.Task(claimed.Task) })
	task.Fence = claimed.Fence
	s.tried[task.ID] = task.Fence
	return &task, nil
}

// attempt runs the task's command and reports its outcome. An error ends the session. A hook that
// rejects the result fails the task: a command does not read feedback as an agent does, so only the
// task's own retries say whether it runs again.
func (s *session) attempt(ctx context.Context, task team.Task) error {
	began := time.Now()
	output, failure, err := s.run(ctx, task, s.rejected[task.ID])
	if err != nil || ctx.Err() != nil {
		return err
	}
	took := team.Span(time.Since(began))
	delete(s.rejected, task.ID)
	if failure == "" {
		_, err = s.team.Do(ctx, &team.CompleteTask{Task: task.ID, Fence: task.Fence, Result: output})
		switch code := team.CodeOf(err); {
		case err == nil:
			return s.report(ctx, fmt.Sprintf("Task %s is done; its command took %s.", titled(task), took))
		case code == team.Rejected:
			failure = err.Error()
			s.rejected[task.ID] = failure
		case code == team.NotReady || code == team.TooLarge:
			failure = err.Error()
		default:
			return s.lost(ctx, task, err)
		}
	}
	return s.settle(ctx, task, &team.FailTask{Task: task.ID, Fence: task.Fence, Reason: failure, Result: output},
		fmt.Sprintf("Task %s failed; its command took %s: %s", titled(task), took, failure))
}

func (s *session) settle(ctx context.Context, task team.Task, body team.Body, report string) error {
	if _, err := s.team.Do(ctx, body); err != nil {
		return s.lost(ctx, task, err)
	}
	return s.report(ctx, report)
}

// lost returns nil for a claim that the team has taken away, which is no error of the session, and
// other errors unchanged.
func (s *session) lost(ctx context.Context, task team.Task, err error) error {
	if code := team.CodeOf(err); code != "" {
		s.say(ctx, agent.Text{Text: fmt.Sprintf("task %s: %v", task.Called(), err)})
		return nil
	}
	return err
}

// report sends a message to a lead that is a person, or a program of theirs. The team itself
// notifies an agent.
func (s *session) report(ctx context.Context, text string) error {
	hosted := false
	s.team.View(func(st *team.State) {
		lead, _ := st.Member(s.spec.Lead)
		hosted = lead.Agent != team.External
	})
	if hosted {
		return nil
	}
	_, err := s.team.Do(ctx, &team.SendMessage{To: s.spec.Lead, Intent: "info", Body: text})
	if team.CodeOf(err) != "" {
		return nil
	}
	return err
}

// run runs the command. failure says why the task is not done; err is an error of the session, not
// of the command.
func (s *session) run(ctx context.Context, task team.Task, feedback string) (output, failure string, err error) {
	if strings.TrimSpace(task.Run) == "" {
		return "", "the task has no command, and a shell teammate only runs commands", nil
	}
	timeout := s.agent.Timeout
	if task.Timeout > 0 {
		timeout = task.Timeout
	}
	results, err := s.results(task)
	if err != nil {
		return "", "", err
	}
	defer os.RemoveAll(results)

	running, end := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("timed out after %s", team.Span(timeout)))
	defer end()
	running, interrupt := context.WithCancelCause(running)
	defer interrupt(nil)
	s.mu.Lock()
	s.interrupt = interrupt
	s.mu.Unlock()

	use := task.ID + "/" + strconv.FormatInt(task.Fence, 10)
	s.say(ctx, agent.ToolStarted{ID: use, Tool: "sh", Input: task.Run})
	ended := agent.ToolFinished{ID: use, Failed: true}
	defer func() { s.say(ctx, ended) }()
	dir := s.spec.Dir
	if s.spec.Where != nil {
		var done func()
		if dir, done, err = s.spec.Where(running, task); err != nil {
			if ctx.Err() != nil {
				return "", "", ctx.Err()
			}
			ended.Output = err.Error()
			return "", err.Error(), nil
		}
		defer done()
	}
	if task.Dir != "" {
		if dir, err = below(dir, task.Dir); err != nil {
			ended.Output = err.Error()
			return "", err.Error(), nil
		}
	}
	printed := newOutput(s.agent.Output)
	showing, hide := context.WithCancel(ctx)
	defer hide()
	var shows sync.WaitGroup
	shows.Go(func() { s.show(showing, use, printed) })
	exit, err := s.execute(running, proc.Cmd{
		Args: []string{"/bin/sh", "-c", task.Run}, Dir: dir, Env: s.environment(task, results, feedback),
		Stdout: printed, Stderr: printed, Member: s.spec.Member, Task: task.ID,
	})
	hide()
	shows.Wait()
	output = printed.String()
	switch {
	case running.Err() != nil && ctx.Err() == nil:
		failure, err = context.Cause(running).Error(), nil
	case errors.Is(err, proc.ErrLeft):
		failure, err = err.Error(), nil
	case err == nil && exit.Code != 0:
		failure = exit.String()
	}
	ended.Failed = failure != "" || err != nil || ctx.Err() != nil
	ended.Output, ended.Lines = output, printed.Lines()
	said := ""
	switch { // a command that was ended did not do its work
	case ctx.Err() != nil:
		said = "The command was ended."
	case running.Err() != nil:
		said = "The command was ended: " + failure
	case failure != "":
		said = failure
	}
	if said != "" {
		ended.Output = said
		if printed := strings.TrimRight(output, " \t\r\n"); printed != "" {
			ended.Output = printed + "\n" + said
		}
		ended.Lines++
	}
	return output, failure, err
}

// execute runs the command until it ends or ctx does; none of its processes is left then.
func (s *session) execute(ctx context.Context, cmd proc.Cmd) (proc.Exit, error) {
	child, err := s.spec.Procs.Start(cmd)
	if err != nil {
		return proc.Exit{}, err
	}
	exit, err := child.Wait(ctx)
	if ctx.Err() == nil || err == nil || errors.Is(err, proc.ErrLeft) {
		return exit, err
	}
	return exit, errors.Join(ctx.Err(), child.Stop(s.hurry, s.agent.Ladder))
}

func (s *session) environment(task team.Task, results, feedback string) []string {
	env := slices.Concat(os.Environ(), s.spec.Env, task.Env, s.spec.Identity())
	env = append(env, "CADRE_TASK_ID="+task.ID, "CADRE_TASK_NAME="+task.Name,
		"CADRE_TASK_SUBJECT="+oneLine(task.Subject), "CADRE_RESULTS="+results,
		"CADRE_FAILED_TASKS="+strings.Join(s.failed(task), ","))
	if feedback != "" {
		env = append(env, "CADRE_FEEDBACK="+feedback[:min(len(feedback), 32<<10)])
	}
	return env
}

// below returns the directory of a task's command. It stays below the one that its member works in,
// wherever links lead.
func below(dir, task string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	at, err := root.Stat(task)
	if failed, is := errors.AsType[*fs.PathError](err); is {
		err = failed.Err // it begins with the name of a system call
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("the directory of the task does not exist: %s", task)
	case err != nil:
		return "", fmt.Errorf("the directory of the task cannot be used: %s: %w", task, err)
	case !at.IsDir():
		return "", fmt.Errorf("the directory of the task cannot be used: %s is not a directory", task)
	}
	return filepath.Join(dir, task), nil
}

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, s)
}

// failed returns what the failed tasks are called that this one waited for, directly or through
// other tasks, in the order of the list.
func (s *session) failed(task team.Task) (names []string) {
	s.team.View(func(st *team.State) {
		seen := map[string]bool{}
		for open := task.BlockedBy; len(open) > 0; {
			before, ok := st.Task(open[0])
			open = open[1:]
			if !ok || seen[before.ID] {
				continue
			}
			seen[before.ID] = true
			open = slices.Concat(open, before.BlockedBy)
		}
		for t := range st.OutOfRetries() {
			if seen[t.ID] {
				names = append(names, t.Called())
			}
		}
	})
	return names
}

// results writes the results of the tasks that this one depends on.
func (s *session) results(task team.Task) (string, error) {
	files := map[string]string{}
	s.team.View(func(st *team.State) {
		for _, id := range task.BlockedBy {
			if before, ok := st.Task(id); ok && before.Status == team.Completed {
				files[fileName(before)] = before.Result
			}
		}
	})
	if err := os.MkdirAll(s.spec.Scratch, 0o700); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(s.spec.Scratch, "results-")
	if err != nil {
		return "", err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			os.RemoveAll(dir)
			return "", err
		}
	}
	return dir, nil
}

// titled names the task with its subject.
func titled(t team.Task) string {
	if t.Subject == t.Name {
		return t.Name
	}
	return t.Called() + " (" + t.Subject + ")"
}

// fileName returns a name of the task that can name a file. A task from before tasks had names may
// have the id that it has in its team file.
func fileName(t team.Task) string {
	if t.Name != "" {
		return t.Name + ".md"
	}
	if id, err := strconv.Unquote(string(t.Metadata[team.FileIDKey])); err == nil && id != "" && filepath.IsLocal(id) &&
		!strings.ContainsAny(id, `/\`) {
		return id + ".md"
	}
	return t.ID + ".md"
}
