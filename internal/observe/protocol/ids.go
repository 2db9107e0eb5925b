package protocol

import (
	"slices"
	"strconv"
)

// TaskNumber returns the number of a task, or 0 for an invalid id. Claude Code counts its tasks
// from 1.
func TaskNumber(id string) int {
	if len(id) == 0 || len(id) > 7 || id[0] < '1' {
		return 0
	}
	n, err := strconv.Atoi(id)
	if err != nil || n <= 0 {
		return 0
	}
	return n
}

// SortTasks sorts task ids by number.
func SortTasks(ids []string) {
	slices.SortFunc(ids, func(a, b string) int { return TaskNumber(a) - TaskNumber(b) })
}

// Hash returns a hash of a text: FNV-1a with spreading. It is the same in every process, because
// hashes are saved.
func Hash[T ~string | ~[]byte](text T) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	h ^= h >> 32
	return h
}
