package team

import (
	"strings"
	"testing"
)

// TestNamesOfAuthority checks that a new member cannot have a name that claims authority, in any
// case and in look-alike letters.
func TestNamesOfAuthority(t *testing.T) {
	for _, name := range []string{
		"lead", "LEAD", "Lead", "lead-2", "leader", "1ead", "Iead", "l3ad", "team-lead", "teamlead",
		"Team_Lead", "team-1ead",
		"user", "USER", "us3r", "user-1", "user2", "u-s-e-r", "human", "hurnan", "person", "system", "5ystem",
		"admin", "adm1n", "aclmin", "admln", "ADMIN-3", "root", "r00t", "ro-ot", "owner", "ovvner", "0wner",
		"operator", "0perat0r",
		"assistant", "a55istant", "anthropic", "anthr0pic", "openai", "open-ai", "google", "g00gle", "cadre",
		"the-lead", "theLead", "The_User", "the-user-2", "7he-sy5tem", "the-the-lead", "the-admin", "the-team-lead",
		"the-anthropic",
		"a-user", "an-admin", "A_Human", "4-user", "an--owner-3", "a-the-lead", "an-anthropic", "an-us3r",
	} {
		err := CheckNewMember(name, "boss")
		if CodeOf(err) != Invalid || !strings.Contains(err.Error(), "would seem to come from") {
			t.Errorf("%s: got %v, want a refusal: it would seem to come from another sender", name, err)
		}
	}
	for name, from := range map[string]string{"teamlead": "come from the lead; ", "anthropic": "come from Anthropic; ",
		"us3r": "come from the user; ", "admin": "come from an administrator; "} {
		if err := CheckNewMember(name, "boss"); err == nil || !strings.Contains(err.Error(), from) {
			t.Errorf("%s: got %v, want a refusal with %q", name, err, from)
		}
	}
	for _, name := range []string{"b0ss", "bo55", "BO-SS", "the-boss"} {
		if err := CheckNewMember(name, "boss"); CodeOf(err) != Invalid || !strings.Contains(err.Error(),
			"the lead's name, boss") {
			t.Errorf("%s: got %v, want a refusal, because it resembles the lead's name", name, err)
		}
	}
	for _, lead := range []string{"the-boss", "The_B0ss", "a-boss", "an-the-boss"} {
		for _, name := range []string{"boss", "b0ss", "the-boss-", "a_boss", "theboss", "theBoss"} {
			if err := CheckNewMember(name, lead); CodeOf(err) != Invalid || !strings.Contains(err.Error(),
				"the lead's name, "+lead) {
				t.Errorf("%s beside the lead %s: %v", name, lead, err)
			}
		}
	}
	for name, lead := range map[string]string{"alice": "lice", "adam": "dam", "o": "theo", "anna": "na", "the": "a",
		"a": "the-boss", "a-reviewer": "the-boss", "boss": "theresa"} {
		if err := CheckNewMember(name, lead); err != nil {
			t.Errorf("%s beside the lead %s: %v", name, lead, err)
		}
	}
	for _, name := range []string{"claude", "codex", "gemini", "opencode", "ann", "users", "leading", "mate-1",
		"worker-12", "reviewer", "rooter", "ownership", "theo", "therapist", "the-reviewer", "the", "a", "an", "a-",
		"anna", "a-team", "an-editor", "analyst"} {
		if err := CheckNewMember(name, "boss"); err != nil {
			t.Errorf("%s: got %v, want the name accepted", name, err)
		}
	}
	for name, good := range map[string]bool{"lead": true, "team-lead": true, "boss": true, "owner": true,
		"the-lead": true, "user": false, "the-user": false, "a-user": false, "an-assistant": false, "an-admin": true,
		"Us3r": false, "system": false, "anthropic": false} {
		if err := checkNewLead(name); (err == nil) != good {
			t.Errorf("a lead named %s: %v", name, err)
		}
	}
}

// TestNamesThatAreThere checks that members that already have such a name keep it: their history is
// applied, and they act as before.
func TestNamesThatAreThere(t *testing.T) {
	s := &State{}
	s.Apply(&Record{Seq: 1, At: 1, Events: []Event{
		&TeamCreated{Team: Team{ID: "demo-1", Name: "demo", Lead: "lead"}, Lead: Member{Name: "lead", Agent: External,
			Status: Active}},
		&MemberSpawned{Member: Member{Name: "admin", Agent: External, Status: Active, Incarnation: 1}},
	}})
	d, err := Decide(s, Command{ID: "c", Actor: "admin", At: 2, Body: &SendMessage{To: "lead", Body: "hello"}})
	if err != nil || d.Record == nil {
		t.Errorf("got the record %+v and %v, want a message from admin", d.Record, err)
	}
}
