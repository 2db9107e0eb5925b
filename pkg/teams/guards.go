package teams

import (
	"cadre/internal/observe/present"
)

// The guards report whether a JSON value has the named type. Each required field must be present,
// and each field must have a value of its type; extra fields are allowed. Use them for values that
// were stored or sent elsewhere. docs/observe.md describes the fields.

// IsTeamState reports whether data is a [TeamState].
func IsTeamState(data []byte) bool { return present.IsTeamState(data) }

// IsTeamMember reports whether data is an [ObservedMember].
func IsTeamMember(data []byte) bool { return present.IsTeamMember(data) }

// IsTeamTask reports whether data is an [ObservedTask].
func IsTeamTask(data []byte) bool { return present.IsTeamTask(data) }

// IsTeamEvent reports whether data is one of [Observation.Notices].
func IsTeamEvent(data []byte) bool { return present.IsTeamEvent(data) }

// IsTeamMessage reports whether data is one of [Observation.Messages] about a message between
// members.
func IsTeamMessage(data []byte) bool { return present.IsTeamMessage(data) }

// IsTeamTaskUpdate reports whether data is one of [Observation.Messages] about a task.
func IsTeamTaskUpdate(data []byte) bool { return present.IsTeamTaskUpdate(data) }

// IsTeamStateChange reports whether data is one of [Observation.Messages] about the team itself or
// its members.
func IsTeamStateChange(data []byte) bool { return present.IsTeamStateChange(data) }

// ObserverSchema is the JSON Schema (draft 2020-12) of [Observation.Notices],
// [Observation.Messages] and [TeamState].
func ObserverSchema() string { return present.Schema }
