package main

import (
	"bytes"
	"strings"
	"testing"

	"cadre/internal/inspect/history"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// TestNewsLines prints the news of messages on a line each.
func TestNewsLines(t *testing.T) {
	var mail [2]history.MailboxMessage
	mail[0].News = []team.News{{Member: "ann", Text: "Bob is done.\nbob wrote the note plan."}}
	mail[1].News = []team.News{{Member: "ann", Text: "bob deleted the note plan."}}
	const want = "news: Bob is done.\nnews: bob wrote the note plan.\nnews: bob deleted the note plan.\n\n"
	var out bytes.Buffer
	if err := writeNews(sanitize.NewWriter(&out), "ann", mail[:]); err != nil || out.String() != want {
		t.Errorf("%q, %v", out.String(), err)
	}
	out.Reset()
	if err := writeMail(sanitize.NewWriter(&out), "ann", mail[0], 1); err != nil ||
		strings.Contains(out.String(), "↵") ||
		!strings.HasSuffix(out.String(), "\nnews: Bob is done.\nnews: bob wrote the note plan.\n\n") {
		t.Errorf("%q, %v", out.String(), err)
	}
}
