package teams_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cadre/pkg/teams"
)

// TestTemplates: a program lists the templates and loads one with values, and none of a project
// that the user does not trust.
func TestTemplates(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	m, err := teams.New(teams.Options{Home: home, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	folder := filepath.Join(dir, ".cadre", "templates")
	text := "name: ours\nmembers: [{name: w}]\ntasks: [{id: a, run: 'true'}]\n"
	if err := errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, "ours.yaml"), []byte(text),
		0o600)); err != nil {
		t.Fatal(err)
	}
	all, err := m.Templates()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(one teams.Template) bool { return one.Name == "fix" })
	if i < 0 || all[i].Source != "built in" || !slices.ContainsFunc(all[i].Parameters, func(p teams.Parameter) bool {
		return p.Name == "rounds" && p.Type == "int" && p.Default == "5" && !p.Required
	}) {
		t.Errorf("the templates are %+v", all)
	}
	f, err := m.LoadTemplate("fix", teams.Setting{Name: "rounds", Text: "2"}, teams.Setting{Name: "about", Text: "$(x)"})
	if err != nil || f.Config.Name != "fix" || f.Config.Tasks[0].Rounds != 2 ||
		!slices.Contains(f.Config.Tasks[0].RunEnv, "CADRE_PARAM_ABOUT=$(x)") {
		t.Errorf("%+v, %v", f, err)
	}
	for name, want := range map[string]error{"ours": teams.ErrDenied, "none": teams.ErrNotFound,
		"feature": teams.ErrInvalid} {
		if _, err := m.LoadTemplate(name); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}

// TestNestedTeamFile: a program runs a team file with a team in the team, and sees where it is.
func TestNestedTeamFile(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	m, err := teams.New(teams.Options{Home: home, Dir: dir})
	ok(t, err)
	t.Cleanup(func() { m.Close() })
	for name, text := range map[string]string{
		"up.yaml": "name: up\nmaxDepth: 1\nmembers: [{name: sub, agent: team, file: in.yaml}]\n" +
			"tasks: [{id: do, owner: sub, description: Do it.}]\n",
		"in.yaml": "name: in\nmembers: [{name: w, agent: shell}]\ntasks: [{id: one, run: echo done by hand}]\n",
	} {
		ok(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	f, err := teams.LoadTeamFile(filepath.Join(dir, "up.yaml"))
	ok(t, err)
	of, err := m.CreateTeam(limited(t), f.Config)
	ok(t, err)
	r, err := of.Run(limited(t), f.Run)
	ok(t, err)
	if r.Completed != 1 || !strings.Contains(r.Report, "done by hand") {
		t.Errorf("%+v", r)
	}
	all, err := m.Teams(limited(t))
	ok(t, err)
	if i := slices.IndexFunc(all, func(o teams.Overview) bool { return o.Team.Name == "up-sub" }); i < 0 {
		t.Errorf("the teams are %+v", all)
	}
}
