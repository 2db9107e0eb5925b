package teams

import (
	"encoding/json"
	"slices"

	"cadre/internal/team"
)

// ForEach says for which items a task makes tasks, at most 1,000. One of Items, Matrix, Glob and
// Run is set; with none of them there are no items. A command has its item in the variable
// CADRE_ITEM, and the values of an item that is an object in CADRE_ITEM_KEY. An item never becomes
// part of the command's text.
type ForEach struct {
	Items   []json.RawMessage // the items themselves: any JSON values, of at most 4 KiB each
	Matrix  []MatrixAxis      // the items are the combinations of the values, the last axis changing fastest
	Exclude []json.RawMessage // objects: combinations that have the values of one of them are left out
	Glob    string            // the items are the files that the pattern covers, without those that git ignores
	Run     string            // the items are what this command prints: lines, or a JSON list
}

// MatrixAxis is one dimension of a matrix.
type MatrixAxis struct {
	Name   string // the key of the values in an item
	Values []json.RawMessage
}

func (f *ForEach) runs() bool { return f != nil && f.Run != "" }

func (f *ForEach) core() *team.ForEach {
	if f == nil {
		return nil
	}
	all := &team.ForEach{Items: f.Items, Exclude: f.Exclude, Glob: f.Glob, Run: f.Run}
	for _, a := range f.Matrix {
		all.Matrix = append(all.Matrix, team.Axis(a))
	}
	return all
}

func forEachOf(f *team.ForEach) *ForEach {
	if f == nil {
		return nil
	}
	all := &ForEach{Items: slices.Clone(f.Items), Exclude: slices.Clone(f.Exclude), Glob: f.Glob, Run: f.Run}
	for _, a := range f.Matrix {
		all.Matrix = append(all.Matrix, MatrixAxis{a.Name, slices.Clone(a.Values)})
	}
	return all
}
