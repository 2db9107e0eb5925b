package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"cadre/internal/engine"
	"cadre/internal/inspect/attention"
	"cadre/internal/server/api"
	"cadre/internal/server/auth"
	"cadre/internal/server/coordinator"
	"cadre/internal/server/metrics"
	"cadre/internal/team"
)

// stats has the figures of the home's teams. It reads their histories when it is asked, so that it
// costs nothing otherwise.
type stats struct {
	metrics.Collector

	mu     sync.Mutex
	teams  map[string]string // ids of the teams that were found last, by their folders
	failed map[string]string // why a team could not be read, by its id; said once
}

// collect reads what was recorded of the teams since the last call. A team that cannot be read
// keeps its last figures. One that was removed leaves the gauges.
func (s *stats) collect(ctx context.Context, e *engine.Engine, found []attention.Found, log func(string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(found)
	for _, f := range found {
		if f.Team.ID == "" { // its files are damaged, which attention says
			continue
		}
		err := s.read(ctx, e, f.Team.ID)
		if team.CodeOf(err) == team.NotFound { // it was removed just now
			continue
		}
		if err != nil && ctx.Err() == nil && s.failed[f.Team.ID] != err.Error() {
			if s.failed == nil {
				s.failed = map[string]string{}
			}
			s.failed[f.Team.ID] = err.Error()
			log(fmt.Sprintf("the metrics lack team %s: %v", f.Team.Name, err))
		}
	}
}

// forget removes the teams from the gauges that are no longer found.
func (s *stats) forget(found []attention.Found) {
	before := s.teams
	s.teams = map[string]string{}
	for _, f := range found {
		s.teams[f.Folder] = cmp.Or(f.Team.ID, before[f.Folder]) // a damaged team shows no id
	}
	for folder, id := range before {
		if s.teams[folder] != id {
			s.Forget(id)
		}
	}
}

func (s *stats) read(ctx context.Context, e *engine.Engine, id string) error {
	t, err := e.Look(ctx, id)
	if err != nil {
		return err
	}
	defer t.Close()
	for r, err := range t.Read(ctx, s.Seq(id)) {
		if err == nil {
			err = s.Add(id, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// refused counts a claim that was refused because another member has the task.
func (s *Server) refused(code team.Code) {
	if code == team.Conflict {
		s.stats.Conflict()
	}
}

// totals returns the totals of all teams for the status of the server.
func (s *Server) totals() (coordinator.Metrics, coordinator.TeamMetrics) {
	found, _ := s.keeps.Found()
	ctx, cancel := context.WithTimeout(context.Background(), totalsTime)
	defer cancel()
	s.stats.collect(ctx, s.Engine, found, s.Log)
	t := s.stats.Totals()
	return coordinator.Metrics{TotalSessionsSpawned: t.SessionsSpawned, TotalTasksProcessed: t.TasksProcessed,
			TotalTokensUsed: t.TokensUsed, AverageSessionDuration: float64(t.AverageSession.Milliseconds()),
			SuccessRate: t.SuccessRate},
		coordinator.TeamMetrics{TotalTeamsCreated: t.TeamsCreated, TotalTeammatesSpawned: t.TeammatesSpawned,
			TotalTeamTasksCompleted: t.TasksCompleted, TotalTeamMessages: t.Messages}
}

// totalsTime bounds how long the totals may take to read.
const totalsTime = 10 * time.Second

// metrics answers a scrape of Prometheus.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	if who := auth.From(r.Context()); !who.IsUser() {
		api.Refuse(w, r, api.ProblemOf(team.Refuse(team.Denied, "the metrics are for the user: they count all teams "+
			"of this machine")))
		return
	}
	found, _ := s.keeps.Found()
	s.stats.collect(r.Context(), s.Engine, found, s.Log)
	g := metrics.Gauges{Now: team.Time(time.Now().UnixMilli()), Outside: map[string]*team.Outside{},
		StreamLag: s.api.Lag()}
	for _, f := range found {
		g.Attention = append(g.Attention, f.Items...)
		g.Outside[f.Team.ID] = f.Outside
		g.JournalBytes += size(filepath.Join(s.Engine.Home.Root, "teams", f.Folder, "journal"))
	}
	w.Header().Set("Content-Type", metrics.ContentType)
	s.stats.Write(w, g)
}

// size returns the bytes of the files in a folder.
func size(dir string) (n int64) {
	filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		if is, err := d.Info(); err == nil || !errors.Is(err, os.ErrNotExist) && is != nil {
			n += is.Size()
		}
		return nil
	})
	return n
}
