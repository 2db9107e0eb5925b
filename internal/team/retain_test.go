package team

import (
	"runtime"
	"strings"
	"testing"
)

// TestAStateKeepsNoRecords follows a history of long records, of which the state needs little. What it
// keeps of them must not keep the records themselves, whose texts it shares.
func TestAStateKeepsNoRecords(t *testing.T) {
	s, err := DecodeSnapshot(0, "")
	if err != nil {
		t.Fatal(err)
	}
	add := func(b Body, actor string) {
		t.Helper()
		d, err := Decide(s, Command{ID: "command-" + strings.Repeat("x", 18) + string(rune('a'+s.Seq()%26)) +
			string(rune('a'+s.Seq()/26%26)) + string(rune('a'+s.Seq()/676)), Actor: actor, At: Time(1000 + s.Seq()), Body: b})
		if err != nil {
			t.Fatal(err)
		}
		r, err := DecodeRecord(d.Record.Seq, string(AppendRecord(nil, d.Record)))
		if err != nil {
			t.Fatal(err)
		}
		s.Apply(r)
	}
	heap := func() int {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	add(&CreateTeam{TeamID: "t1", Name: "core", Dir: "/repo"}, User)
	add(&SpawnMember{Name: "ann", Agent: Claude}, User)
	add(&AttachMember{Member: "ann"}, Host("h"))
	add(&ReportStarted{Member: "ann", Session: "s"}, Host("h"))
	before := heap()
	const records, size = 2_000, 4_000
	for i := range records {
		add(&ReportStatus{Member: "ann", Status: Active,
			Summary: strings.Repeat(string(rune('a'+i%26)), size)}, Host("h"))
	}
	if grown := heap() - before; grown > records*size/4 {
		t.Errorf("after %d records of %d bytes the state takes %d bytes more", records, size, grown)
	}
	runtime.KeepAlive(s)
}
