package tui

import (
	tea "charm.land/bubbletea/v2"

	"cadre/internal/ui/lineedit"
)

// field is a line that a person types.
type field struct{ lineedit.Line }

func (f *field) set(text string) { f.Set(text) }

func (f *field) empty() bool { return f.Empty() }

func (f *field) insert(text string) { f.Insert(text) }

// press edits the text. It reports whether the key is an editing key.
func (f *field) press(msg tea.KeyPressMsg) bool {
	switch msg.String() {
	case "left":
		f.Left()
	case "right":
		f.Right()
	case "home", "ctrl+a":
		f.Home()
	case "end", "ctrl+e":
		f.End()
	case "backspace", "ctrl+h":
		f.Backspace()
	case "delete", "ctrl+d":
		f.Delete()
	case "ctrl+u":
		f.CutBefore()
	case "ctrl+k":
		f.CutAfter()
	case "ctrl+w":
		f.CutWord()
	default:
		if msg.Text == "" || msg.Mod&^tea.ModShift != 0 {
			return false
		}
		f.insert(msg.Text)
	}
	return true
}

// shown returns the part of the text around the cursor that fits in width columns, and the column
// of the cursor in that part.
func (f *field) shown(width int) (text string, cursor int) {
	before, cursor, after := f.Shown(width)
	return before + after, cursor
}
