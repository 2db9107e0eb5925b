package server

import (
	"context"
	"iter"
	"os"
	"path/filepath"

	"cadre/internal/server/tracing"
	"cadre/internal/team"
)

// traces returns the exporter of the home's teams. It sends spans if the environment asks for them.
func (s *Server) traces() *tracing.Exporter {
	return tracing.New(tracing.Options{Environment: os.Getenv, Version: s.Version,
		Folder: filepath.Join(s.folder, "traces"), Log: s.Log, Teams: func() (all []tracing.Team) {
			found, _ := s.keeps.Found()
			for _, f := range found {
				if f.Team.ID != "" {
					all = append(all, tracing.Team{ID: f.Team.ID, Follow: s.follow(f.Team.ID)})
				}
			}
			return all
		}})
}

// follow returns a function that iterates over the records of a team. The team is open during the
// iteration.
func (s *Server) follow(id string) func(context.Context, int64) iter.Seq2[*team.Record, error] {
	return func(ctx context.Context, after int64) iter.Seq2[*team.Record, error] {
		return func(yield func(*team.Record, error) bool) {
			t, err := s.Engine.Look(ctx, id)
			if err != nil {
				yield(nil, err)
				return
			}
			defer t.Close()
			for r, err := range t.Watch(ctx, after) {
				if !yield(r, err) {
					return
				}
			}
		}
	}
}
