package redact

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestRules checks that every rule of the file is parsed whole. A rule without a shape or keywords
// would silently find nothing.
func TestRules(t *testing.T) {
	tables := strings.Count(gitleaks, "\n[[rules]]\n")
	left := strings.Count(gitleaks, "\npath = ") + 1 // and the generic one
	all := catalog().all
	if len(all) != tables-left || len(all) < 200 {
		t.Errorf("%d rules of %d", len(all), tables)
	}
	seen := map[string]bool{}
	var groups, harmless int
	for _, r := range all {
		if r.id == "" || seen[r.id] || r.shape == nil || len(r.keywords) == 0 {
			t.Errorf("%+v", r)
			continue
		}
		seen[r.id] = true
		r.shape() // panics if the expression is invalid
		for _, e := range r.harmless {
			e()
			harmless++
		}
		if r.group > 0 {
			groups++
		}
		for _, word := range r.keywords {
			if len(word) < 2 || word != strings.ToLower(word) {
				t.Errorf("%s has the keyword %q", r.id, word)
			}
		}
	}
	if groups == 0 || harmless == 0 {
		t.Errorf("%d rules say which group the secret is, %d have exceptions", groups, harmless)
	}
}

// TestRulesAreNamed checks that the comment in rules.go names the embedded file.
func TestRulesAreNamed(t *testing.T) {
	source, err := os.ReadFile("rules.go")
	if err != nil {
		t.Fatal(err)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(gitleaks))); !strings.Contains(string(source), sum) {
		t.Errorf("rules.go does not name the file with the hash %s", sum)
	}
}

// TestServices redacts secrets that only the rules of gitleaks know, and leaves texts that resemble
// them.
func TestServices(t *testing.T) {
	for text, want := range map[string]string{
		"use lin" + "_api_4f8Ks02mQz71LpXw9Rt3Vb6Nc5Jh0Dg8Ye2Ua1Zi now":                    "use [redacted] now",
		"discord: '" + "7fe31c9a04d85b26e1fa930c7d46b2850ce19f73a8d4560b2e97c1f348da605b'": "discord: '[redacted]'",
		"A3-" + "7KQX2M-9WD4ZT-H6LPB-R3NVF-8CYJE-XW2KD":                                    "[redacted]",
		"EZ" + "AK7fe31c9a04d85b26e1fa930c7d46b2850ce19f73a8d4560b2e97c1":                  "[redacted]",
	} {
		got := Text(text)
		if got != want {
			t.Errorf("%q gives %q, not %q", text, got, want)
		}
		if again := Text(got); again != got {
			t.Errorf("%q gives %q when it is redacted again", got, again)
		}
		if !Suspicious(text) {
			t.Errorf("%q is not looked at", text)
		}
	}
	for _, text := range []string{
		"lin" + "_api_" + strings.Repeat("a", 40), // an example
		"discord: '${DISCORD_SECRET}'",
		"linear and discord are services; see internal/discord/client_test.go",
	} {
		if got := Text(text); got != text {
			t.Errorf("%q gives %q", text, got)
		}
	}
}

// BenchmarkText redacts a text without secrets, as nearly every text is.
func BenchmarkText(b *testing.B) {
	text := strings.Repeat("Look into module 17 and mend what is broken there. Report what you changed, and why. ", 100)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if Text(text) != text {
			b.Fatal("no secret was found")
		}
	}
}
