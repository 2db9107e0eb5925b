// Package present shows an observed team to consumers in three forms: one JSON object ([TeamState])
// and the JSON Patches that follow it ([Live]), events ([Notice]), and messages beside the agents'
// own ([Supplement]).
//
// # Authority
//
// It decides what consumers see and in which form. The facts are in the state that it is given,
// which may come from an observer or a journal.
//
// # Guarantees
//
//   - All output conforms to schema.json. The guards (IsTeamState …) are as strict as the schema.
//   - The size of a patch, and the time to compute it, grow with the change and not with the team.
package present
