package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/render/sanitize"
	"cadre/internal/replica"
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
	const most = 1 << 30 // what never ends is not counted to its end
	rest, _ := io.Copy(io.Discard, io.LimitReader(c.InOrStdin(), most))
	return "", &team.Error{Code: team.TooLarge, Text: fmt.Sprintf("standard input has %d bytes, of at most %d; put "+
		"the rest into a file and name it", int64(len(in))+rest, team.MaxText)}
}

func (a *app) sent(what string) func(*replica.Replica, *team.Record) error {
	return func(rep *replica.Replica, r *team.Record) error {
		e, _ := find[*team.MessageSent](r)
		e.Message.SentAt = r.At
		held, resting := waits(rep, e.Message)
		switch name := rep.Team().Name; {
		case held:
			return a.print(heldMessage{e.Message}, said("message #%d to %s is held: nobody leads team %s. It is "+
				"delivered when somebody does: cadre resume %s", e.Message.Seq, what, name, name))
		case len(resting) > 0:
			return a.print(e.Message, said("message #%d sent to %s; %s %s no session until somebody leads team %s: "+
				"cadre resume %s", e.Message.Seq, what,
				strings.Join(resting, ", "), map[bool]string{true: "has", false: "have"}[len(resting) == 1], name,
				name))
		}
		return a.print(e.Message, said("message #%d sent to %s", e.Message.Seq, what))
	}
}

// waits reports whether the message is held until there is a lead, and which of its recipients rest
// until then.
func waits(rep *replica.Replica, m team.Message) (held bool, resting []string) {
	rep.View(func(s *team.State) {
		held = s.Holds(m.Seq)
		for _, name := range append(m.Recipients, m.To) {
			if s.Phase(name) == team.Resting {
				resting = append(resting, name)
			}
		}
	})
	return held, resting
}

// heldMessage is a message that waits for a lead, as JSON.
type heldMessage struct{ message team.Message }

func (h heldMessage) MarshalJSON() ([]byte, error) {
	out, err := h.message.MarshalJSON()
	return append(bytes.TrimSuffix(out, []byte("}")), `,"held":true}`...), err
}

func (a *app) sendCommand() *cobra.Command {
	var body team.SendMessage
	c := a.onTeam(1, &cobra.Command{
		Use: "send [TEAM] --to NAME TEXT", Short: "Send a message to a member",
		Long: "Send a message to one member. TEXT may be - for standard input. A message of at most 1 MiB is kept " +
			"until its recipient\nhas it; one to a member that does not exist or has ended is refused.",
	}, func(c *cobra.Command, name string, args []string) (err error) {
		if body.To == "" {
			return usage{fmt.Errorf("say to whom, with --to NAME; to everybody: cadre broadcast")}
		}
		if body.Body, err = text(c, args[0]); err != nil {
			return err
		}
		return a.act(c, name, &body, a.sent(body.To))
	})
	c.Flags().String("from", "", "the sender; you by default")
	c.Flags().StringVar(&body.To, "to", "", "the recipient")
	mailFlags(c, &body.Intent, &body.Priority)
	return c
}

func mailFlags(c *cobra.Command, intent, priority *string) {
	c.Flags().StringVar(intent, "intent", "", "info, question, challenge or resolution")
	c.Flags().StringVar(priority, "priority", "normal", "normal, or urgent: interrupts what the member is doing")
}

func (a *app) broadcastCommand() *cobra.Command {
	var body team.Broadcast
	c := a.onTeam(1, &cobra.Command{
		Use: "broadcast [TEAM] TEXT", Short: "Send a message to everybody else",
	}, func(c *cobra.Command, name string, args []string) (err error) {
		if body.Body, err = text(c, args[0]); err != nil {
			return err
		}
		return a.act(c, name, &body, func(rep *replica.Replica, r *team.Record) error {
			e, _ := find[*team.MessageSent](r)
			return a.sent(strings.Join(e.Message.Recipients, ", "))(rep, r)
		})
	})
	c.Flags().String("from", "", "the sender; you by default")
	mailFlags(c, &body.Intent, &body.Priority)
	return c
}

func (a *app) inboxCommand() *cobra.Command {
	var peek, again bool
	c := a.onTeam(1, &cobra.Command{
		Use: "inbox [TEAM] NAME", Short: "Take a member's undelivered messages",
		Long: "Print the messages that the member was not given yet, and record that it has them. With --peek " +
			"nothing is recorded. With\n--again the messages that were handed out and never confirmed as read are " +
			"printed once more: confirming is the last thing that this command does, so\nwhat a killed call may have " +
			"swallowed is among them.",
	}, func(c *cobra.Command, name string, args []string) error {
		ctx, cancel := context.WithTimeoutCause(c.Context(), lockWait, fmt.Errorf("team %s was busy for %s",
			name, lockWait))
		defer cancel()
		rep, _, err := a.open(ctx, name, !peek)
		if err != nil {
			return err
		}
		defer rep.Close()
		return a.inbox(ctx, rep, args[0], peek, again)
	})
	c.Flags().BoolVar(&peek, "peek", false, "look only")
	c.Flags().BoolVar(&again, "again", false, "also what was handed out before and not confirmed as read")
	return c
}

func (a *app) inbox(ctx context.Context, rep *replica.Replica, name string, peek, again bool) error {
	if a.actor != team.User && a.actor != name {
		return &team.Error{Code: team.Denied, Text: fmt.Sprintf("the mail of %s is its own, and this is the session "+
			"of %s; read yours: cadre inbox %s %s", name, a.actor, rep.Team().Name, a.actor)}
	}
	var m team.Member
	var err error
	mail := []team.Message{}
	rep.View(func(s *team.State) {
		m, err = memberNamed(s, name)
		mail = append(mail, s.Inbox(name)...)
	})
	if err != nil {
		return err
	}
	var before []team.Message
	if again {
		if before, err = engine.HandedOut(ctx, rep, m); err != nil {
			return err
		}
	} else if m.DeliveredSeq > m.ReadSeq {
		a.note(fmt.Sprintf("messages up to #%d were handed out before but never confirmed as read; to see them: "+
			"cadre inbox %s %s --again", m.DeliveredSeq, rep.Team().Name, name))
	}
	if peek {
		return a.printMail(append(append([]team.Message{}, before...), mail...))
	}
	if mail, err = engine.Take(ctx, rep, a.actor, name, before); err != nil {
		return err
	}
	if err := a.printMail(mail); err != nil || len(mail) == 0 {
		return err
	}
	through := mail[len(mail)-1].Seq
	_, err = rep.Do(ctx, team.Command{Actor: a.actor, Body: &team.MarkRead{Member: name, Through: through}})
	return err
}

func (a *app) printMail(mail []team.Message) error {
	return a.print(mail, func(w *sanitize.Writer) error {
		if len(mail) == 0 {
			return said("no new messages")(w)
		}
		for _, m := range mail {
			from := m.From
			if from == "" {
				from = "cadre"
			}
			kind := ""
			if m.Type != team.TypeMessage {
				kind = " (" + strings.ReplaceAll(m.Type, "_", " ") + prefix(", ", m.Ref) + ")"
			}
			if err := w.Printf("#%d from %s%s:\n%s\n\n", m.Seq, from, kind, sanitize.Block(m.Body)); err != nil {
				return err
			}
		}
		return nil
	})
}
