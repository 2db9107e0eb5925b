package present

import (
	_ "embed"
	"encoding/json"
	"strings"

	"cadre/internal/observe/protocol"
)

// Schema is the JSON Schema (draft 2020-12) of the output for consumers: each event, each
// supplement, and each line that keeps a session up to date.
//
//go:embed schema.json
var Schema string

// IsSession reports whether data is a [Session] in JSON. Like all guards here, it is as strict as
// the schema. Required fields must be present, every field must have a valid value, and additional
// fields are allowed.
func IsSession(data []byte) bool { return is(data, isSession) }

// IsTeamState reports whether data is a [TeamState] in JSON.
func IsTeamState(data []byte) bool { return is(data, isTeamState) }

// IsTeamMember reports whether data is a [TeamMember] in JSON.
func IsTeamMember(data []byte) bool { return is(data, isTeamMember) }

// IsTeamTask reports whether data is a [TeamTask] in JSON.
func IsTeamTask(data []byte) bool { return is(data, isTeamTask) }

// IsTeamEvent reports whether data is a [Notice] in JSON.
func IsTeamEvent(data []byte) bool { return is(data, isTeamEvent) }

// IsTeamMessage reports whether data is a [Supplement] in JSON about a message between members.
func IsTeamMessage(data []byte) bool { return is(data, isSupplement(protocol.Message)) }

// IsTeamTaskUpdate reports whether data is a [Supplement] in JSON about a task.
func IsTeamTaskUpdate(data []byte) bool { return is(data, isSupplement(protocol.TaskUpdate)) }

// IsTeamStateChange reports whether data is a [Supplement] in JSON about the team itself or its
// members.
func IsTeamStateChange(data []byte) bool { return is(data, isSupplement(protocol.StateChange)) }

// guard reports whether a decoded JSON value has a type.
type guard func(v any) bool

func is(data []byte, one guard) bool {
	var v any
	return json.Unmarshal(data, &v) == nil && one(v)
}

// object is a guard for an object with these fields. A name that ends in ? is optional.
type object map[string]guard

func (o object) is(v any) bool {
	fields, ok := v.(map[string]any)
	if !ok {
		return false
	}
	for name, one := range o {
		name, optional := strings.CutSuffix(name, "?")
		switch v, there := fields[name]; {
		case !there && !optional, there && !one(v):
			return false
		}
	}
	return true
}

func listOf(of guard) guard {
	return func(v any) bool {
		all, ok := v.([]any)
		for _, one := range all {
			ok = ok && of(one)
		}
		return ok
	}
}

func among(texts ...any) guard {
	return func(v any) bool {
		for _, one := range texts {
			if v == one {
				return true
			}
		}
		return false
	}
}

func isText(v any) bool   { _, ok := v.(string); return ok }
func isBool(v any) bool   { _, ok := v.(bool); return ok }
func isName(v any) bool   { return isText(v) && v != "" }
func isTaskID(v any) bool { s, ok := v.(string); return ok && protocol.TaskNumber(s) > 0 }
func isFields(v any) bool { _, ok := v.(map[string]any); return ok }
func isAny(any) bool      { return true }

func isSession(v any) bool {
	return object{"team?": isTeamState, "agents": listOf(isText)}.is(v)
}

func isTeamState(v any) bool {
	return object{"name": isName, "role": among(RoleLead, RoleTeammate), "members": listOf(isTeamMember),
		"tasks": listOf(isTeamTask)}.is(v)
}

func isTeamMember(v any) bool {
	return object{"name": isName, "agentId": isName, "agentType": isName,
		"status": among(statusActive, statusIdle, statusShutdown),
		"model?": isText, "color?": isText}.is(v)
}

func isTeamTask(v any) bool {
	return object{"id": isTaskID, "subject": isText, "status": among("pending", "in_progress", "completed", "deleted"),
		"blockedBy": listOf(isTaskID),
		"blocks":    listOf(isTaskID), "description?": isText, "owner?": isText, "activeForm?": isText}.is(v)
}

func isSupplement(category protocol.Category) guard {
	return object{"type": among(string(category)), "role": among("system"), "metadata": object{"teamToolUseId": isName,
		"toolName": isName, "input?": isFields,
		"result?": isAny, "isError?": among(true)}.is}.is
}

func isTeamEvent(v any) bool {
	fields, ok := v.(map[string]any)
	if !ok {
		return false
	}
	var own object
	switch fields["type"] {
	case Created, Deleted:
		own = object{"teamName": isName}
	case MemberJoined, MemberIdle, MemberShutdown:
		own = object{"member": isTeamMember}
	case MemberFailed:
		own = object{"member": isTeamMember, "reason?": isText}
	case TaskCreated, TaskClaimed, TaskCompleted:
		own = object{"task": isTeamTask}
	case MessageReceived:
		own = object{"from": isName, "to?": isName, "content": isText, "summary?": isText}
	case ShutdownRequested:
		own = object{"member": isName, "requestId": isText, "reason?": isText}
	case ShutdownResponse:
		own = object{"member": isName, "requestId": isText, "approved": isBool, "reason?": isText}
	case PlanRequested:
		own = object{"from": isName, "requestId": isText, "plan": isText}
	case PlanResolved:
		own = object{"from": isName, "requestId": isText, "approved": isBool, "reason?": isText}
	case Gap:
		own = object{"from": isName, "reason": isText}
	default:
		return false
	}
	return isText(fields["sessionId"]) && own.is(v)
}
