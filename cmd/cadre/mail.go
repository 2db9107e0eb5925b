package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/inspect/history"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// text returns the message of an argument; - stands for standard input.
func text(c *cobra.Command, arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	in, err := io.ReadAll(io.LimitReader(c.InOrStdin(), team.MaxText+1))
	if err != nil {
		return "", err
	}
	body := strings.TrimSuffix(string(in), "\n")
	if len(body) <= team.MaxText {
		return body, nil
	}
	const most = 1 << 30 // endless input is not counted
	rest, _ := io.Copy(io.Discard, io.LimitReader(c.InOrStdin(), most))
	return "", &team.Error{Code: team.TooLarge, Text: fmt.Sprintf("standard input has %d bytes, of at most %d; put "+
		"the rest into a file and name it", int64(len(in))+rest, team.MaxText)}
}

func (a *app) sent(what string) func(*engine.Team, *team.Record) error {
	return func(of *engine.Team, r *team.Record) error {
		e, _ := team.EventIn[*team.MessageSent](r)
		e.Message.SentAt = r.At
		held, resting := waits(of, e.Message)
		t := of.Team()
		switch name, top := t.Name, t.Outermost(); {
		case held:
			return a.print(sentMessage{e.Message, true}, said("message #%d to %s is held: no session leads team %s. "+
				"It is delivered when one does: cadre resume %s", e.Message.Seq, what, name, top))
		case len(resting) > 0:
			return a.print(sentMessage{Message: e.Message}, said("message #%d sent to %s; %s %s no session "+
				"until a session leads team %s: cadre resume %s", e.Message.Seq, what,
				strings.Join(resting, ", "), map[bool]string{true: "has", false: "have"}[len(resting) == 1], name,
				top))
		}
		return a.print(sentMessage{Message: e.Message}, said("message #%d sent to %s", e.Message.Seq, what))
	}
}

// noteUnread says so if the recipient of the message reads none.
func (a *app) noteUnread(of *engine.Team, m *team.SendMessage) {
	var to team.Member
	of.View(func(s *team.State) { to, _ = s.Member(m.To) })
	if to.Agent == team.Shell && m.Priority != "urgent" {
		a.note(to.Name + " runs commands and reads no messages; a message only lets it continue after an interrupt")
	}
}

// waits reports whether the message is held until there is a lead, and which of its recipients get
// no session until then.
func waits(of *engine.Team, m team.Message) (held bool, resting []string) {
	of.View(func(s *team.State) {
		held = s.Holds(m.Seq)
		for _, name := range append(m.Recipients, m.To) {
			if s.Phase(name) == team.Paused {
				resting = append(resting, name)
			}
		}
	})
	return held, resting
}

// sentMessage is a message that was sent, as JSON.
type sentMessage struct {
	team.Message
	Held bool // it waits until a session leads the team
}

// MarshalJSON writes the message, and held where it is true.
func (m sentMessage) MarshalJSON() ([]byte, error) {
	out, err := m.Message.MarshalJSON()
	if m.Held {
		out = append(bytes.TrimSuffix(out, []byte("}")), `,"held":true}`...)
	}
	return out, err
}

func (a *app) sendCommand() *cobra.Command {
	var body team.SendMessage
	var meta []string
	var yes bool
	c := a.saying(&cobra.Command{
		Use: "send [TEAM] --to NAME TEXT", Short: "Send a message to a member",
		Long: "Send a message to one member. TEXT may be - for standard input. A message of at most 1 MiB is kept " +
			"until its recipient\nhas it; one to a member that does not exist or has ended is refused.\n" +
			"A shell member reads no messages. An urgent one of yours ends its command, which counts as a failed " +
			"attempt: on a terminal you are asked before; --yes skips the question.",
	}, func(c *cobra.Command, name, words string) (err error) {
		if body.To == "" {
			return usage{fmt.Errorf("name the recipient with --to NAME, or --to '*' for all other members")}
		}
		if body.Body, err = text(c, words); err != nil {
			return err
		}
		if body.Metadata, err = metadataOf(meta); err != nil {
			return err
		}
		if body.To == "*" {
			return a.broadcast(c, name, &team.Broadcast{Body: body.Body, Intent: body.Intent, Priority: body.Priority,
				Metadata: body.Metadata})
		}
		if body.Priority == "urgent" && !yes {
			if err := a.confirmEnd(c.Context(), name, body.To); err != nil {
				return err
			}
		}
		return a.act(c, name, &body, func(of *engine.Team, r *team.Record) error {
			a.noteUnread(of, &body)
			return a.sent(body.To)(of, r)
		})
	})
	send := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if body.To == "" && len(args) > 2 && a.isTeam(args[0]) {
			return withWays(usage{errors.New("the recipient is named with --to")}, way{"write to " + args[1],
				render.Typed("send", args[0], "--to", args[1], strings.Join(args[2:], " "))})
		}
		return send(c, args)
	}
	c.Flags().StringVar(&body.To, "to", "", "the recipient; * for all other members")
	a.mailFlags(c, &body.Intent, &body.Priority, &meta)
	endFlag(c, &yes)
	return c
}

