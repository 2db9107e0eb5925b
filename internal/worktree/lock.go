package worktree

import "strings"

// LockedError says that a git command holds a file of the repository and did not let go of it. A git that was killed leaves such a file, and only a person can
// know that it was.
type LockedError struct{ File string }

func (e *LockedError) Error() string {
	return "another git command holds " + e.File + "; if none is at work there, remove that file and try again"
}

// Locked is the error for what git says when it cannot have a lock; nil when it says something else.
func Locked(words string) error {
	if _, words, found := strings.Cut(words, "Unable to create '"); found {
		if file, _, found := strings.Cut(words, ".lock': File exists"); found {
			return &LockedError{file + ".lock"}
		}
	}
	return nil
}
