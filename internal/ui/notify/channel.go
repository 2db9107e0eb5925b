package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"cadre/internal/render/excerpt"
	"cadre/internal/render/redact"
	"cadre/internal/render/sanitize"
	"cadre/internal/sys/proc"
	"cadre/internal/ui/settings"
)

// Channels returns the channels of the settings. terminal is the terminal in which the process
// runs, or nil. Without it there is no bell and no desktop notification.
func Channels(n settings.Notify, terminal *Terminal) (channels []Channel) {
	if terminal != nil && n.Bell {
		channels = append(channels, Channel{Name: "bell", To: "this terminal", Fleeting: true,
			Terminal: terminal.Device, Send: terminal.Bell})
	}
	if terminal != nil && n.Desktop != settings.NoDesktop {
		channels = append(channels, Channel{Name: "desktop", To: "this terminal", Fleeting: true,
			Terminal: terminal.Device,
			Send:     func(ctx context.Context, f Fact) error { return terminal.Desktop(ctx, n.Desktop, f) }})
	}
	return append(channels, Remote(n)...)
}

// Remote returns the channels that need no terminal.
func Remote(n settings.Notify) (channels []Channel) {
	if n.Command != "" {
		channels = append(channels, Channel{Name: "command", To: n.Command, Send: command(n.Command)})
	}
	if n.Webhook != nil {
		channels = append(channels, Channel{Name: "webhook", To: host(n.Webhook.URL), Send: webhook(*n.Webhook)})
	}
	if n.Ntfy != nil {
		channels = append(channels, Channel{Name: "ntfy", To: host(n.Ntfy.URL), Send: ntfy(*n.Ntfy)})
	}
	return channels
}

// host returns the host of an address. The rest of an address is often secret.
func host(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Host
	}
	return ""
}

// keepOutput is how much of a command's output an error quotes.
const keepOutput = 400

// command returns a channel that runs a command. The command gets the fact on its standard input as
// JSON, and in its environment.
func command(line string) func(context.Context, Fact) error {
	return func(ctx context.Context, f Fact) error {
		input, err := encode(f)
		if err != nil {
			return err
		}
		procs, err := proc.Open("")
		if err != nil {
			return err
		}
		defer procs.Close(context.WithoutCancel(ctx))
		output := &proc.Capture{Head: keepOutput, Tail: keepOutput}
		begun := time.Now()
		exit, err := procs.Run(ctx, proc.Cmd{Args: []string{"/bin/sh", "-c", line}, Input: append(input, '\n'),
			Env: append(os.Environ(), "CADRE_NOTIFY_TITLE="+f.Title(), "CADRE_NOTIFY_TEXT="+f.Text,
				"CADRE_NOTIFY_DO="+f.Do, "CADRE_NOTIFY_KIND="+f.Kind, "CADRE_NOTIFY_TEAM="+f.Team,
				"CADRE_NOTIFY_MEMBER="+f.Member, "CADRE_NOTIFY_TASK="+f.Task),
			Stdout: output, Stderr: output, Trusted: true}, proc.Ladder{Term: -1})
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return fmt.Errorf("the command did not end within %s, and was killed", seconds(time.Since(begun)))
		case ctx.Err() != nil:
			return fmt.Errorf("the command was killed: %w", ctx.Err())
		case err != nil && !errors.Is(err, proc.ErrLeft):
			return err
		case exit.Code != 0 || exit.Signal != 0:
			said := excerpt.Line(sanitize.Lines(output.String()), keepOutput)
			if said != "" {
				said = ": " + said
			}
			return fmt.Errorf("the command failed (%s)%s", exit, said)
		}
		return nil
	}
}

// client follows no redirects.
var client = &http.Client{
	Timeout:       Deadline,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// encode returns the fact as JSON, with its title.
func encode(f Fact) ([]byte, error) {
	return json.Marshal(struct {
		Title string `json:"title"`
		Fact
	}{f.Title(), f})
}

// public returns the fact with likely secrets replaced.
func public(f Fact) Fact {
	f.Text, f.Do = redact.Text(f.Text), redact.Text(f.Do)
	return f
}

// webhook returns a channel that posts the fact as JSON. The header Idempotency-Key holds the
// fact's id.
func webhook(w settings.Webhook) func(context.Context, Fact) error {
	return func(ctx context.Context, f Fact) error {
		f = public(f)
		body, err := encode(f)
		if err != nil {
			return err
		}
		header := http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {f.ID}}
		for name, value := range w.Headers {
			header.Set(name, value)
		}
		return post(ctx, w.URL, header, body)
	}
}

// ntfy returns a channel that publishes to a topic, as https://docs.ntfy.sh/publish/ says.
func ntfy(n settings.Ntfy) func(context.Context, Fact) error {
	return func(ctx context.Context, f Fact) error {
		f = public(f)
		header := http.Header{"Content-Type": {"text/plain; charset=utf-8"}, "Title": {ascii(f.Title())},
			"Priority": {"high"}}
		if f.Kind == Complete || f.Kind == kindTest {
			header.Set("Priority", "default")
		}
		if n.Token != "" {
			header.Set("Authorization", "Bearer "+n.Token)
		}
		return post(ctx, n.URL, header, []byte(f.Body()))
	}
}

// ascii replaces characters that a header must not contain.
func ascii(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
}

// seconds returns a duration in whole seconds, in words.
func seconds(d time.Duration) string {
	n := max(1, int(d.Round(time.Second)/time.Second))
	if n == 1 {
		return "1 second"
	}
	return strconv.Itoa(n) + " seconds"
}

// post sends the body. Its errors name only the host, because an address may contain a secret.
func post(ctx context.Context, address string, header http.Header, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return errors.New("the address in the settings cannot be used")
	}
	request.Header = header
	begun := time.Now()
	answer, err := client.Do(request)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			if failed.Timeout() {
				return fmt.Errorf("%s did not answer within %s", request.URL.Host, seconds(time.Since(begun)))
			}
			err = failed.Err
		}
		return fmt.Errorf("%s cannot be reached: %w", request.URL.Host, err)
	}
	defer answer.Body.Close()
	defer io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10))
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		why := ""
		if to := answer.Header.Get("Location"); to != "" {
			why = "; redirects are not followed"
		}
		return fmt.Errorf("%s answered %s%s", request.URL.Host, sanitize.Line(answer.Status), why)
	}
	return nil
}
