package api_test

import (
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/replica"
	"cadre/internal/server/api"
	"cadre/internal/team"
)

// FuzzValidRef checks that a text which may stand for a team is one plain word in a path, an
// address and a command line, and that each name and each id of a team may.
func FuzzValidRef(f *testing.F) {
	name := strings.Repeat("a", team.MaxName)
	for _, ref := range []string{"", "demo", "Demo_2", "demo-", "demo-x", "code-review", "-rf", ".", "..", "../x",
		"demo/..", "demo-../x", "demo-x/y", `demo\x`, "demo\x00", "demo ", "demo\n", "démo", "demo-é", "demo%2f",
		"demo?x", "demo-~", "C:",
		name, name + "a", name + "-" + name[1:], strings.Repeat("a-", team.MaxName) + "b"} {
		f.Add(ref)
	}
	id := "-" + strings.ToLower(replica.NewID())
	f.Fuzz(func(t *testing.T, ref string) {
		if team.ValidName(ref) && (!api.ValidRef(ref) || !api.ValidRef(ref+id)) {
			t.Errorf("%q may be the name of a team, and %q its id", ref, ref+id)
		}
		if !api.ValidRef(ref) {
			return
		}
		const root = "/home/teams"
		switch {
		case len(ref) > 2*team.MaxName || strings.HasPrefix(ref, "-"):
			t.Errorf("%q is accepted", ref)
		case filepath.Dir(filepath.Join(root, ref)) != root || filepath.Base(ref) != ref || !filepath.IsLocal(ref):
			t.Errorf("%q leads to %s", ref, filepath.Join(root, ref))
		case url.PathEscape(ref) != ref || path.Clean("/v1/teams/"+ref) != "/v1/teams/"+ref:
			t.Errorf("%q is another text in an address", ref)
		}
	})
}
