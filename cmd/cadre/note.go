package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

func (a *app) noteCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "note", Short: "Set, read and list the notes that a team shares",
		Long: fmt.Sprintf("Set, read and list the notes that a team shares: decisions, interfaces that were agreed, who "+
			"works where, what was tried and failed.\nEach new session is given their beginnings, and members are told "+
			"of changes with their next message. KEY is a name such as\ndecisions/api. A team has up to %d notes, of %d "+
			"KiB each and %d MiB together.", team.MaxNotes, team.MaxNote>>10, team.MaxNotesText>>20),
		Example: "  cadre note set my-team decisions/api 'Errors are JSON.'\n" +
			"  cadre note append my-team tried 'A cache: stale after a restart.' --as ann",
		Args: subcommand,
		RunE: a.choice,
	}
	c.AddCommand(a.noteSet(), a.noteAppend(), a.noteGet(), a.noteList(), a.noteRemove(), a.noteLog())
	return c
}

// writesNote is onTeam for a command that writes TEXT to the note KEY. With --file the text is that
// of a file.
func (a *app) writesNote(c *cobra.Command, body func(c *cobra.Command, key, text string) team.Body) *cobra.Command {
	var file string
	run := func(c *cobra.Command, name, key, words string) error {
		_, n, err := a.engine().WriteNote(c.Context(), name, a.actor, key, body(c, key, words))
		if err != nil {
			return err
		}
		return a.print(n, said("note %s is at change %d", n.Key, n.Seq))
	}
	said := a.onTeam(2, &cobra.Command{Use: c.Use}, func(_ *cobra.Command, name string, args []string) error {
		words, err := text(c, args[1])
		if err != nil {
			return err
		}
		return run(c, name, args[0], words)
	}).RunE
	read := a.onTeam(1, &cobra.Command{Use: c.Use}, func(_ *cobra.Command, name string, args []string) error {
		words, err := engine.NoteText(file, c.InOrStdin())
		if err != nil {
			return err
		}
		return run(c, name, args[0], words)
	}).RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		run, needs := said, 2
		if c.Flags().Changed("file") {
			run, needs = read, 1
		}
		if len(args) == needs && a.isTeam(args[0]) { // otherwise a forgotten KEY or TEXT would make a note of that name
			return usage{errors.New(missing(c, args))}
		}
		return run(c, args)
	}
	c.Flags().StringVar(&file, "file", "", "use the text of this file instead of TEXT; - for standard input")
	actsAs(c)
	return c
}

// ifSeqFlag adds the flag with which a writer names the change that it has seen.
func ifSeqFlag(c *cobra.Command) {
	c.Flags().Int64("if-seq", 0, "only if the last change of the note is this one; 0 for a note that does not exist yet")
}

// ifSeq returns the change that the flag names; nil for any.
func ifSeq(c *cobra.Command) *int64 {
	if seq, err := c.Flags().GetInt64("if-seq"); err == nil && c.Flags().Changed("if-seq") {
		return &seq
	}
	return nil
}

func (a *app) noteSet() *cobra.Command {
	c := a.writesNote(&cobra.Command{
		Use: "set [TEAM] KEY TEXT", Short: "Set a note, or replace its text",
		Long: "Set a note, or replace its text. TEXT may be - for standard input. With --if-seq the command is refused, " +
			"and shows the present text,\nif anybody, you included, changed the note since the change that you name.",
		Example: "  cadre note set my-team decisions/api 'Errors are JSON.' --if-seq 12",
	}, func(c *cobra.Command, key, text string) team.Body {
		return &team.SetNote{Key: key, Text: text, IfSeq: ifSeq(c)}
	})
	ifSeqFlag(c)
	return c
}

func (a *app) noteAppend() *cobra.Command {
	return a.writesNote(&cobra.Command{
		Use: "append [TEAM] KEY TEXT", Short: "Add a text to a note, on a line of its own",
		Long: "Add a text to a note, on a line of its own, or make the note. It never conflicts with what others write. " +
			"TEXT may be - for\nstandard input.",
	}, func(_ *cobra.Command, key, text string) team.Body { return &team.AppendNote{Key: key, Text: text} })
}

