// Package pane shows each member of a team in a pane of the person's terminal.
//
// # Authority
//
// Package pane chooses where members are shown, and opens, names and closes panes. What runs in a
// pane is a viewer of the member's session, which lives with its host: a pane that is closed loses
// nothing.
//
// # States
//
// A pane of a member:
//
//	none ──member runs──▶ open ──member ends, or Keep is asked to close──▶ none
//	                        └───the person closes it──▶ closed, until the next Keep
//
// # Guarantees
//
//   - Panes are in windows of their own, and options are set in these windows alone. Nothing of the
//     person's windows changes.
//   - A pane carries the mark of its team and member. A command to tmux checks the mark and acts in
//     one step, so it never reaches a pane that has the id of an earlier one.
//   - A process that continues a team finds the panes that are open, and opens no second ones.
//   - A terminal program that is gone ends Keep and nothing else.
package pane
