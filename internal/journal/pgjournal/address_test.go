package pgjournal_test

import (
	"strings"
	"testing"

	"cadre/internal/journal/pgjournal"
)

// TestLocate checks what an address says of the place, and which addresses are refused.
func TestLocate(t *testing.T) {
	for dsn, want := range map[string]string{
		"postgres://me:secret@localhost/work":                       "cadre: the database work at localhost:5432, schema cadre",
		"postgres://me@127.0.0.1/work?search_path=shop":             "shop: the database work at 127.0.0.1:5432, schema shop",
		"host=/var/run/postgresql user=me":                          "cadre: the database me at /var/run/postgresql:5432, schema cadre",
		"postgres://me:secret@db.example/work?sslmode=verify-full":  "cadre: the database work at db.example:5432, schema cadre",
		"postgres://me:secret@db.example/work":                      "!the database at db.example would not be verified: add sslmode=verify-full",
		"postgres://me:secret@db.example/work?sslmode=require":      "!sslmode=verify-full",
		"postgres://me:secret@localhost,db.example/work":            "!db.example would not be verified",
		"postgres://me:secret@localhost/work?search_path=a,b":       "!one schema",
		"postgres://me:secret@localhost/work?search_path=pg_broken": "!must not begin with pg_",
		"postgrs://me:secret@localhost/work":                        "!begins with postgrs://, and not with postgres://",
		"postgres://me:secret@localhost:no/work":                    "!the address of the database",
	} {
		at, err := pgjournal.Locate(dsn)
		got := at.Schema + ": " + at.Called
		if err != nil {
			got = "!" + err.Error()
		}
		if refused, is := strings.CutPrefix(want, "!"); is && !strings.Contains(got, refused) || !is && got != want {
			t.Errorf("%s is %s, want %s", dsn, got, want)
		}
		if strings.Contains(got, "secret") {
			t.Errorf("%s shows the password: %s", dsn, got)
		}
	}
}
