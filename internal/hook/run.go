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
	"cadre/internal/team"
)

// keepOutput is how much is kept of each end of a command's output. A model reads the feedback, and
// each byte costs.
const keepOutput = 16 << 10

// Runner runs the hooks of one project. It may be used from several goroutines.
type Runner struct {
	Config   *Config
	Trust    Trust
	Children *proc.Register // starts the commands
}

// Verdict is the combined answer of the hooks.
type Verdict struct {
	Rejected bool
	Feedback string // the reason, worded for the agent that has to act on it; only with Rejected
	// a hook answered {"continue": false}: the teammate is to stop, so no hook keeps it working
	// when it goes idle
	Stop   bool
	Reason string   // the reason that this hook gave, may be empty
	Notes  []string // for the log: hooks that failed or timed out
	// why hooks of the project were skipped: the user has to trust them first
	Untrusted []string
	Ran       int // how many commands were started
}

// Run runs every hook for the event, one after the other, in the project's folder. The error is
// ctx's, or reports an event that is not valid. A failed hook is not an error: it becomes a note in
// the verdict, and counts as allowed.
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
		result := r.start(ctx, h, event, input, env)
		if ctx.Err() != nil {
			return Verdict{}, fmt.Errorf("%s hook [%s]: %w", event.Name, h.Command, context.Cause(ctx))
		}
		a := judge(h, result)
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

// allowed returns the event's hooks that are not switched off, without the untrusted ones. It adds
// a note for each untrusted one.
func (r *Runner) allowed(event string, v *Verdict) []Hook {
	var hooks []Hook
	untrusted := false
	for _, h := range r.Config.Hooks {
		if h.Event == event && !h.Off {
			hooks = append(hooks, h)
			untrusted = untrusted || h.Source.NeedsTrust()
		}
	}
	if !untrusted {
		return hooks
	}
	trusted, err := r.Trust.Trusted(r.Config)
	if err != nil {
		v.Untrusted = append(v.Untrusted, err.Error())
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
		v.Untrusted = append(v.Untrusted, fmt.Sprintf("%s hook [%s] of %s was skipped: this project's hooks are not "+
			"trusted yet, or they changed", event, h.Command, h.File))
	}
	return own
}

// answer is what one command answered.
type answer struct {
	rejected, stop bool
	text           string // feedback, or the reason of stop
	notes          []string
}

// start runs the command of the hook and returns what it left.
func (r *Runner) start(ctx context.Context, h Hook, event Event, input []byte, env []string) Result {
	limited, cancel := context.WithTimeout(ctx, h.Limit())
	defer cancel()
	stdout := &proc.Capture{Head: keepOutput, Tail: keepOutput}
	stderr := &proc.Capture{Head: keepOutput, Tail: keepOutput}
	exit, err := r.Children.Run(limited, proc.Cmd{
		Args: []string{"/bin/sh", "-c", h.Command}, Dir: r.Config.Dir, Env: env, Input: input,
		Stdout: stdout, Stderr: stderr, Member: event.Member, Task: event.TaskID, Trusted: true,
	}, proc.Ladder{Term: -1})
	result := Result{ExitCode: exit.Code, Stdout: stdout.String(), Stderr: stderr.String(), Duration: exit.Elapsed}
	if exit.Signal != 0 {
		result.Signal = exit.Signal.String()
	}
	switch {
	case limited.Err() != nil && errors.Is(err, limited.Err()):
		result.TimedOut = true
	case err != nil && !errors.Is(err, proc.ErrLeft):
		result.ExitCode, result.Err = -1, err
	}
	return result
}

// judge reads the answer of a hook from what its command left.
func judge(h Hook, result Result) answer {
	note := func(format string, args ...any) answer {
		return answer{notes: []string{fmt.Sprintf("%s hook [%s] ", h.Event, h.Command) + fmt.Sprintf(format,
			args...) + "; it counts as allowed"}}
	}
	said := strings.TrimSpace(sanitize.Strip(result.Stderr))
	switch {
	case result.TimedOut:
		return note("did not end within %s and was killed", team.Span(h.Limit()))
	case result.Err != nil:
		return note("could not be run: %v", result.Err)
	case result.Signal != "":
		return note("was ended by signal: %s", result.Signal)
	case result.ExitCode == 2:
		if said == "" {
			said = strings.TrimSpace(sanitize.Strip(result.Stdout))
		}
		if said == "" {
			said = "rejected without a reason"
		}
		return answer{rejected: true, text: said}
	case result.ExitCode != 0:
		return note("failed with exit status %d: %s", result.ExitCode, brief(said))
	}
	a, err := decode(result.Stdout)
	if err != nil {
		return note("answered with JSON that cannot be used: %v", err)
	}
	return a
}

// decode reads the answer of a command that exited with 0. Output that does not begin like a JSON
// object is for people, and is ignored.
func decode(stdout string) (answer, error) {
	text := strings.TrimSpace(stdout)
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

// brief shortens an error message to what fits in a line of a log.
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
