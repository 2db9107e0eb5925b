package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"cadre/internal/render/excerpt"
	"cadre/internal/render/sanitize"
	"cadre/internal/sys/proc"
)

// keepOutput is how much of either end of a command's output is kept. Feedback is read by a model,
// which pays by the byte.
const keepOutput = 16 << 10

// Runner runs the hooks of one project. It may be used from several goroutines.
type Runner struct {
	Config   *Config
	Trust    Trust
	Children *proc.Register // starts the commands
}

// Verdict is what the hooks say together.
type Verdict struct {
	Rejected bool
	Feedback string // why, worded for the agent that is to act on it; only with Rejected
	// a hook answered {"continue": false}: the teammate is to stop, so an idle one is not kept
	// working
	Stop   bool
	Reason string   // what that hook gave as its reason, may be empty
	Notes  []string // for the log: hooks that failed, timed out or were skipped
	Ran    int      // how many commands were started
}

// Run asks every hook for the event, one after the other. The error is ctx's, or says that the
// event is none; whatever is wrong with a hook is a note in the verdict and allows. Commands run in
// the project's folder.
func (r *Runner) Run(ctx context.Context, event Event) (Verdict, error) {
	var v Verdict
	check := Hook{Event: event.Name, Command: "any"}
	if err := check.validate(); err != nil {
		return v, err
	}
	hooks := r.allowed(event.Name, &v)
	if len(hooks) == 0 {
		return v, nil
	}
	input, err := event.input(r.Config.Dir)
	if err != nil {
		return v, fmt.Errorf("write the event for a hook: %w", err)
	}
	env := event.environment(r.Config.Dir)
	var feedback []string
	for _, h := range hooks {
		a := r.ask(ctx, h, event, input, env)
		if ctx.Err() != nil {
			return Verdict{}, fmt.Errorf("%s hook [%s]: %w", event.Name, h.Command, context.Cause(ctx))
		}
		v.Ran++
		v.Notes = append(v.Notes, a.notes...)
		if a.rejected {
			feedback = append(feedback, fmt.Sprintf("[%s]: %s", h.Command, a.text))
		}
		if a.stop {
			v.Stop, v.Reason = true, a.text
		}
	}
	if v.Stop && event.Name == TeammateIdle {
		return v, nil
	}
	if len(feedback) > 0 {
		v.Rejected = true
		v.Feedback = event.Name + " hook feedback:\n" + strings.Join(feedback, "\n")
	}
	return v, nil
}

// allowed returns the event's hooks without those that wait for trust, and notes that.
func (r *Runner) allowed(event string, v *Verdict) []Hook {
	var hooks []Hook
	untrusted := false
	for _, h := range r.Config.Hooks {
		if h.Event == event {
			hooks = append(hooks, h)
			untrusted = untrusted || h.Source.NeedsTrust()
		}
	}
	if !untrusted {
		return hooks
	}
	trusted, err := r.Trust.Trusted(r.Config)
	if err != nil {
		v.Notes = append(v.Notes, err.Error())
	}
	if trusted {
		return hooks
	}
	own := hooks[:0]
	for _, h := range hooks {
		if !h.Source.NeedsTrust() {
			own = append(own, h)
			continue
		}
		v.Notes = append(v.Notes, fmt.Sprintf("%s hook [%s] of %s was skipped: this project's hooks are not trusted, "+
			"or changed since; read them, then run `cadre trust` in %s", event, h.Command, h.File, r.Config.Dir))
	}
	return own
}

// answer is what one command says.
type answer struct {
	rejected, stop bool
	text           string // feedback, or the reason of stop
	notes          []string
}

func (r *Runner) ask(ctx context.Context, h Hook, event Event, input []byte, env []string) answer {
	note := func(format string, args ...any) answer {
		return answer{notes: []string{fmt.Sprintf("%s hook [%s] ", event.Name, h.Command) + fmt.Sprintf(format,
			args...) + "; it counts as allowed"}}
	}
	if h.Timeout == 0 {
		h.Timeout = DefaultTimeout
	}
	limited, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	stdout := &proc.Capture{Head: keepOutput, Tail: keepOutput}
	stderr := &proc.Capture{Head: keepOutput, Tail: keepOutput}
	exit, err := r.Children.Run(limited, proc.Cmd{
		Args: []string{"/bin/sh", "-c", h.Command}, Dir: r.Config.Dir, Env: env, Input: input,
		Stdout: stdout, Stderr: stderr, Member: event.Member, Task: event.TaskID, Trusted: true,
	}, proc.Ladder{Term: -1})
	switch {
	case limited.Err() != nil && errors.Is(err, limited.Err()):
		return note("did not end within %v and was killed", h.Timeout)
	case err != nil && !errors.Is(err, proc.ErrLeft):
		return note("could not be run: %v", err)
	}

	said := strings.TrimSpace(sanitize.Strip(stderr.String()))
	switch {
	case exit.Signal != 0:
		return note("was %v", exit)
	case exit.Code == 2:
		if said == "" {
			said = strings.TrimSpace(sanitize.Strip(stdout.String()))
		}
		if said == "" {
			said = "rejected without a word"
		}
		return answer{rejected: true, text: said}
	case exit.Code != 0:
		return note("failed with %v: %s", exit, brief(said))
	}
	a, err := decode(stdout)
	if err != nil {
		return note("answered with JSON that cannot be used: %v", err)
	}
	return a
}

// decode reads the answer of a command that exited with 0. Output that does not begin like an
// object is meant for people.
func decode(stdout *proc.Capture) (answer, error) {
	text := strings.TrimSpace(stdout.String())
	if !strings.HasPrefix(text, "{") {
		return answer{}, nil
	}
	var said struct {
		Decision   string `json:"decision"`
		Reason     string `json:"reason"`
		Continue   *bool  `json:"continue"`
		StopReason string `json:"stopReason"`
	}
	if err := json.Unmarshal([]byte(text), &said); err != nil {
		return answer{}, err
	}
	var a answer
	if said.Decision == "block" {
		a.rejected, a.text = true, said.Reason
		if a.text == "" {
			a.text = "rejected without a reason"
		}
	}
	if said.Continue != nil && !*said.Continue {
		a.stop = true
		if said.StopReason != "" && !a.rejected {
			a.text = said.StopReason
		}
	}
	return a, nil
}

// brief is enough of an error message for a line in a log.
func brief(text string) string {
	const enough = 200
	if text == "" {
		return "no message"
	}
	line, _, more := strings.Cut(text, "\n")
	if len(line) > enough || !more {
		return excerpt.Bytes(line, enough, " …")
	}
	return line + " …"
}
