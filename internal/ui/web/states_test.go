package web

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"cadre/internal/testkit/historytest"

	"pgregory.net/rapid"
)

// merge applies a merge patch as RFC 7396 has it, to values that were decoded from JSON.
func merge(target, patch any) any {
	changes, is := patch.(map[string]any)
	if !is {
		return patch
	}
	of, is := target.(map[string]any)
	if !is {
		of = map[string]any{}
	}
	for key, value := range changes {
		if value == nil {
			delete(of, key)
		} else {
			of[key] = merge(of[key], value)
		}
	}
	return of
}

func decoded(t interface{ Fatal(...any) }, value any) (v any) {
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestPatches: the patches lead to the state that the reducer has, over one record or several.
func TestPatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := historytest.Play(historytest.Choices(120).Draw(t, "choices"))
		every := rapid.IntRange(1, 20).Draw(t, "every")
		s := empty()
		grows, page := newTracker(), any(nil)
		for step := range slices.Chunk(h.Records, every) {
			for _, r := range step {
				s.Apply(r)
			}
			r := step[len(step)-1]
			page = merge(page, decoded(t, grows.update(s, step...)))
			whole := newTracker()
			want := decoded(t, whole.take(s, r.At))
			if want = merge(nil, want); !reflect.DeepEqual(page, want) {
				got, _ := json.Marshal(page)
				wanted, _ := json.Marshal(want)
				t.Fatalf("after record %d the page has\n%s\nand not\n%s", r.Seq, got, wanted)
			}
			if also := decoded(t, grows.whole(s.Seq(), r.At)); !reflect.DeepEqual(also, want) {
				t.Fatalf("after record %d the tracker has another state", r.Seq)
			}
		}
	})
}

// TestReels: the states of a stretch are those of the reducer, at any distance, and a page that
// asks again gets what was encoded for the first one.
func TestReels(t *testing.T) {
	h := historytest.Long(700, 60)
	of := opened(t, h)
	rs := reels{}
	for _, every := range []int64{1, 16, 64} {
		for _, after := range []int64{0, 64, 640} {
			s := stretch{after, after + 4*every, every}
			first, err := rs.frames(t.Context(), of, s, true)
			if err != nil {
				t.Fatal(err)
			}
			again, err := rs.frames(t.Context(), of, s, false)
			if err != nil || again.Base != nil {
				t.Fatal(again.Base, err)
			}
			if same := unsafe.SliceData(first.Patches) == unsafe.SliceData(again.Patches); same != (s.to <= of.Seq()) {
				t.Errorf("%v: it is kept: %t", s, same)
			}
			var patches []any
			if err := json.Unmarshal(again.Patches, &patches); err != nil {
				t.Fatal(err)
			}
			if want := min(4, (of.Seq()-after)/every); int64(len(patches)) != want {
				t.Errorf("%v: %d patches, not %d", s, len(patches), want)
			}
			page := decoded(t, first.Base)
			for i, p := range patches {
				page = merge(page, p)
				at := after + every*int64(i+1)
				state, err := of.Past().At(t.Context(), at)
				if err != nil {
					t.Fatal(err)
				}
				want := merge(nil, decoded(t, newTracker().take(state, h.Records[at-1].At)))
				if !reflect.DeepEqual(page, want) {
					t.Fatalf("%v: the state after record %d is another one", s, at)
				}
			}
		}
	}
}

// BenchmarkPatches makes the patches of a history with 2,000 tasks. The unit is a record.
func BenchmarkPatches(b *testing.B) {
	h := historytest.Long(4_000, 2_000)
	size := 0
	for b.Loop() {
		s, k := empty(), newTracker()
		size = 0
		for _, r := range h.Records {
			s.Apply(r)
			data, _ := json.Marshal(k.update(s, r))
			size += len(data)
		}
	}
	b.ReportMetric(float64(size)/float64(len(h.Records)), "bytes/record")
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(h.Records)), "µs/record")
}

// BenchmarkOverview makes the states that the page moves through while its slider is dragged: of a
// history with 20,000 records and 2,000 tasks, one for every 64 records. The unit is the history.
func BenchmarkOverview(b *testing.B) {
	of := opened(b, historytest.Long(20_000, 2_000))
	size := 0
	for b.Loop() {
		rs := reels{}
		size = 0
		for after := int64(0); after < of.Seq(); after += 64 * 64 {
			is, err := rs.frames(b.Context(), of, stretch{after, after + 64*64, 64}, false)
			if err != nil {
				b.Fatal(err)
			}
			size += len(is.Patches)
		}
	}
	b.ReportMetric(float64(size)/(1<<20), "MB")
}
