package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/inspect"
	"cadre/internal/observe/store"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// overview is a team in a list, and the head of its status.
type overview struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Status   team.TeamStatus `json:"status"`
	Goal     string          `json:"goal,omitempty"`
	Dir      string          `json:"dir"`
	Lead     string          `json:"lead"`
	Delegate bool            `json:"delegate"`
	// the name by which its own agents know it, where it is only observed
	Observed string `json:"observed,omitempty"`
	// what is observed is no team but one session, of the agent that Observed names
	Session bool `json:"session,omitempty"`
	Watched bool `json:"watched,omitempty"` // a living process observes it
	Hosted  bool `json:"hosted"`            // a living process runs its sessions
	Led     bool `json:"led"`               // a living process leads it
	Dormant bool `json:"dormant"`           // no process of it is alive although one should be
	// Interrupted says that a consolidation was begun and no process is at it.
	Interrupted bool           `json:"interrupted,omitempty"`
	Tasks       map[string]int `json:"tasks"`
	Teammates   int            `json:"teammates"`         // that have not ended
	Offline     int            `json:"offline,omitempty"` // of them
	Zombies     int            `json:"zombies,omitempty"` // of them: they go on without a lead
	Messages    int64          `json:"messages"`
	Usage       team.Usage     `json:"usage"`
	Exhausted   string         `json:"exhausted,omitempty"`
	Report      string         `json:"report,omitempty"`
	Seq         int64          `json:"seq"`
	CreatedAt   team.Time      `json:"createdAt"`
	UpdatedAt   team.Time      `json:"updatedAt"`
	Released    team.Time      `json:"released,omitempty"` // since when it continues on another machine
	LookedAt    team.Time      `json:"lookedAt"`           // when it was looked at which processes are alive
	Attention   []team.Item    `json:"attention"`          // what waits for a person
}

// summarize is the team as it is, and as it was found outside.
func (a *app) summarize(s *team.State, outside *team.Outside) overview {
	t := s.Team()
	o := overview{ID: t.ID, Name: t.Name, Status: t.Status, Goal: t.Goal, Dir: t.Dir, Lead: t.Lead,
		Delegate: t.Delegate, Usage: t.Usage, Exhausted: t.Exhausted,
		Report: t.Report, Seq: s.Seq(), Messages: s.MessageSeq(), CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt,
		Hosted: outside.Hosted, Led: outside.Led, Dormant: s.Dormant(outside), Interrupted: s.Interrupted(outside),
		LookedAt: outside.At,
		Released: t.Released.At, Tasks: map[string]int{}, Attention: s.Attention(replica.Now(), outside)}
	if o.Attention == nil {
		o.Attention = []team.Item{}
	}
	for _, status := range []team.TaskStatus{team.Pending, team.InProgress, team.Completed} {
		o.Tasks[string(status)] = s.Count(status)
	}
	for _, m := range s.Members() {
		if m.Name == t.Lead || !m.Status.Running() {
			continue
		}
		o.Teammates++
		switch s.Standing(m.Name, outside) {
		case team.Away:
			o.Offline++
		case team.Zombie:
			o.Zombies++
		}
	}
	o.Observed, o.Session, o.Watched = t.Observed, t.Session, t.Observed != "" &&
		store.Observes(a.home.Observation(t.Name))
	return o
}

// state is the status for people: what is true of the team, not only what was recorded last.
func (o overview) state() string {
	switch {
	case o.Released != 0:
		return "released"
	case o.Interrupted:
		return "interrupted"
	case o.Dormant:
		return "dormant"
	case o.Observed != "" && o.Status != team.TeamComplete:
		return "observed"
	}
	return string(o.Status)
}

// teammates is how many there are, and how many of them are not as they should be.
func (o overview) teammates() string {
	return fmt.Sprint(o.Teammates) + prefix(", ", counted(o.Offline, "offline", o.Zombies, "without a lead"))
}

func (o overview) progress() string {
	all := 0
	for _, n := range o.Tasks {
		all += n
	}
	return fmt.Sprintf("%d of %d", o.Tasks["completed"], all)
}

