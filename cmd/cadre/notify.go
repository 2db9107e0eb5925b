package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/render/sanitize"
	"cadre/internal/team"
	"cadre/internal/ui/notify"
	"cadre/internal/ui/presence"
	"cadre/internal/ui/settings"
)

func (a *app) notifyCommand() *cobra.Command {
	var test, watch bool
	c := &cobra.Command{
		Use: "notify", Short: "Show or try how you are notified", Args: exactly(0),
		Long: `Show the ways in which you are notified when a team needs you, is done, or is dead. They are in
settings.json in the folder of the teams:

  {"notify": {
    "bell": true,
    "desktop": "auto",
    "command": "notify-send \"$CADRE_NOTIFY_TITLE\" \"$CADRE_NOTIFY_TEXT\"",
    "webhook": {"url": "https://example.com/hook", "headers": {"Authorization": "Bearer TOKEN"}},
    "ntfy":    {"url": "https://ntfy.sh/TOPIC", "token": "TOKEN"}
  }}

bell and desktop use each terminal in which cadre run or cadre watch works; desktop is auto, osc9, osc777 or osc99. The
others also work without a terminal: any cadre run, cadre watch and background host sends them. Where no such process
is alive, cadre notify --watch does, for example as a service.

You are notified once of each thing that cadre attention lists for you, and once of the end of a team. Nothing is sent
anywhere that is not in the file.

Exit status 0: shown; with --test, every notification was sent. 1: one was not, or no channel is set. 2: the
file has a mistake.`,
		RunE: func(c *cobra.Command, _ []string) error {
			s, _, err := a.settings()
			if err != nil {
				return usage{err}
			}
			terminal := notify.OpenTerminal()
			defer terminal.Close()
			switch {
			case test && watch:
				return usage{errors.New("--test sends once, and --watch stays; use one of them")}
			case watch:
				if len(notify.Remote(s.Notify)) == 0 && (terminal == nil ||
					len(notify.Channels(s.Notify, terminal)) == 0) {
					return usage{errors.New("there is nothing to notify by; set notify in " +
						settings.File(a.home.Root))}
				}
				stays()
				a.shared.LogTo(a.note)
				return a.notifyUntil(c.Context(), terminal, a.note)
			}
			return a.showChannels(c.Context(), s.Notify, terminal, test)
		},
	}
	c.Flags().BoolVar(&test, "test", false, "send a notification in each way now")
	c.Flags().BoolVar(&watch, "watch", false, "notify until you end it")
	return c
}

// settings returns the settings of the home, and when they were written.
func (a *app) settings() (s settings.Settings, written time.Time, err error) {
	path := settings.File(a.home.Root)
	if info, err := os.Stat(path); err == nil { // before it is read, so that no later change is missed
		written = info.ModTime()
	}
	s, err = settings.Load(path)
	return s, written, err
}

// channel is one way to notify a person.
type channel struct {
	Name  string `json:"name"`            // bell, desktop, command, webhook or ntfy
	To    string `json:"to"`              // the command, or the host that gets the notification
	Sent  bool   `json:"sent"`            // with --test, it was sent
	Error string `json:"error,omitempty"` // why it was not sent
}

// showChannels lists the channels. If test is set, it sends a notification through each.
func (a *app) showChannels(ctx context.Context, n settings.Notify, terminal *notify.Terminal, test bool) error {
	all := []channel{}
	if terminal == nil {
		for _, c := range notify.Channels(n, &notify.Terminal{}) {
			if c.Fleeting {
				all = append(all, channel{Name: c.Name, To: "a terminal, which this process does not have"})
			}
		}
	}
	channels, failed := notify.Channels(n, terminal), false
	for _, c := range channels {
		one := channel{Name: c.Name, To: c.To}
		if test {
			sending, cancel := context.WithTimeout(ctx, notify.Deadline)
			err := c.Send(sending, notify.Test(now()))
			cancel()
			if one.Sent = err == nil; err != nil {
				one.Error, failed = err.Error(), true
			}
		}
		all = append(all, one)
	}
	if test && len(channels) == 0 {
		why := settings.File(a.home.Root) + " sets no channel"
		if len(all) > 0 {
			why = "the channels need a terminal, which this process does not have"
		}
		return withWays(team.Refuse(team.Nothing, "nothing was sent: %s", why),
			way{"see what to put into it", "cadre notify --help"})
	}
	err := a.print(all, func(w *sanitize.Writer) error {
		if len(all) == 0 {
			return said("You are not notified. cadre notify --help says what to put into %s.",
				settings.File(a.home.Root))(w)
		}
		return writeChannels(w, all)
	})
	if err == nil && failed {
		err = exit(tryAgain)
	}
	return err
}

