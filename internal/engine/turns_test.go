package engine

import (
	"errors"
	"testing"

	"cadre/internal/layout"
	"cadre/internal/team"
)

// TestMachineTurns: of the limits in the settings and in the environment the smaller one counts.
func TestMachineTurns(t *testing.T) {
	for _, c := range []struct {
		settings, most int
		variable, by   string
	}{
		{0, 0, "", ""}, {3, 3, "", "maxParallel in settings.json"}, {0, 2, "2", "CADRE_MAX_PARALLEL"},
		{3, 2, "2", "CADRE_MAX_PARALLEL"}, {3, 3, "4", "maxParallel in settings.json"},
	} {
		t.Setenv(MaxParallelVariable, c.variable)
		of := &Team{engine: &Engine{Home: layout.Home{Root: "/home"},
			MachineTurns: func() (int, error) { return c.settings, nil }}}
		limit, err := of.turns()
		if err != nil || limit.Most != c.most || limit.Most > 0 && limit.By != c.by || limit.Dir != "/home/turns" {
			t.Errorf("%d in the settings and %q: %+v, %v", c.settings, c.variable, limit, err)
		}
	}
	t.Setenv(MaxParallelVariable, "")
	wrong := errors.New("settings.json:1:1: wrong")
	of := &Team{engine: &Engine{MachineTurns: func() (int, error) { return 0, wrong }}}
	if _, err := of.turns(); !errors.Is(err, wrong) {
		t.Errorf("settings with a mistake: %v", err)
	}
	t.Setenv(MaxParallelVariable, "many")
	of = &Team{engine: &Engine{}}
	if _, err := of.turns(); team.CodeOf(err) != team.Invalid {
		t.Errorf("a wrong variable: %v", err)
	}
}
