package sanitize_test

import (
	"os/exec"
	"testing"

	"cadre/internal/render/sanitize"
)

// TestQuote: a real shell reads a quoted text back as one word.
func TestQuote(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "/srv/app", "a b", "it's", "''", "$HOME", "`id`", "a\nb", `back\slash`, "-n", "*",
		"~", "a;b", "#", "\"", "ü", "!x"} {
		out, err := exec.Command("sh", "-c", `printf '%s:' x`+sanitize.Quote(text)+" "+sanitize.Quote(text)).Output()
		if err != nil || string(out) != "x"+text+":"+text+":" {
			t.Errorf("%q is quoted as %s, which is read as %q: %v", text, sanitize.Quote(text), out, err)
		}
	}
	if got := sanitize.Quote("/srv/my-app_1/a.txt"); got != "/srv/my-app_1/a.txt" {
		t.Errorf("a word that needs no quotes became %s", got)
	}
}
