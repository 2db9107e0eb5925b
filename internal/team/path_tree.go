package team

import (
	"iter"
	"maps"
	"strings"
)

// pathTree finds which of many patterns meet a path, without a look at those that begin elsewhere.
// Its zero value is empty.
type pathTree struct {
	below map[string]*pathTree
	here  []treeEntry // patterns without a further plain name
}

type treeEntry struct {
	pattern string
	task    int // its place
}

// beginning yields the names at the beginning of the pattern that stand for themselves.
func beginning(pattern string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for rest, more := strings.ToLower(pattern), true; more; {
			var name string
			if name, rest, more = strings.Cut(rest, "/"); !isPlain(name) || !yield(name) {
				return
			}
		}
	}
}

func (n *pathTree) add(e treeEntry) {
	for name := range beginning(e.pattern) {
		next := n.below[name]
		if next == nil {
			if n.below == nil {
				n.below = map[string]*pathTree{}
			}
			next = &pathTree{}
			n.below[name] = next
		}
		n = next
	}
	n.here = append(n.here, e)
}

// meets returns the first task with a path in common with one of the paths, and that
// path; -1 for none.
func (n *pathTree) meets(paths []string) (task int, path string) {
	task = -1
	for _, p := range paths {
		see := func(at *pathTree) {
			for _, e := range at.here {
				if (task < 0 || e.task < task) && overlaps(p, e.pattern, false) {
					task, path = e.task, p
				}
			}
		}
		at := n
		for name := range beginning(p) {
			see(at)
			if at = at.below[name]; at == nil {
				break
			}
		}
		if at != nil {
			at.walk(see)
		}
	}
	return task, path
}

func (n *pathTree) walk(see func(*pathTree)) {
	see(n)
	for next := range maps.Values(n.below) {
		next.walk(see)
	}
}

// Beginning returns the names at the beginning of the pattern that stand for themselves, as a path.
func Beginning(pattern string) string {
	end := 0
	for name := range strings.SplitSeq(pattern, "/") {
		if !isPlain(name) {
			break
		}
		end += len(name) + 1
	}
	return pattern[:max(0, min(end, len(pattern)+1)-1)]
}
