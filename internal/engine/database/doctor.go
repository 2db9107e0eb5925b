package database

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cadre/internal/engine"
	"cadre/internal/journal/pgjournal"
	"cadre/internal/team"
)

// lookTime bounds how long a database may take to say what it is.
const lookTime = 15 * time.Second

// Doctor checks whether teams can live in the database.
func (d *Database) Doctor(ctx context.Context) []engine.Finding {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	is, err := d.at.Look(ctx)
	if err != nil {
		return []engine.Finding{{Name: "database", Needed: true, Wrong: true, Detail: err.Error()}}
	}
	return findings(d.at.Called, is)
}

// findings judges what a database says of itself.
func findings(called string, is pgjournal.Server) []engine.Finding {
	all := []engine.Finding{{Name: "database", Needed: true, OK: is.Number >= oldest, Wrong: is.Number < oldest,
		Detail: fmt.Sprintf("PostgreSQL %s, %s, round trip %.1f ms", is.Version, called,
			float64(is.RoundTrip.Microseconds())/1000)}}
	if !all[0].OK {
		all[0].Detail += "; teams need version 14 or later"
	}
	check := func(name string, ok bool, good, bad string) {
		f := engine.Finding{Name: name, Needed: true, OK: ok, Wrong: !ok, Detail: bad}
		if ok {
			f.Detail = good
		}
		all = append(all, f)
	}
	all = append(all, tables(is.Schema, pgjournal.Version()))
	check("fsync", is.Fsync, "on", "off: a loss of power can destroy every team. Set fsync = on")
	check("full_page_writes", is.FullPageWrites, "on", "off: a loss of power can damage pages. Set full_page_writes = on")
	check("role of the server", !is.Recovery, "primary", "standby: it takes no records. Give the address of the primary")
	check("its clock", is.Skew.Abs() <= mostSkew, fmt.Sprintf("%s from ours", team.Span(is.Skew.Abs())),
		fmt.Sprintf("%s from ours: times in the history are wrong. Leases do not depend on it", team.Span(is.Skew.Abs())))
	all[len(all)-1].Needed = false
	return append(all, engine.Finding{Name: "standbys", OK: true, Detail: standbys(is)})
}

// tables judges the version of the tables.
func tables(is, want int) engine.Finding {
	f := engine.Finding{Name: "its tables", Needed: true, OK: is == want, Wrong: is != want,
		Detail: fmt.Sprintf("version %d", is)}
	switch {
	case is == 0:
		f.Detail, f.Hints = "the schema has no tables of cadre", []team.Hint{{Action: team.ActInitStore}}
	case is < want:
		f.Detail += fmt.Sprintf(", and this cadre needs %d", want)
		f.Hints = []team.Hint{{Action: team.ActMigrateStore}}
	case is > want:
		f.Detail += fmt.Sprintf(", and this cadre knows %d; update it", want)
	}
	return f
}

const (
	oldest   = 140000           // the oldest version, as server_version_num
	mostSkew = 10 * time.Second // of two clocks
)

// standbys says what survives the loss of the server.
func standbys(is pgjournal.Server) string {
	var parts []string
	switch {
	case is.Standbys < 0:
		parts = append(parts, "their number is not shown to this role")
	case is.Standbys == 0:
		parts = append(parts, "none: what is lost with this server is in its backups, or nowhere")
	default:
		parts = append(parts, team.Count(is.Standbys, "standby"))
	}
	switch {
	case is.Needed == "" && is.Standbys > 0:
		parts = append(parts, "commits wait for none, so a promotion can lose the last records")
	case is.Needed != "":
		parts = append(parts, fmt.Sprintf("commits wait for %s (synchronous_commit = %s)", is.Needed, is.SynchronousCommit))
	}
	return strings.Join(parts, "; ")
}
