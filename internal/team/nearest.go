package team

import (
	"strings"
	"unicode/utf8"
)

// Nearest returns the known word that the writer most likely meant, or "" if none is near. A longer
// word may have more errors. A word and its plural count as one error apart.
func Nearest(word string, known []string) string {
	best, nearest := "", (utf8.RuneCountInString(word)+1)/3+1
	word = strings.ToLower(word)
	for _, k := range known {
		low := strings.ToLower(k)
		d := distance(word, low, nearest)
		if d > 1 && singular(word) == singular(low) {
			d = 1
		}
		if d < nearest {
			best, nearest = k, d
		}
	}
	return best
}

// singular returns the word without the ending of a regular plural.
func singular(word string) string {
	if stem, is := strings.CutSuffix(word, "ies"); is {
		return stem + "y"
	}
	return strings.TrimSuffix(word, "s")
}

// distance counts the bytes to insert, delete, replace or swap with a neighbour to turn a into b.
// It returns at least limit if that is how much longer one of them is.
func distance(a, b string, limit int) int {
	const far = 64 // no known word is longer
	if len(a) > far || len(b) > far || max(len(a)-len(b), len(b)-len(a)) >= limit {
		return max(far, limit)
	}
	var d [far + 1][far + 1]int
	for i := range len(a) + 1 {
		d[i][0] = i
	}
	for j := range len(b) + 1 {
		d[0][j] = j
	}
	for i := range len(a) {
		for j := range len(b) {
			replace := d[i][j]
			if a[i] != b[j] {
				replace++
			}
			d[i+1][j+1] = min(d[i][j+1]+1, d[i+1][j]+1, replace)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d[i+1][j+1] = min(d[i+1][j+1], d[i-1][j-1]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
