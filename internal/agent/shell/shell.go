// Package shell is the agent that needs no model: it takes tasks from the list and runs their
// commands.
//
// Its session is one of package worker, which has its states.
//
// # A command
//
// /bin/sh runs the command in the team's directory, with the environment of cadre and the variables
// of every session. CADRE_TASK_ID, CADRE_TASK_NAME and CADRE_TASK_SUBJECT say which task it is,
// CADRE_RESULTS, CADRE_RESULT_… and CADRE_FAILED_TASKS what became of the tasks that it waited
// for, CADRE_ITEM for which item of a task with forEach it is, and CADRE_FEEDBACK why the last
// result of the task was rejected. docs/environment.md describes them.
//
// Exit status 0 completes the task. Its result is what the command printed, standard output and
// error together; of a long output, the beginning and the end. Any other status fails the task,
// with the output kept. Either way, the lead gets one line. Viewers see the end of the output while
// the command runs; it never waits for them.
package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/worker"
	"cadre/internal/sys/paths"
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
	return worker.Start(spec, its, worker.Work{Its: "its command",
		Do: func(ctx context.Context, s *worker.Session, task team.Task, feedback string) (string, string, error) {
			return session{s, a}.run(ctx, task, feedback)
		}}), nil
}

func errOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// session runs the commands of one session's tasks.
type session struct {
	*worker.Session
	agent Agent
}

// run runs the command of a task. failure says why the task is not done; err is an error of the
// session, not of the command.
func (s session) run(ctx context.Context, task team.Task, feedback string) (output, failure string, err error) {
	if strings.TrimSpace(task.Run) == "" {
		return "", "the task has no command, and a shell teammate only runs commands", nil
	}
	timeout := cmp.Or(max(0, task.Timeout), s.agent.Timeout)
	results, err := s.results(task)
	if err != nil {
		return "", "", err
	}
	defer os.RemoveAll(results)

	running, end := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("timed out after %s", team.Span(timeout)))
	defer end()
	running, interrupt := context.WithCancelCause(running)
	defer interrupt(nil)
	if s.Arm(interrupt); running.Err() != nil && ctx.Err() == nil {
		return "", context.Cause(running).Error(), nil
	}
	use := task.ID + "/" + strconv.FormatInt(task.Fence, 10)
	s.Say(ctx, agent.ToolStarted{ID: use, Tool: "sh", Input: task.Run})
	printed := newOutput(s.agent.Output)
	one := attempt{session: s, task: task, use: use, output: printed, running: running}
	started, failure, err := one.perform(ctx, s.environment(task, results, feedback))
	ended := agent.ToolFinished{ID: use, Output: printed.String(), Lines: printed.Lines(),
		Failed: failure != "" || err != nil || ctx.Err() != nil}
	switch { // a command that was ended did not do its work
	case !started:
		addWords(&ended, cmp.Or(failure, "The command was not started."))
	case ctx.Err() != nil:
		addWords(&ended, "The command was ended.")
	case running.Err() != nil:
		addWords(&ended, "The command was ended: "+failure)
	case failure != "":
		addWords(&ended, failure)
	}
	s.Say(ctx, ended)
	return printed.String(), failure, err
}

// attempt is one run of the command of a task.
type attempt struct {
	session
	task    team.Task
	use     string // the tool use as which the session shows it
	output  *output
	running context.Context // ends with the time of the attempt, with an interrupt, and with the session
}

// perform runs the command in the directory of its task until a.running ends, and shows what it
// prints. It reports whether the command started. ctx is of the session.
func (a attempt) perform(ctx context.Context, env []string) (started bool, failure string, err error) {
	dir, leave, err := a.place(a.running, a.task)
	defer leave()
	if err != nil {
		if ctx.Err() != nil {
			return false, "", ctx.Err()
		}
		return false, cmp.Or(context.Cause(a.running), err).Error(), nil
	}
	hide := a.showing(ctx, a.use, a.output)
	child, err := a.Spec.Procs.Start(proc.Cmd{
		Args: []string{"/bin/sh", "-c", a.task.Run}, Dir: dir, Env: env,
		Stdout: a.output, Stderr: a.output, Member: a.Spec.Member, Task: a.task.ID,
	})
	started = err == nil
	var exit proc.Exit
	if started {
		exit, err = a.await(a.running, child)
	}
	hide()
	switch {
	case a.running.Err() != nil && ctx.Err() == nil:
		return started, context.Cause(a.running).Error(), nil
	case errors.Is(err, proc.ErrLeft):
		return started, err.Error(), nil
	case err == nil && exit.Code != 0:
		return started, exit.String(), nil
	}
	return started, "", err
}

// addWords adds the words to the output, as its last line.
func addWords(to *agent.ToolFinished, words string) {
	if printed := strings.TrimRight(to.Output, " \t\r\n"); printed != "" {
		words = printed + "\n" + words
	}
	to.Output, to.Lines = words, to.Lines+1
}

// place returns the directory in which the command of a task runs. leave must be called afterwards,
// also after an error.
func (s session) place(ctx context.Context, task team.Task) (dir string, leave func(), err error) {
	dir, leave = s.Spec.Dir, func() {}
	if s.Spec.Where != nil {
		var done func()
		if dir, done, err = s.Spec.Where(ctx, task); err != nil {
			return "", leave, err
		}
		leave = done
	}
	if task.Dir != "" {
		dir, err = paths.Below(dir, task.Dir)
	}
	return dir, leave, err
}

// await waits until the command ends or ctx does; none of its processes is left then.
func (s session) await(ctx context.Context, child *proc.Child) (proc.Exit, error) {
	exit, err := child.Wait(ctx)
	if ctx.Err() == nil || err == nil || errors.Is(err, proc.ErrLeft) {
		return exit, err
	}
	return exit, errors.Join(ctx.Err(), child.Stop(s.Hurry, s.agent.Ladder))
}
