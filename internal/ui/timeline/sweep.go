package timeline

import "cadre/internal/team"

// indexAt returns the index of the last item at or before the time; -1 for none. The items are in
// the order of their times, and of returns the time of one.
func indexAt[T any](items []T, at team.Time, of func(*T) team.Time) int {
	return search(items, at, of, -1, len(items))
}

// search is a binary search. The item low is at or before the time, and high is after it.
func search[T any](items []T, at team.Time, of func(*T) team.Time, low, high int) int {
	for high-low > 1 {
		if middle := int(uint(low+high) / 2); of(&items[middle]) <= at {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// sweep looks up items at one time after the other. If times and items are spread evenly, a lookup
// takes the same few steps for any number of items. At worst it takes twice the steps of a binary
// search. The items must not change meanwhile.
type sweep[T any] struct {
	items []T
	of    func(*T) team.Time
	index int
	at    team.Time
	speed float64 // items in a millisecond, between the last two times
}

// newSweep begins a sweep at a time.
func newSweep[T any](items []T, of func(*T) team.Time, at team.Time) sweep[T] {
	return sweep[T]{items: items, of: of, index: indexAt(items, at, of), at: at}
}

// to moves to a time, and returns the index of the last item at or before it; -1 for none. It
// ignores a time before the present one.
func (s *sweep[T]) to(at team.Time) int {
	end := len(s.items)
	if at <= s.at || s.index == end-1 {
		return s.index
	}
	// The first guess expects as many items as before. The second one corrects it.
	guess := max(0, s.near(s.index+s.ahead(at-s.at)))
	guess = max(0, s.near(guess+s.ahead(at-s.of(&s.items[guess]))))
	low, high := s.index, end
	if s.of(&s.items[guess]) <= at {
		low = guess
		for step := 1; low+step < high; step *= 2 {
			if s.of(&s.items[low+step]) > at {
				high = low + step
				break
			}
			low += step
		}
	} else {
		high = guess
		for step := 1; high-step > low; step *= 2 {
			if s.of(&s.items[high-step]) <= at {
				low = high - step
				break
			}
			high -= step
		}
	}
	i := search(s.items, at, s.of, low, high)
	s.speed = float64(i-s.index) / float64(at-s.at)
	s.index, s.at = i, at
	return i
}

// ahead returns how many items to expect in a time.
func (s *sweep[T]) ahead(length team.Time) int { return int(s.speed * float64(length)) }

// near returns the index, or the nearest one that the present time allows.
func (s *sweep[T]) near(i int) int { return max(s.index, min(i, len(s.items)-1)) }
