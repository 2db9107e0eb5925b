package templates_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/layout"
	"cadre/internal/run/templates"
)

const file = "# %s.\nname: x\nmembers: [{name: w}]\ntasks: [{id: a, run: 'true'}]\n"

func write(t *testing.T, text string, parts ...string) {
	t.Helper()
	path := filepath.Join(parts...)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestNames: a name means the template nearest to the work, and one that is not trusted stands
// behind the others.
func TestNames(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	p := templates.Places{Home: layout.Home{Root: home}, Dir: dir}
	source := func(name string) string {
		t.Helper()
		found, err := p.Usable(name)
		if err != nil {
			return err.Error()
		}
		return found.Source
	}
	expect := func(when, name, want string) {
		t.Helper()
		if got := source(name); got != want {
			t.Errorf("%s, %s is %s, want %s", when, name, got, want)
		}
	}
	expect("at first", "health", templates.BuiltIn)
	expect("at first", "helth", "unknown template helth, did you mean health?")
	write(t, file, home, "templates", "health.yaml")
	expect("with one of the user", "health", templates.User)
	write(t, file, home, "templates", "short.yml")
	expect("with the short ending", "short", templates.User)
	write(t, "name: [", home, "templates", "health.yml")
	expect("with another of the user", "health", templates.User)
	write(t, file, dir, ".cadre", "templates", "health.yaml")
	write(t, file, dir, ".cadre", "templates", "ours.yaml")
	write(t, file, dir, ".cadre", "templates", "not a name.yaml")
	expect("with one that is not trusted", "health", templates.User)
	if _, err := p.Usable("ours"); err == nil {
		t.Error("a template that is not trusted can be used")
	}
	write(t, "name: [", dir, ".cadre", "templates", "broken.yaml")
	found, broken, err := p.Untrusted()
	if err != nil || len(found) != 2 {
		t.Fatalf("not trusted are %v, %v", found, err)
	}
	if len(broken) != 2 || broken[0].Name != "broken" || broken[1].Name != "not a name" {
		t.Errorf("broken are %v", broken)
	}
	// What is trusted is the text that was read, not the one that is there later.
	write(t, file+"clean: true\n", dir, ".cadre", "templates", "ours.yaml")
	if err := p.Trust(found, time.Now()); err != nil {
		t.Fatal(err)
	}
	expect("when it is trusted", "health", templates.Project)
	if _, err := p.Usable("ours"); err == nil {
		t.Error("a text that nobody saw is trusted")
	}
}

// TestBrokenTemplate: a template with mistakes does not hide the others.
func TestBrokenTemplate(t *testing.T) {
	home := t.TempDir()
	write(t, "name: [", home, "templates", "bad.yaml")
	if err := os.Mkdir(filepath.Join(home, "templates", "folder.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(home, "templates", "link.yaml")); err != nil {
		t.Fatal(err)
	}
	p := templates.Places{Home: layout.Home{Root: home}, Dir: t.TempDir()}
	for name, want := range map[string]string{"folder": "folder.yaml is a directory, not a regular file",
		"link": "link.yaml is a symbolic link to nowhere, which does not exist"} {
		if _, err := p.Usable(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	all, err := p.All()
	if err != nil || !slices.ContainsFunc(all, func(one templates.Template) bool { return one.Name == "health" }) {
		t.Fatalf("%v, %v", all, err)
	}
	for _, one := range all {
		if _, err := one.Unset(); (err != nil) != (one.Source == templates.User) {
			t.Errorf("%s: %v", one.Name, err)
		}
	}
}

// TestNoProject: without a project there are no templates of one, whatever the directory of the
// process has.
func TestNoProject(t *testing.T) {
	dir := t.TempDir()
	write(t, "name: here\n", dir, ".cadre", "templates", "here.yaml")
	t.Chdir(dir)
	all, err := templates.Places{Home: layout.Home{Root: t.TempDir()}}.All()
	if err != nil || len(all) == 0 {
		t.Fatalf("%d templates, %v", len(all), err)
	}
	for _, one := range all {
		if one.Source != templates.BuiltIn {
			t.Errorf("%s is from %s", one.Name, one.Source)
		}
	}
}

// TestTemplatesInTemplates: a template names no file, and those that its members name must be
// trusted before it runs, as it must itself.
func TestTemplatesInTemplates(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	p := templates.Places{Home: layout.Home{Root: home}, Dir: dir}
	const outer = "# %s.\nname: x\nmaxDepth: 1\nmembers: [{name: sub, agent: team, "
	write(t, outer+"file: y.yaml}]\ntasks: [{id: a}]\n", home, "templates", "filed.yaml")
	write(t, outer+"template: inner}]\ntasks: [{id: a}]\n", dir, ".cadre", "templates", "outer.yaml")
	write(t, file, dir, ".cadre", "templates", "inner.yaml")
	write(t, outer+"goal: g, lead: 'acp:touch x'}]\ntasks: [{id: a}]\n", home, "templates", "led.yaml")
	find := func(name string) templates.Template {
		t.Helper()
		found, err := p.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	const refused = "filed.yaml:4:42: a template takes no file:"
	for what, read := range map[string]func() error{
		"to run":  func() error { _, _, err := find("filed").File(); return err },
		"to list": func() error { _, err := find("filed").Unset(); return err },
		"alone":   func() error { _, err := find("filed").Alone(); return err },
	} {
		if err := read(); err == nil || !strings.Contains(err.Error(), refused) {
			t.Errorf("%s: got %v, want %s", what, err, refused)
		}
	}
	if f, err := find("led").Unset(); err != nil || !slices.Contains(templates.Commands(f), "touch x") {
		t.Errorf("the command of the lead is not shown: %v", err)
	}
	trust := func(names ...string) {
		t.Helper()
		var these []templates.Template
		for _, name := range names {
			these = append(these, find(name))
		}
		if err := p.Trust(these, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := find("outer").Unset(); err != nil {
		t.Errorf("before anything is trusted it cannot be shown: %v", err)
	}
	trust("outer")
	_, _, err := find("outer").File()
	if of, is := errors.AsType[*templates.UntrustedError](err); !is || of.Name != "inner" {
		t.Errorf("it runs with one that is not trusted: %v", err)
	}
	trust("outer", "inner")
	f, _, err := find("outer").File()
	if err != nil || len(f.Members[0].Nested.Digest) != 64 {
		t.Errorf("%+v, %v", f, err)
	}
}
