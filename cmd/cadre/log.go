package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/inspect/history"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// logging has the options of one call of cadre log.
type logging struct {
	*app
	follow bool
	after  int64
	since  string
	filter history.Filter
	folder render.Folder
	last   int            // print at most this many earlier lines; 0 for all
	held   []render.Entry // the last earlier lines, if last is set
	shown  bool           // something was printed, as JSON
}

func (a *app) logCommand() *cobra.Command {
	l := &logging{app: a}
	c := a.looking(0, &cobra.Command{
		Use: "log [TEAM]", Short: "Show the history of a team",
		Long: "Show the history of a team, the oldest record first. --member, --kind and --since select events, and " +
			"-n the last lines of those.\nWith --follow it shows new records as they come, until the team has " +
			"ended or you interrupt it. Delivered and read messages that\nfollow each other are one line. With " +
			"--json it prints an array of records, or with --follow one record a line. If the history cannot be read " +
			"to its end, the last\nelement of the array is the error.",
		Example: "  cadre log my-team --member ann --kind task\n  cadre log my-team --since 10m --follow",
	}, func(c *cobra.Command, d *engine.Team, _ []string) (err error) {
		if l.filter.Since, err = parseSince(l.since, time.Now()); err != nil {
			return usage{err}
		}
		if err := l.filter.Check(); err != nil {
			return err
		}
		if err := l.known(d); err != nil {
			return err
		}
		stays()
		ctx := c.Context()
		if l.follow {
			ctx = l.whileRead(ctx)
		}
		return l.show(ctx, d)
	})
	f := c.Flags()
	f.BoolVarP(&l.follow, "follow", "f", false, "show new records as they come")
	f.Int64Var(&l.after, "after", 0, "begin after the record with this number")
	f.IntVarP(&l.filter.Last, "lines", "n", 0, "only the last lines, or records with --json; 0 for all")
	f.StringVar(&l.since, "since", "",
		"begin at this time: 10m, 2h (before now), 15:04 (today), 2006-01-02, or RFC 3339")
	f.StringSliceVar(&l.filter.Members, "member", nil, "only what these members did, or what names them")
	f.StringSliceVar(&l.filter.Kinds, "kind", nil,
		"only events of these kinds: task, message, member, task_completed, ...")
	return c
}

// known refuses members that the team never had. Actors that are not members, such as @user, have a
// name with a mark.
func (l *logging) known(d *engine.Team) (err error) {
	d.View(func(s *team.State) {
		for _, name := range l.filter.Members {
			if _, unknown := s.Named(name); unknown != nil && !strings.HasPrefix(name, "@") {
				err = unknown
			}
		}
	})
	return err
}

// show prints the history, and with --follow new records as they come.
func (l *logging) show(ctx context.Context, d *engine.Team) error {
	l.folder.Called = func(id string) (name string) {
		d.View(func(s *team.State) { name = s.Called(id) })
		return name
	}
	if l.json && !l.follow {
		l.out.Printf("[")
	}
	if !l.json { // a person counts lines, and several records may be one
		l.last, l.filter.Last = l.filter.Last, 0
	}
	seq := l.after
	l.filter.Track() // also for later records
	if l.after > 0 && len(l.filter.Members) > 0 {
		for r, err := range d.Read(ctx, 0) {
			if err != nil || r.Seq > l.after {
				break
			}
			l.filter.Part(r)
		}
	}
	read := func(yield func(*team.Record, error) bool) {
		for r, err := range d.Read(ctx, l.after) {
			if r != nil {
				seq = r.Seq
			}
			if !yield(r, err) {
				return
			}
		}
	}
	for r, err := range l.filter.Select(read) {
		if err != nil {
			return l.breaks(err)
		}
		if err := l.record(r); err != nil {
			return err
		}
	}
	if err := l.lines(l.folder.Rest()); err != nil {
		return err
	}
	l.last = 0
	if err := l.lines(l.held); err != nil {
		return err
	}
	if !l.follow {
		if l.json {
			l.out.Printf("]\n")
		}
		return nil
	}
	return l.watch(ctx, d, seq)
}

