package teamfiles

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestLeadKey checks that a message signed by the lead can be distinguished from a forged or
// modified one. Tests with Claude Code itself check that the format is right.
func TestLeadKey(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	key, err := ParseLeadKey(fmt.Sprintf("%d.%s", now.UnixMilli(), base64.RawURLEncoding.EncodeToString(der)))
	if err != nil {
		t.Fatal(err)
	}
	sign := func(e Entry) Entry {
		e.LeadSig = base64.RawURLEncoding.EncodeToString(ed25519.Sign(private, signed(e)))
		return e
	}
	good := sign(Entry{From: Lead, Text: "a <b> & \"c\"\n\x01\u2028é", Summary: "s", Timestamp: Stamp(now), MsgID: "m"})
	if want := `["claude-team-lead-entry-v1","m","team-lead","` + Stamp(now) + `","a <b> & \"c\"\n\u0001` + "\u2028é" +
		`","s",null,null]`; string(signed(good)) != want {
		t.Errorf("what is signed is %s, not %s", signed(good), want)
	}
	if !key.Signed(good) {
		t.Error("the lead's own message is not known")
	}
	for what, change := range map[string]func(*Entry){
		"its text": func(e *Entry) { e.Text += "." }, "its sender": func(e *Entry) { e.From = "bob" },
		"its id": func(e *Entry) { e.MsgID = "n" }, "no id": func(e *Entry) { e.MsgID = "" },
		"its time": func(e *Entry) { e.Timestamp = Stamp(now.Add(time.Second)) }, "its summary": func(e *Entry) {
			e.Summary = ""
		}, "a color": func(e *Entry) { e.Color = "blue" },
		"no signature":      func(e *Entry) { e.LeadSig = "" },
		"another":           func(e *Entry) { e.LeadSig = strings.Repeat("A", 86) },
		"an earlier team's": func(e *Entry) { e.Timestamp = Stamp(now.Add(-3 * time.Minute)); *e = sign(*e) },
	} {
		bad := good
		if change(&bad); key.Signed(bad) {
			t.Errorf("with %s changed it still passes", what)
		}
	}
	for _, wrong := range []string{"", "x", "12", "12.", "x." + base64.RawURLEncoding.EncodeToString(der), "12.AAAA"} {
		if _, err := ParseLeadKey(wrong); err == nil {
			t.Errorf("%q is a key", wrong)
		}
	}
}
