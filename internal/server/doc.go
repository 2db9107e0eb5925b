// Package server is the process of cadre serve: it keeps teams running, and answers requests about
// them on a unix socket and, if asked, over TCP.
//
// # Authority
//
// The server owns the folder server/ of a home: one lock, the list of the teams that it keeps
// running, its socket, and the tokens. It decides when a team is resumed, and never what a team
// does. The host of a team is a process of its own, the same that cadre resume starts, so neither a
// crash nor an update of the server ends a session.
//
// # A team of the server
//
//	added ──▶ running ──its host ends──▶ a person paused it, or its budget is spent ──▶ waits for cadre resume
//	             ▲                          │ no
//	             └──────── resumed ◀────────┘     after 2, 8, 32 … seconds if that fails
//
// # Guarantees
//
//   - One server runs in a home. A second one says which process it is.
//   - Killed at any moment and started again, the server has the same teams, and resumes those whose
//     hosts died.
//   - A team that a person paused, or whose budget is spent, is never resumed by the server.
//   - Requests are answered as package api says, to those whom package auth knows.
package server
