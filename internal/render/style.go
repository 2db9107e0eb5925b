package render

import (
	"strings"
	"unicode/utf8"

	"cadre/internal/render/sanitize"
)

// Tone says how a text stands out. The text alone has the same meaning, because colors may be off,
// and some people cannot tell them apart.
type Tone int

// The tones.
const (
	Plain  Tone = iota
	Strong      // a heading, or the next step
	Live        // a member works on it
	Faint       // it has ended, or matters less: a time, the head of a table
	Alarm       // it failed
	Good        // it is done, or passed
	Wait        // it waits for something, or for a person
)

// Look returns how a terminal shows the tone.
func (t Tone) Look() sanitize.Sequence { return looks[t] }

// On returns the text in the tone.
func (t Tone) On(text any) sanitize.Styled { return sanitize.Styled{Look: looks[t], Text: text} }

var looks = [...]sanitize.Sequence{Strong: sanitize.Bold, Live: sanitize.Cyan, Good: sanitize.Green,
	Wait: sanitize.Yellow, Alarm: sanitize.Red, Faint: sanitize.Dim}

// stateTones are the tones of states: of teams, members, tasks, plans, facts and what doctor
// checks. The other states, such as pending and idle, are plain.
var stateTones = map[string]Tone{
	"active": Live, "in_progress": Live, "spawning": Live, "working": Live, "consolidating": Live, "observed": Live,
	"submitted": Wait, "verifying": Wait, "blocked": Wait, "paused": Wait, "interrupted": Wait, "dormant": Wait,
	"released": Wait, "shutting_down": Wait, "zombie": Wait, "missing": Wait, "no plan yet": Wait, "log": Wait,
	"completed": Good, "complete": Good, "approved": Good, "ok": Good, "online": Good,
	"failed": Alarm, "offline": Alarm, "rejected": Alarm, "changed": Alarm, "damaged": Alarm, "gone": Alarm,
	"stopped": Faint, "skipped": Faint, "aborted": Faint, "deleted": Faint,
}

// StateTone returns the tone of a state, by its first word.
func StateTone(state string) Tone {
	word, _, _ := strings.Cut(state, " ")
	return stateTones[word]
}

// symbolTones are the tones of the symbols with which lines begin.
var symbolTones = map[rune]Tone{'▸': Live, '✓': Good, '✗': Alarm, '!': Wait, '↺': Wait, '?': Wait, '+': Faint,
	'·': Faint}

// Symbol divides a line into the symbol with which it begins, in its tone, and the rest.
func Symbol(line string) (sanitize.Styled, string) {
	symbol, size := utf8.DecodeRuneInString(line)
	if tone, is := symbolTones[symbol]; is {
		return tone.On(line[:size]), line[size:]
	}
	return Plain.On(""), line
}