func (a *app) noteGet() *cobra.Command {
	var seq int64
	var raw bool
	c := a.onTeam(1, &cobra.Command{
		Use: "get [TEAM] KEY", Short: "Print the text of a note",
		Long: "Print the text of a note. With --seq print an older version, which cadre note log lists. With --raw " +
			"print the text for a program,\nwithout the mark before each line. Characters that could harm a terminal are escaped.",
		Example: "  cadre note get my-team decisions/api\n  cadre note get my-team files --raw | xargs wc -l",
	}, func(c *cobra.Command, name string, args []string) error {
		n, err := a.noteOf(c, name, args[0], seq)
		if err != nil {
			return err
		}
		return a.print(n, func(w *sanitize.Writer) error {
			if !raw || a.out.terminal() { // a line of it could look like cadre's
				return w.Printf("%s\n", sanitize.Block(n.Text))
			}
			_, err := w.Write([]byte(strings.TrimSuffix(n.Text, "\n") + "\n"))
			return err
		})
	})
	c.Flags().Int64Var(&seq, "seq", 0, "the note as it was after this change")
	c.Flags().BoolVar(&raw, "raw", false, "print the lines of the text without a mark before them, for a program")
	return c
}

// noteOf returns a note, or with --seq an older version of it.
func (a *app) noteOf(c *cobra.Command, name, key string, seq int64) (n team.Note, err error) {
	if !c.Flags().Changed("seq") {
		err = a.engine().LookAtNotes(c.Context(), name, func(o *team.Outline) (err error) {
			n, err = o.NamedNote(key)
			return err
		})
		return n, err
	}
	of, err := a.engine().Look(c.Context(), name)
	if err != nil {
		return n, err
	}
	defer of.Close()
	return of.NoteAt(c.Context(), key, seq)
}

func (a *app) noteList() *cobra.Command {
	return a.onTeam(0, &cobra.Command{
		Use: "list [TEAM]", Aliases: []string{"ls"}, Short: "List the notes with their beginnings",
		Long: "List the notes of a team by their keys: who changed them last and when, and how they begin.",
	}, func(c *cobra.Command, name string, _ []string) error {
		notes := []team.Note{}
		if err := a.engine().LookAtNotes(c.Context(), name, func(o *team.Outline) error {
			notes = append(notes, o.Notes()...)
			return nil
		}); err != nil {
			return err
		}
		return a.print(notes, func(w *sanitize.Writer) error {
			if len(notes) == 0 {
				return said("no notes")(w)
			}
			t := render.NewTable(len(notes)+1, "KEY", "SEQ", "CHANGED", "BY", "BYTES", "TEXT")
			t.Texts, t.Spare, t.Numbers = []string{"TEXT"}, []string{"BYTES", "SEQ", "CHANGED"},
				[]string{"SEQ", "BYTES"}
			for _, n := range notes {
				t.Row(n.Key, fmt.Sprint(n.Seq), render.Ago(now(), n.UpdatedAt), strings.TrimPrefix(n.UpdatedBy, "@"),
					fmt.Sprint(len(n.Text)), render.Clean(n.Text))
			}
			return t.Write(w)
		})
	})
}

func (a *app) noteRemove() *cobra.Command {
	c := a.onTeam(1, &cobra.Command{
		Use: "rm [TEAM] KEY", Short: "Delete a note",
		Long: "Delete a note. Its versions stay in the history: cadre note log.",
	}, func(c *cobra.Command, name string, args []string) error {
		before, _, err := a.engine().WriteNote(c.Context(), name, a.actor, args[0],
			&team.DeleteNote{Key: args[0], IfSeq: ifSeq(c)})
		if err != nil {
			return err
		}
		return a.print(before, said("note %s is deleted", args[0]))
	})
	ifSeqFlag(c)
	actsAs(c)
	return c
}

func (a *app) noteLog() *cobra.Command {
	return a.looking(1, &cobra.Command{
		Use: "log [TEAM] KEY", Short: "List the changes of a note",
		Long: "List the changes of a note, the oldest first: who changed it, when and how. cadre note get --seq prints the " +
			"note as it was after\none of them.",
	}, func(c *cobra.Command, d *engine.Team, args []string) error {
		changes, err := d.NoteChanges(c.Context(), args[0])
		if err != nil {
			return err
		}
		return a.print(changes, func(w *sanitize.Writer) error {
			t := render.NewTable(len(changes)+1, "SEQ", "AT", "BY", "HOW", "BYTES", "TEXT")
			t.Texts, t.Spare, t.Numbers = []string{"TEXT"}, []string{"BYTES"}, []string{"SEQ", "BYTES"}
			for _, one := range changes {
				t.Row(fmt.Sprint(one.Seq), render.When(now(), one.At), strings.TrimPrefix(one.By, "@"), one.How,
					fmt.Sprint(one.Bytes), render.Clean(one.Text))
			}
			return t.Write(w)
		})
	})
}