// mailFlags adds the flags of every message.
func (a *app) mailFlags(c *cobra.Command, intent, priority *string, meta *[]string) {
	actsAs(c)
	a.renamed(c, "from", "as")
	metadataFlag(c, meta, "what to keep with the message")
	a.renamed(c, "meta", "metadata")
	c.Flags().StringVar(intent, "intent", "", "info, question, challenge or resolution")
	c.Flags().StringVar(priority, "priority", "normal", "normal or urgent; an urgent message of yours "+
		"interrupts the member, one with --as only carries a mark")
}

func (a *app) broadcastCommand() *cobra.Command {
	var body team.Broadcast
	var meta []string
	c := a.saying(&cobra.Command{
		Use: "broadcast [TEAM] TEXT", Short: "Send a message to all other members",
		Long: "Send a message to every other member. An urgent one of yours interrupts agents; it does not end the " +
			"command of a shell member.",
	}, func(c *cobra.Command, name, words string) (err error) {
		if body.Body, err = text(c, words); err != nil {
			return err
		}
		if body.Metadata, err = metadataOf(meta); err != nil {
			return err
		}
		return a.broadcast(c, name, &body)
	})
	a.mailFlags(c, &body.Intent, &body.Priority, &meta)
	return c
}

func (a *app) broadcast(c *cobra.Command, name string, body *team.Broadcast) error {
	return a.act(c, name, body, func(of *engine.Team, r *team.Record) error {
		e, _ := team.EventIn[*team.MessageSent](r)
		return a.sent(strings.Join(e.Message.Recipients, ", "))(of, r)
	})
}

// inboxing has the options of one call of cadre inbox.
type inboxing struct {
	*app
	engine.Reading
	wait   waitFlags
	all    bool
	since  string
	filter history.MailFilter
}

func (a *app) inboxCommand() *cobra.Command {
	r := &inboxing{app: a}
	c := a.onTeam(1, &cobra.Command{
		Use: "inbox [TEAM] NAME", Short: "Take a member's undelivered messages, or list all of its mail",
		Long: "Print the messages that were not delivered to the member yet, and record them as delivered and read. " +
			"With --peek nothing is\nrecorded. With --again messages that were delivered, but not marked as read, " +
			"are printed once more: marking is the last\nthing that this command does, so what a killed call may " +
			"have lost is among them. --wait waits for the first message, and\n--follow prints messages until the " +
			"team ends or you interrupt it.\n\n--all lists every message that was ever sent to the member, with when " +
			"it was delivered and read. It records nothing.",
		Example: "  cadre inbox my-team ann --wait --timeout 5m\n  cadre inbox my-team ann --all --type message " +
			"--since 1h",
	}, func(c *cobra.Command, name string, args []string) error {
		r.Actor, r.Member, r.Wait = a.actor, args[0], r.wait.on
		if err := r.check(c); err != nil {
			return err
		}
		if r.all {
			return a.listMail(c.Context(), name, r.Member, r.filter)
		}
		return r.take(c.Context(), name)
	})
	f := c.Flags()
	f.BoolVar(&r.Peek, "peek", false, "look only")
	f.BoolVar(&r.Again, "again", false, "also messages that were delivered before and not marked as read")
	r.wait.flags(c, "wait until there is a message")
	f.BoolVarP(&r.Follow, "follow", "f", false, "print messages as they come")
	f.BoolVar(&r.all, "all", false, "list all mail of the member, and record nothing")
	f.StringSliceVar(&r.filter.Types, "type", nil, "with --all, only messages of these types, such as message or idle")
	f.BoolVar(&r.filter.Unread, "unread", false, "with --all, only messages that are not marked as read")
	f.StringVar(&r.since, "since", "", "with --all, only what was sent since: 10m, 15:04, 2006-01-02, or RFC 3339")
	f.IntVarP(&r.filter.Last, "lines", "n", 0, "with --all, only the last messages; 0 for all")
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if err.Error() == "unknown flag: --as" {
			return withWays(usage{errors.New("inbox takes the member's name without --as")},
				way{"read its mail", syntax(c, "[TEAM]")})
		}
		return flagMistake(c, err)
	})
	return c
}

