// Package tui is the screen on which a person watches teams and steers them: cadre watch.
//
// # Authority
//
// The package decides what is shown and which key does what. It decides nothing about a team: it
// sends commands through package engine, as the user, and shows each refusal. It stands beside the
// command line, on the same engine, and shows the same values in the same words (package render).
//
// # Parts
//
// Model, Update and View are pure. Everything from outside reaches Update as a message. Some
// messages carry the teams and what waits in them, the open team, the session of the open member,
// and answers to commands. The others are keys and the size of the terminal. A [source] reads those
// in four goroutines, which end with [Run].
//
//	journals, session logs ──▶ source ──▶ messages ──▶ Update ──▶ Model ──▶ View ──▶ terminal
//	                             ▲                       │
//	                             └── targets, commands ──┘
//
// # Guarantees
//
//   - A text of an agent passes package sanitize once, where it enters the model (rows.go, feed.go).
//     The views only cut it, and lay plans and descriptions out as Markdown (markdown.go), which hides
//     no word of them. What the library of the screen would draw wrongly goes through it in disguise
//     (glyphs.go).
//   - Each source sends at most 20 messages a second, and is busy for at most a tenth of the time.
//     Only the history of a team that was just opened comes at once, in parts of [batch] records.
//   - The cost of a frame grows with the size of the terminal and with the rows of the open team,
//     of which there are at most [mostTasks] for each of the states that a list of tasks groups. It does not grow with a history or a session.
//   - A key is declared once, in keymap: what it does, when it applies, and its help.
//   - Colors and symbols say nothing that the text does not say as well.
package tui
