package git

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
)

// Change is a path at which two sides differ: two trees, or a tree and the work tree.
type Change struct {
	Path        string
	Letter      string // git's status letter: A, D, M, T
	Was, Is     string // modes on the two sides
	WasID, IsID string // objects; zeros if git has none
}

// Nothing is the mode of a missing file, and Submodule that of a submodule.
const (
	Nothing   = "000000"
	Submodule = "160000"
)

// Changes returns the paths at which two sides differ, in git's order. The command is diff or
// diff-tree, with its arguments.
func (r Runner) Changes(ctx context.Context, command string, args ...string) ([]Change, error) {
	out, err := r.Run(ctx, nil, slices.Concat([]string{command, "--raw", "-z", "--no-renames", "--no-abbrev"}, args)...)
	if err != nil {
		return nil, err
	}
	var all []Change
	parts := bytes.Split(out, []byte{0})
	for i := 0; i+1 < len(parts); i += 2 { // ":100644 100644 ID ID M", path
		fields := strings.Fields(strings.TrimPrefix(string(parts[i]), ":"))
		if len(fields) != 5 {
			return nil, fmt.Errorf("git %s says %.80q", command, parts[i])
		}
		all = append(all, Change{Path: string(parts[i+1]), Letter: fields[4], Was: fields[0], Is: fields[1],
			WasID: fields[2], IsID: fields[3]})
	}
	return all, nil
}

// Entry returns the other side's entry in the format of git update-index -z --index-info.
func (c Change) Entry() string { return c.Is + " " + c.IsID + "\t" + c.Path + "\x00" }
