package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cadre/internal/server"
)

// install shows the unit of the server with these flags, and writes it if the person agrees.
func (s *serving) install(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return withWays(usage{errors.New("--install takes no teams: the server runs those that it ran before")},
			way{"add one later", "cadre serve TEAM"})
	}
	is, err := s.unitFor(c)
	if err != nil {
		return err
	}
	if s.json {
		if err := s.out.Value(is); err != nil {
			return err
		}
	} else {
		s.out.Printf("%s:\n\n", is.Path)
		for line := range strings.Lines(is.Text) {
			s.out.Printf("  %s\n", strings.TrimSuffix(line, "\n"))
		}
		s.out.Printf("\n")
	}
	if !s.yes {
		if err := s.confirm(c.Context(), "Write this file?",
			way{"write it without a question", "cadre serve --install --yes"}); err != nil {
			return err
		}
	}
	if err := is.Write(); err != nil {
		return err
	}
	if s.json {
		return nil
	}
	if left := leftOut(s.home.ForOurs(os.Environ())); len(left) > 0 {
		s.note("not in the file, although set here: " + strings.Join(left, ", ") +
			"; if the server or its sessions need one, add it to the file")
	}
	return s.out.Printf("written; to start the server now and at each login: %s\n", is.Start)
}

// unitFor returns the unit of this system for the server with the flags of the command.
func (s *serving) unitFor(c *cobra.Command) (_ server.Unit, err error) {
	words := []string{self(), "serve"}
	for _, name := range []string{"listen", "host", "tls-cert", "tls-key", "dir", "max-sessions", "heartbeat",
		"shutdown"} {
		f := c.Flags().Lookup(name)
		if !f.Changed && name != "dir" { // the system starts the server elsewhere
			continue
		}
		values := []string{f.Value.String()}
		if name == "host" {
			values = s.options.Hosts
		}
		for _, v := range values {
			switch name {
			case "dir", "tls-cert", "tls-key":
				if v, err = filepath.Abs(v); err != nil {
					return server.Unit{}, err
				}
			}
			words = append(words, "--"+name, v)
		}
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "CADRE_HOME=" + s.home.Root}
	if claude := os.Getenv("CLAUDE_CONFIG_DIR"); claude != "" {
		env = append(env, "CLAUDE_CONFIG_DIR="+claude)
	}
	return server.UnitOf(words, env)
}

// leftOut returns the names of the variables that a server or its sessions may need and that are
// not in the unit: they may be secrets, and others may read the file.
func leftOut(env []string) (names []string) {
	for _, one := range env {
		name, value, _ := strings.Cut(one, "=")
		upper := strings.ToUpper(name)
		if value != "" && (strings.HasPrefix(name, "OTEL_") || strings.HasSuffix(upper, "_PROXY") ||
			strings.HasSuffix(name, "_API_KEY") || strings.HasSuffix(name, "_AUTH_TOKEN") ||
			strings.HasSuffix(name, "_BASE_URL")) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
