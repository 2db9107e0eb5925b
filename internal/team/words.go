package team

import (
	"cmp"
	"fmt"
)

// Count returns a number with what it counts, such as "1 task" or "3 tasks". All texts of the
// program use it.
func Count[N int | int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// TasksDone says how many of all tasks are done: "1 of 3 tasks done".
func TasksDone(done, all int) string { return fmt.Sprintf("%d of %s done", done, Count(all, "task")) }

// CompareIDs compares the ids of tasks, which are numbers.
func CompareIDs(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

func word(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
