// Package present shows an observed team to consumers: as one JSON object ([TeamState]) and the
// JSON Patches that follow it ([Live]), as events ([Notice]), and as messages beside the agents' own
// ([Supplement]).
//
// # Authority
//
// It decides what consumers see and in which form. What is true of the team is in the state that it
// is given, which may be an observer's or a journal's.
//
// # Guarantees
//
//   - What is written conforms to schema.json, and the guards (IsTeamState …) are as strict as the
//     schema.
//   - A patch, and the time to make it, grow with the change and not with the team.
package present
