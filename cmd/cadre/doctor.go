package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// version is set by the build of a release.
var version = "development"

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: exactly(0),
		RunE: func(*cobra.Command, []string) error { return a.printVersion() },
	}
}

// built describes the build of this program.
type built struct {
	Version  string `json:"version"`            // version of cadre
	Commit   string `json:"commit,omitempty"`   // commit that it was built from; "" if unknown
	Modified bool   `json:"modified,omitempty"` // it was built from a work tree that differed from the commit
	Go       string `json:"go"`                 // Go version that built it
	Platform string `json:"platform"`           // operating system and architecture, as in linux/amd64
	Format   int    `json:"format"`             // version of the files of teams that it writes
}

// printVersion prints what the build says of this program.
func (a *app) printVersion() error {
	v := built{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Format: team.Version}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Commit = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	commit := ""
	if v.Commit != "" {
		commit = ", commit " + v.Commit[:min(12, len(v.Commit))]
	}
	if v.Modified {
		commit += ", modified"
	}
	return a.print(v, said("cadre %s%s, %s, %s, team format %d", v.Version, commit, v.Go, v.Platform, v.Format))
}

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Check that cadre can work here", Args: exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			checks := a.engine().Doctor(c.Context())
			if a.database != nil {
				checks = append(checks, a.database.Doctor(c.Context())...)
			}
			healthy := true
			for _, c := range checks {
				healthy = healthy && (c.OK || !c.Needed)
			}
			err := a.print(checks, func(w *sanitize.Writer) error {
				t := render.NewList()
				for _, c := range checks {
					mark := "ok"
					switch {
					case c.Wrong:
						mark = "wrong"
					case !c.OK:
						mark = "missing"
					case c.Login == engine.NotLoggedIn:
						mark = "log in"
					}
					t.Row(mark, c.Name, render.Helped(c.Detail, c.Hints))
				}
				return t.Write(w)
			})
			if err == nil && !healthy {
				return exit(hopeless)
			}
			return err
		},
	}
}