// breaks ends the output of a history that cannot be read completely, and returns err. For JSON,
// the error is the last element, so that the array stays complete.
func (l *logging) breaks(err error) error {
	if !l.json || l.follow {
		return err
	}
	out, wrong := json.Marshal(failed{failureOf(err)})
	if wrong != nil {
		return errors.Join(err, wrong)
	}
	if l.shown {
		out = append([]byte(","), out...)
	}
	_, wrong = l.out.JSON().Write(append(out, "]\n"...))
	return errors.Join(err, wrong)
}

// watch prints records after seq until the team has ended.
func (l *logging) watch(ctx context.Context, d *engine.Team, seq int64) error {
	ended := func() bool { of := d.Team(); return of.Ended() }
	if d.Refresh(ctx); ended() && d.Seq() <= seq {
		return nil
	}
	for r, err := range d.Follow(ctx, seq) {
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if part := l.filter.Part(r); part != nil {
			if err := l.record(part); err != nil {
				return err
			}
		}
		if r.Seq >= d.Seq() {
			d.Refresh(ctx)
		}
		if r.Seq < d.Seq() {
			continue
		}
		if err := l.lines(l.folder.Rest()); err != nil {
			return err
		}
		if ended() {
			return nil
		}
	}
	return nil
}

// record prints one record: as JSON, or as the lines that it completes.
func (l *logging) record(r *team.Record) error {
	if !l.json {
		return l.lines(l.folder.Add(r))
	}
	if l.follow {
		return l.out.Value(r)
	}
	out, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if l.shown {
		out = append([]byte(","), out...)
	}
	l.shown = true
	_, err = l.out.JSON().Write(out)
	return err
}

// lines prints the lines, or buffers them if only the last ones are wanted.
func (l *logging) lines(lines []render.Entry) error {
	if l.last == 0 {
		return writeLines(l.out.Writer, lines)
	}
	l.held = append(l.held, lines...)
	l.held = l.held[max(0, len(l.held)-l.last):]
	return nil
}

// writeLines prints lines of a history: the number of the record, its time, and what happened. Only
// the first line of a record has the number.
func writeLines(w *sanitize.Writer, lines []render.Entry) error {
	now := team.Time(time.Now().UnixMilli())
	last := int64(0)
	for _, line := range lines {
		number := ""
		if line.Seq != last {
			number = fmt.Sprint(line.Seq)
		}
		last = line.Seq
		at := render.When(now, line.At)
		begins := len("   123  ") + len(at) + 2
		if err := w.Printf("%s  %s  %s\n", render.Faint.On(fmt.Sprintf("%6s", number)), render.Faint.On(at),
			sanitize.Hanging{Text: line.Text, At: begins, Indent: min(begins, len("   123  ")+10)}); err != nil {
			return err
		}
	}
	return nil
}

// parseSince parses a time: a duration before now, a time of today, a day, or RFC 3339. Without
// text it returns 0, the beginning.
func parseSince(text string, now time.Time) (team.Time, error) {
	if text = strings.TrimSpace(text); text == "" {
		return 0, nil
	}
	if before, err := time.ParseDuration(text); err == nil && before >= 0 {
		return team.Time(now.Add(-before).UnixMilli()), nil
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			y, m, d := now.Date()
			return team.Time(time.Date(y, m, d, at.Hour(), at.Minute(), at.Second(), 0,
				now.Location()).UnixMilli()), nil
		}
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02 15:04", time.DateTime, time.RFC3339} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return team.Time(at.UnixMilli()), nil
		}
	}
	return 0, fmt.Errorf("--since %q is not a time; pass a duration such as 10m, a time of today such as 15:04, a day "+
		"such as 2006-01-02, or RFC 3339", text)
}