func (a *app) lsCommand() *cobra.Command {
	var git bool
	c := &cobra.Command{
		Use: "ls", Short: "List the teams", Args: exactly(0),
		Long: `List the teams. WAITING is how many things wait for a person: cadre attention lists them. A team that is dormant is not at its end, and no
process of it is running; cadre resume NAME continues it. One that is interrupted was being consolidated; cadre consolidate NAME finishes that.

With --git the teams are listed of which the repository that you are in has checkpoints, on its own branches or on those that it has fetched: they
may come from another machine. cadre resume NAME --from-git continues one here.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if git {
				return a.listGit(c.Context())
			}
			names, err := a.home.Names()
			if err != nil {
				return err
			}
			all := []overview{}
			var damaged error
			for _, name := range names {
				rep, dir, err := a.open(c.Context(), name, false)
				if err != nil {
					a.note(name + ": " + explain(err))
					damaged = exit(status(err))
					continue
				}
				outside, err := inspect.Look(c.Context(), rep, dir, time.Now())
				if err == nil {
					rep.View(func(s *team.State) { all = append(all, a.summarize(s, outside)) })
				}
				if err = errors.Join(err, rep.Close()); err != nil {
					a.note(name + ": " + explain(err))
					damaged = exit(status(err))
				}
			}
			err = a.print(all, func(w *sanitize.Writer) error {
				if len(all) == 0 && damaged == nil {
					w.Printf("There is no team. Create one: cadre create NAME, or run a team file: cadre run FILE\n")
					return a.alsoInGit(c.Context(), w, names)
				}
				var t render.Table
				t.Row("NAME", "STATUS", "TASKS DONE", "TEAMMATES", "WAITING", "LAST CHANGE", "DIRECTORY")
				for _, o := range all {
					t.Row(o.Name, o.state(), o.progress(), o.teammates(), fmt.Sprint(len(o.Attention)),
						render.Ago(replica.Now(), o.UpdatedAt), o.Dir)
				}
				if err := t.Write(w); err != nil {
					return err
				}
				return a.alsoInGit(c.Context(), w, names)
			})
			return errors.Join(err, damaged)
		},
	}
	c.Flags().BoolVar(&git, "git", false, "list the teams that the repository has checkpoints of")
	return c
}

func (a *app) logCommand() *cobra.Command {
	var follow bool
	var after int64
	c := a.looking(0, &cobra.Command{
		Use: "log [TEAM]", Short: "Show what happened, all of it",
		Long: "Show the history of a team, the oldest first. With --follow it goes on with what happens until the " +
			"team has ended or you\ninterrupt it. With --json it prints an array of records, or with --follow one " +
			"record a line.",
	}, func(c *cobra.Command, d opened, _ []string) error {
		stays()
		ctx := c.Context()
		records, between := d.Read(ctx, after), ","
		if follow {
			records, between = d.Watch(ctx, after), ""
		}
		if a.json && !follow {
			a.out.Printf("[")
		}
		first := true
		for r, err := range records {
			if err != nil {
				if follow && ctx.Err() != nil {
					return nil
				}
				return err
			}
			if err := a.printRecord(r, first, between); err != nil {
				return err
			}
			first = false
			if follow && r.Seq == d.Seq() && ended(d.Team()) {
				break
			}
			if follow && r.Seq > d.Seq() {
				if d.Refresh(ctx); ended(d.Team()) && d.Seq() == r.Seq {
					break
				}
			}
		}
		if a.json && !follow {
			a.out.Printf("]\n")
		}
		return nil
	})
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what happens")
	c.Flags().Int64Var(&after, "after", 0, "begin after this seq")
	return c
}

func ended(t team.Team) bool { return t.Ended() }

func (a *app) printRecord(r *team.Record, first bool, between string) error {
	if !a.json {
		return writeRecord(a.out.Writer, r)
	}
	if between == "" {
		return a.out.Value(r)
	}
	out, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if !first {
		out = append([]byte(between), out...)
	}
	_, err = a.out.JSON().Write(out)
	return err
}

// writeRecord writes a record for people: a line for each thing that happened.
func writeRecord(w *sanitize.Writer, r *team.Record) error {
	for _, line := range render.Lines(r) {
		if err := w.Printf("%6d  %s  %s\n", r.Seq, time.UnixMilli(int64(r.At)).Format("2006-01-02 15:04:05"),
			line); err != nil {
			return err
		}
	}
	return nil
}
