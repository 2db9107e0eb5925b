package team

import "testing"

func TestNearest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		word, want string
		known      []string
	}{
		{"relase", "release", []string{"health", "release"}},
		{"Ann", "ann", []string{"bob", "ann"}},
		{"nan", "ann", []string{"bob", "ann"}}, // two letters are swapped
		{"retry", "retries", []string{"result", "retries"}},
		{"tasks", "task", []string{"team", "task"}},
		{"eve", "", []string{"bob", "ann", "everything"}},
		{"x", "", []string{"ab", "abc"}},
		{"", "", nil},
	} {
		if got := Nearest(c.word, c.known); got != c.want {
			t.Errorf("%q is nearest to %q of %q, want %q", c.word, got, c.known, c.want)
		}
	}
}