// writeChannels writes where each channel leads, and what became of a test.
func writeChannels(w *sanitize.Writer, all []channel) error {
	const indent = len("x command  ") // the longest name
	for _, c := range all {
		sign, to := "·", c.To
		switch {
		case c.Error != "":
			sign = "✗"
		case c.Sent:
			sign, to = "✓", to+": sent"
		}
		err := w.Printf("%s %-7s  %s\n", sign, c.Name, sanitize.Hanging{Text: to, At: indent, Indent: indent})
		if c.Error != "" {
			err = errors.Join(err, w.Printf("%*s%s\n", indent, "",
				sanitize.Hanging{Text: c.Error, At: indent, Indent: indent}))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// notifies notifies the person while a long command works, as the settings say. The caller calls
// end when the command is done; what is due then is still sent.
func (a *app) notifies(ctx context.Context, note func(string)) (end func()) {
	a.shared.LogTo(note)
	if !a.who.IsUser() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		terminal := notify.OpenTerminal()
		defer terminal.Close()
		if err := a.notifyUntil(ctx, terminal, note); err != nil {
			note("No notification can be sent: " + err.Error())
		}
	}()
	return func() { cancel(); <-ended }
}

const (
	// notifyPace is the longest time between two checks of the processes of teams.
	notifyPace = 5 * time.Second
	// settingsPace is the time between two checks of the settings.
	settingsPace = 2 * time.Second
)

// notifyUntil notifies the person until ctx ends. It follows changes of the settings.
func (a *app) notifyUntil(ctx context.Context, terminal *notify.Terminal, note func(string)) error {
	for first := true; first || ctx.Err() == nil; first = false { // also where the command has ended already
		s, written, err := a.settings()
		if err != nil {
			note("No notification can be sent: " + err.Error())
		}
		during, changed := context.WithCancelCause(ctx)
		go a.settingsChange(during, written, changed)
		channels := notify.Channels(s.Notify, terminal)
		if len(channels) == 0 {
			<-during.Done()
		} else if err := a.notifyBy(during, channels, written, note); err != nil {
			changed(nil)
			return err
		}
		changed(nil)
	}
	return nil
}

// settingsChange calls changed when the settings were written at another time, or until ctx ends.
func (a *app) settingsChange(ctx context.Context, written time.Time, changed context.CancelCauseFunc) {
	every := time.NewTicker(settingsPace)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		now := time.Time{}
		if info, err := os.Stat(settings.File(a.home.Root)); err == nil {
			now = info.ModTime()
		}
		if !now.Equal(written) {
			changed(notify.ErrChanged)
			return
		}
	}
}

// notifyBy notifies the person through the channels until ctx ends.
func (a *app) notifyBy(ctx context.Context, channels []notify.Channel, written time.Time, note func(string)) error {
	follow := a.sharing().Attention("")
	follow.Pace, follow.Log = notifyPace, note
	return notify.Run(ctx, notify.Options{Folder: filepath.Join(a.home.Root, "notified"), Written: written,
		Channels: channels, Follow: follow,
		Log: note,
		Looks: func() func(notify.Fact) bool {
			shown := presence.Read(ctx, a.home.Root, now())
			return func(f notify.Fact) bool { return shown.Seen(f.Team, f.TeamID, f.Member) }
		}})
}
