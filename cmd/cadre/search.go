package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
)

func (a *app) searchCommand() *cobra.Command {
	var q engine.Search
	var since, until string
	c := &cobra.Command{
		Use: "search WORD...", Short: "Search messages, results, notes, reports and tasks",
		Long: "Search the texts of all teams, with the archived runs: messages, results, notes with their older versions, " +
			"reports, and the subjects\nand descriptions of tasks. A text is found if it has every WORD, in any case; quote " +
			"words that must follow each other.\nIt reads the histories and needs no index. Of each team it prints the last " +
			"matches, the oldest first.",
		Example: "  cadre search 'rate limit' retry --since 2h\n" +
			"  cadre search parser --team my-team --kind note,result",
		RunE: func(c *cobra.Command, args []string) (err error) {
			q.Words = args
			if q.Since, err = parseSince(since, time.Now()); err == nil {
				q.Until, err = parseSince(until, time.Now())
			}
			if err != nil {
				return usage{err}
			}
			stays()
			return a.search(c, q)
		},
	}
	f := c.Flags()
	f.StringVar(&q.Team, "team", "", "only this team")
	f.StringSliceVar(&q.Members, "member", nil, "only what these members wrote or got; user for you")
	f.StringSliceVar(&q.Texts, "kind", nil, "only texts of these kinds: "+strings.Join(engine.TextKinds(), ", "))
	f.StringSliceVar(&q.TaskRefs, "task", nil, "only texts of these tasks, and messages about them")
	f.StringVar(&since, "since", "", "no earlier texts: 10m, 2h (before now), 15:04 (today), 2006-01-02, or RFC 3339")
	f.StringVar(&until, "until", "", "no later texts")
	f.IntVarP(&q.Last, "lines", "n", 20, "only the last matches of each team; 0 for all")
	return c
}

// search prints the matches as they are found.
func (a *app) search(c *cobra.Command, q engine.Search) error {
	all, heading := []engine.Found{}, ""
	for f, err := range a.engine().Search(c.Context(), q) {
		switch {
		case err != nil && (a.json || c.Context().Err() != nil):
			return errors.Join(a.printFound(all), err)
		case err != nil:
			return err
		case a.json:
			all = append(all, f)
			continue
		}
		if heading != f.Team {
			heading = f.Team
			if err := a.out.Printf("%s%s\n", render.Strong.On(f.Team), archived(f.Archived)); err != nil {
				return err
			}
		}
		if err := a.writeFound(f); err != nil {
			return err
		}
	}
	if a.json {
		return a.printFound(all)
	}
	if heading == "" {
		err := a.out.Printf("Nothing was found.\n")
		if first := q.Words[0]; q.Team == "" && a.isTeam(first) {
			words := slices.Clone(q.Words[1:])
			if len(words) == 0 {
				words = []string{"WORD"}
			}
			a.note(first + " is a team; to search it alone: " + render.Typed("search", append(words, "--team", first)...))
		}
		return err
	}
	return nil
}

func (a *app) printFound(all []engine.Found) error {
	return a.print(all, func(*sanitize.Writer) error { return nil })
}

func archived(yes bool) string {
	if yes {
		return ", an archived run"
	}
	return ""
}

// writeFound writes a match in two lines: where it stands, and the words around the first of the
// words that were searched for.
func (a *app) writeFound(f engine.Found) error {
	if err := a.out.Printf("%s  %s  %s\n", render.Faint.On(render.When(now(), f.At)), f.Title(),
		render.Faint.On(fmt.Sprintf("#%d", f.Record))); err != nil {
		return err
	}
	return a.out.Print(excerptOf(f)...)
}

// excerptOf returns the part of the text around the first word on a line, with the words in bold.
func excerptOf(f engine.Found) []any {
	parts := []any{"    "}
	for _, p := range f.Excerpt() {
		if p.Found {
			parts = append(parts, render.Strong.Look(), p.Text, sanitize.Normal)
			continue
		}
		parts = append(parts, p.Text)
	}
	return append(parts, "\n")
}
