package utf8text

import "testing"

func TestCuts(t *testing.T) {
	const text = "aé漢🙂z"
	begins := map[int]bool{0: true, 1: true, 3: true, 6: true, 10: true, 11: true}
	for i := range len(text) + 1 {
		whole := i
		for !begins[whole] {
			whole--
		}
		if got := Whole([]byte(text[:i])); got != whole {
			t.Errorf("Whole of the first %d bytes is %d, want %d", i, got, whole)
		}
		first := i
		for !begins[first] {
			first++
		}
		if got := First([]byte(text[i:])); got != first-i {
			t.Errorf("First without the first %d bytes is %d, want %d", i, got, first-i)
		}
	}
	if got := Whole([]byte("\x80\x80\x80\x80\x80")); got != 5 {
		t.Errorf("Whole of bytes that are not UTF-8 is %d, want 5", got)
	}
	if got := First([]byte("\x80\x80\x80\x80\x80")); got != 0 {
		t.Errorf("First of bytes that are not UTF-8 is %d, want 0", got)
	}
}
