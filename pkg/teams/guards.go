package teams

import (
	"cadre/internal/observe/present"
)

// The guards report whether a JSON value is what its name says. They are as strict as the types: a
// field that has to be there is there, every field has a value of its type, and a field more is no
// matter. They are for values that were kept or sent elsewhere; docs/observe.md says what is in
// them.

// IsTeamState reports whether data is a [TeamState].
func IsTeamState(data []byte) bool { return present.IsTeamState(data) }

// IsTeamMember reports whether data is an [ObservedMember].
func IsTeamMember(data []byte) bool { return present.IsTeamMember(data) }

// IsTeamTask reports whether data is an [ObservedTask].
func IsTeamTask(data []byte) bool { return present.IsTeamTask(data) }

// IsTeamEvent reports whether data is one of [Observation.Notices].
func IsTeamEvent(data []byte) bool { return present.IsTeamEvent(data) }

// IsTeamMessage reports whether data is one of [Observation.Messages] that is about a message
// between members.
func IsTeamMessage(data []byte) bool { return present.IsTeamMessage(data) }

// IsTeamTaskUpdate reports whether data is one of [Observation.Messages] that is about a task.
func IsTeamTaskUpdate(data []byte) bool { return present.IsTeamTaskUpdate(data) }

// IsTeamStateChange reports whether data is one of [Observation.Messages] that is about the team
// itself or who is in it.
func IsTeamStateChange(data []byte) bool { return present.IsTeamStateChange(data) }

// ObserverSchema is the JSON Schema (draft 2020-12) of [Observation.Notices],
// [Observation.Messages] and [TeamState].
func ObserverSchema() string { return present.Schema }
