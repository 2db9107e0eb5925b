package run

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cadre/internal/git"
	"cadre/internal/render/report"
	"cadre/internal/run/teamfile"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// compose makes the report of the team's present state.
func (l *Lead) compose(ctx context.Context, short error) (string, error) {
	r := l.content(ctx, short)
	var text strings.Builder
	err := report.Markdown(&text, r)
	return text.String(), err
}

// results returns the results that the report shows, and nothing else of it.
func (l *Lead) results(ctx context.Context) (string, error) {
	var text strings.Builder
	err := report.Results(&text, l.content(ctx, nil))
	return text.String(), err
}

// content returns what the report has.
func (l *Lead) content(ctx context.Context, short error) report.Report {
	why := ""
	if short != nil {
		why = short.Error()
	}
	var r report.Report
	l.Team.View(func(s *team.State) {
		t := s.Team()
		r = report.Report{Title: l.Title, Goal: t.Goal, Team: t.Name, TeamID: t.ID, Lead: t.Lead, Dir: t.Dir,
			Started: clock(t.CreatedAt), Finished: clock(t.UpdatedAt), Words: t.LastWords,
			Usage: report.Usage{Tokens: t.Usage.Tokens(), USD: float64(t.Usage.CostMicroUSD) / 1e6}}
		r.Short = why
		for _, m := range s.Members() {
			if m.Name != t.Lead {
				r.Members = append(r.Members, report.Member{Name: m.Name, Agent: m.Agent, Role: m.Role})
			}
		}
		keys := map[string]string{}
		for task := range s.Tasks() {
			r.Tasks = append(r.Tasks, summary(s, task, why))
			keys[fileID(task)] = task.Called()
		}
		for _, id := range l.Sections {
			if task, ok := keys[id]; ok {
				r.Sections = append(r.Sections, task)
			}
		}
		for task := range s.Tasks() { // also tasks that were added while it ran
			if task.Verifies != "" { // the task that it verifies has the verdict
				continue
			}
			if name := fileID(task); !slices.Contains(l.Sections, name) && !slices.Contains(l.LeftOut, name) {
				r.Sections = append(r.Sections, task.Called())
			}
		}
	})
	r.Commit = commit(ctx, r.Dir)
	return r
}

func summary(st *team.State, t team.Task, why string) report.Task {
	s := report.Task{ID: t.Called(), Subject: t.Subject, Attempts: int(t.Attempts), Member: t.Owner,
		BlockedBy: t.WaitsFor("")}
	switch {
	case t.Skipped != "":
		s.Outcome, s.Reason = report.Skipped, t.Skipped
	case t.Status == team.Completed:
		sum := t.Summary()
		s.Outcome, s.Member, s.Result, s.Words = report.Done, t.CompletedBy, sum.Did, sum.Words
		s.Files, s.Checked = sum.Changed(func(name string) string { return name }), strings.Join(sum.Checked, "; ")
		if t.Verify != nil {
			for _, v := range st.Votes(t.ID) {
				s.Verdicts = append(s.Verdicts, report.Verdict{Words: v.Words, Reason: v.Reason})
			}
		}
		if t.StartedAt != 0 {
			s.Duration = t.CompletedAt.Sub(t.StartedAt)
		}
	case t.OutOfRetries():
		s.Outcome, s.Reason, s.Output = report.Failed, t.Failure, t.Result
		if n, _ := fmt.Sscanf(t.Failure, "exit status %d", &s.ExitCode); n == 1 {
			s.Reason = "" // the report has its own sentence for that
		}
	case t.Submission != nil:
		s.Outcome, s.Reason = report.Unfinished, fmt.Sprintf("its result is being verified, in round %d of %d",
			t.Submission.Round, t.VerifyRounds())
		s.BlockedBy = nil
	case t.Attempts > 0:
		s.Outcome, s.Reason = report.Unfinished, why
	default:
		s.Outcome, s.Reason = report.NotRun, why
	}
	return s
}

func clock(t team.Time) time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(t)).UTC()
}

// commit returns the commit that is checked out in the directory, "" if unknown.
func commit(ctx context.Context, dir string) string {
	procs, err := proc.Open("")
	if err != nil {
		return ""
	}
	defer procs.Close(context.WithoutCancel(ctx))
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	id, err := git.Runner{Procs: procs, Dir: dir}.Text(ctx, "rev-parse", "--short", "HEAD")
	if err != nil {
		return ""
	}
	return id
}

// fileID returns the task's id in its team file; "" for a task that was added later. Tasks from
// before tasks had names keep it in their metadata.
func fileID(t team.Task) (id string) {
	if t.Name != "" {
		return t.Name
	}
	json.Unmarshal(t.Metadata[team.FileIDKey], &id)
	return id
}

// Hooks returns the commands of a team file in the core's type.
func Hooks(h teamfile.Hooks) []team.Hook {
	var all []team.Hook
	for _, event := range []string{"TeammateIdle", "TaskCreated", "TaskCompleted"} {
		for _, group := range h[event] {
			for _, one := range group.Hooks {
				all = append(all, team.Hook{Event: event, Command: one.Command, Timeout: one.Timeout})
			}
		}
	}
	return all
}

func checks(list []teamfile.Check) []team.Check {
	var all []team.Check
	for _, c := range list {
		all = append(all, team.Check{Name: c.Name, Command: c.Run, Timeout: c.Timeout})
	}
	return all
}

// placeForReport refuses a path at which no file can be written, before the work begins.
func (a *attempt) placeForReport() error {
	path := a.reportPath()
	if path == "" {
		return nil
	}
	if is, err := os.Stat(path); err == nil && is.IsDir() {
		return team.Refuse(team.Invalid, "the report cannot be written: %s is a directory", path)
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		is, err := os.Stat(dir)
		switch {
		case err == nil && !is.IsDir():
			return team.Refuse(team.Invalid, "the report cannot be written to %s: %s is not a directory", path, dir)
		case err == nil, dir == filepath.Dir(dir): // what is missing below is created with the report
			return nil
		}
	}
}

// reportPath returns the path of the report; "" for a team whose report is the result of a task.
func (a *attempt) reportPath() string {
	if a.nested != nil {
		return ""
	}
	path := a.Report
	if path == "" {
		path = a.File.Report.File
	}
	if path == "" {
		path = a.File.Name + "-report.md"
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.Dir, path)
	}
	return path
}