// check refuses flags that exclude each other.
func (r *inboxing) check(c *cobra.Command) (err error) {
	f := c.Flags()
	selects := f.Changed("type") || f.Changed("since") || f.Changed("lines") || f.Changed("unread")
	switch {
	case r.Follow && (r.Wait || f.Changed("timeout")):
		return usage{fmt.Errorf("--follow waits until the team ends; leave out --wait and --timeout")}
	case r.all && (r.Peek || r.Again || r.Wait || r.Follow):
		return usage{fmt.Errorf("--all lists mail and takes none; leave out --peek, --again, --wait and --follow")}
	case selects && !r.all:
		return usage{fmt.Errorf("--type, --since, --unread and --lines select what --all lists; add --all")}
	case r.filter.Last < 0:
		return usage{fmt.Errorf("%d messages cannot be listed", r.filter.Last)}
	}
	if r.filter.Since, err = parseSince(r.since, time.Now()); err != nil {
		return usage{err}
	}
	return nil
}

// take delivers the member's mail.
func (r *inboxing) take(ctx context.Context, name string) error {
	if r.Follow || r.wait.on {
		ctx = r.whileRead(ctx)
	}
	waiting, cancel, err := r.wait.begin(ctx, "no message came for "+r.Member)
	if err != nil {
		return err
	}
	defer cancel()
	if r.Follow {
		stays()
	}
	err = r.engine().ReadMail(waiting, name, r.Reading, func(mail []history.MailboxMessage, earlier int64) error {
		if earlier > 0 {
			r.note(fmt.Sprintf("messages up to #%d were delivered before, but not marked as read; to see "+
				"them: cadre inbox %s %s --again", earlier, name, r.Member))
		}
		if !r.json || !r.Follow {
			return r.printMail(r.Member, mail)
		}
		for _, m := range mail {
			if err := r.out.Value(m); err != nil {
				return err
			}
		}
		return nil
	})
	if r.Follow && ctx.Err() != nil { // the person interrupted
		return nil
	}
	return r.wait.end(waiting, err)
}

// listMail lists all mail of a member.
func (a *app) listMail(ctx context.Context, name, member string, filter history.MailFilter) error {
	mail, err := a.engine().MailOf(ctx, name, a.actor, member, filter)
	if err != nil {
		return err
	}
	return a.print(mail, func(w *sanitize.Writer) error {
		if len(mail) == 0 {
			return said("no messages")(w)
		}
		now := team.Time(time.Now().UnixMilli())
		for _, l := range mail {
			if err := writeMail(w, member, l, now); err != nil {
				return err
			}
		}
		return nil
	})
}

func writeMail(w *sanitize.Writer, member string, l history.MailboxMessage, now team.Time) error {
	state := "not delivered"
	switch {
	case l.ReturnedAt != 0:
		state = "returned to its sender " + render.When(now, l.ReturnedAt)
	case l.ReadAt != 0:
		state = "read " + render.When(now, l.ReadAt)
	case l.DeliveredAt != 0:
		state = "delivered " + render.When(now, l.DeliveredAt) + ", not read"
	}
	err := w.Printf("#%d from %s%s, %s, %s:\n%s\n", l.Seq, sender(l.Message), kindOf(l),
		render.When(now, l.SentAt), state, sanitize.Block(l.Body))
	if err != nil {
		return err
	}
	if news := l.NewsFor(member); news != "" {
		for line := range strings.Lines(news) {
			w.Printf("%s\n", newsLine(line))
		}
	}
	return w.Printf("\n")
}

func sender(m team.Message) string { return cmp.Or(m.From, "cadre") }

// kindOf describes the kind of a special message, and its task or request.
func kindOf(l history.MailboxMessage) string {
	if l.Type == team.TypeMessage {
		return ""
	}
	about := l.Ref
	if l.Task != "" {
		about = "task " + l.Task
	}
	return " (" + strings.ReplaceAll(l.Type, "_", " ") + prefix(", ", about) + ")"
}

func (a *app) printMail(member string, mail []history.MailboxMessage) error {
	return a.print(mail, func(w *sanitize.Writer) error {
		if len(mail) == 0 {
			return said("no new messages")(w)
		}
		for _, m := range mail {
			if err := w.Printf("#%d from %s%s:\n%s\n\n", m.Seq, sender(m.Message), kindOf(m),
				sanitize.Block(m.Body)); err != nil {
				return err
			}
		}
		return writeNews(w, member, mail)
	})
}

// newsLine returns a line of news as it is printed.
func newsLine(line string) sanitize.Hanging {
	return sanitize.Hanging{Text: "news: " + strings.TrimSuffix(line, "\n"), Indent: 4}
}

// writeNews writes what the messages tell their recipient of tasks, members and notes, a line for
// each.
func writeNews(w *sanitize.Writer, member string, mail []history.MailboxMessage) error {
	var news []string
	for _, m := range mail {
		if words := m.NewsFor(member); words != "" {
			news = append(news, words)
		}
	}
	if len(news) == 0 {
		return nil
	}
	for line := range strings.Lines(strings.Join(news, "\n")) {
		if err := w.Printf("%s\n", newsLine(line)); err != nil {
			return err
		}
	}
	return w.Printf("\n")
}
