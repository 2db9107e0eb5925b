package acp

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"cadre/internal/agent"
)

// TestAside checks that standard error is kept except for reports of trouble, in whatever pieces it
// arrives.
func TestAside(t *testing.T) {
	t.Parallel()
	const said = "a warning\n" + asideMark + `{"session":"s","retry":1,"text":"Overloaded"}` + "\n" + asideMark +
		"no JSON\n\n" + asideMark + `{"session":"s","status":401,"text":"no key"}` + "\nthe end"
	for size := 1; size <= len(said); size++ {
		var keep bytes.Buffer
		var told []trouble
		a := &aside{keep: &keep, tell: func(t trouble) { told = append(told, t) }}
		for piece := range slices.Chunk([]byte(said), size) {
			if n, err := a.Write(slices.Clone(piece)); n != len(piece) || err != nil {
				t.Fatal(n, err)
			}
		}
		if want := []trouble{{Session: "s", Retry: 1, Text: "Overloaded"},
			{Session: "s", Status: 401, Text: "no key"}}; !slices.Equal(told, want) {
			t.Fatalf("in pieces of %d it told %+v", size, told)
		}
		if got := strings.Fields(keep.String()); strings.Join(got, " ") != "a warning the end" {
			t.Fatalf("in pieces of %d it kept %q", size, keep.String())
		}
	}
	var keep bytes.Buffer
	a := &aside{keep: &keep, tell: func(trouble) { t.Error("it told something") }}
	a.Write([]byte(asideMark + strings.Repeat("x", maxAside)))
	if len(a.line) > 0 || keep.Len() <= maxAside {
		t.Errorf("a line without end is held: %d bytes", len(a.line))
	}
}

func TestTroubleKinds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		trouble trouble
		kind    agent.ProblemKind
		words   string
	}{
		{trouble{Status: 401, Text: "no"}, agent.ProblemLogin, "API error 401: no"},
		{trouble{Status: 403, Text: "no"}, agent.ProblemLogin, "API error 403: no"},
		{trouble{Retry: 2, Text: "Too Many Requests"}, agent.ProblemLimit, "Too Many Requests; it tries again (2)"},
		{trouble{Text: "fetch failed"}, agent.ProblemModel, "fetch failed"},
	} {
		if p := c.trouble.problem(); p.Kind != c.kind || p.Text != c.words {
			t.Errorf("%+v is %+v", c.trouble, p)
		}
	}
}
