// Package web is the board: the page that shows teams in a browser, and the data that only the page
// reads.
//
// # Authority
//
// The package decides nothing about a team. The page asks for states, which package team makes from
// the records, and shows them. It changes a team with requests of the HTTP API, and shows the
// refusal. The words, the sections and their order are those of the screen (package tui).
//
// # Where the page gets its data
//
//	GET /                             the page, without any data; see [Board.Page]
//	GET /board/streams                all streams of the page over one WebSocket: /v1/watch, …/events and
//	                                  …/session; see [api.Server.Streams]
//	GET /board/events                 the same streams as server-sent events, where a proxy passes no
//	                                  WebSockets; see [api.Server.Events]
//	GET /board/teams                  all teams in their sections, with what waits
//	GET /board/search                 texts with words that are searched for, and where each leads
//	GET /board/teams/T/now            what is known only of the present: processes, attention
//	GET /board/teams/T/states         states after records, each as what changed since the one before
//	GET /board/teams/T/lanes          what members did over time, and what it cost
//	GET /board/teams/T/log            the records in words
//	GET /board/teams/T/marks          records worth a look
//	GET /board/teams/T/messages        messages, by the records that sent them
//	GET /board/teams/T/tasks/ID       the attempts at a task, and the messages about it
//	POST /board/teams/T/saw           a person saw the team
//	POST /board/commands              the command lines of hints
//
// # States as patches
//
// A state of 2,000 tasks is a megabyte of JSON, and a record changes a few hundred bytes of it. So
// the page gets one state and then merge patches (RFC 7396), which are made from the states of
// package team and encoded once for all pages. While its slider moves, it goes through an overview
// of at most 320 states, which it fetches when the pointer comes near the slider; where the slider
// rests, it fetches the states after each record nearby. An exported team needs no server at all;
// see [Export].
//
// # Guarantees
//
//   - The state that the page makes from patches is the one that package team makes from records.
//   - The page has no data, no inline script and no inline style. Nothing from outside is loaded.
//     Texts of agents become text nodes, never markup.
//   - An exported file loads nothing, and likely secrets are replaced in it as in checkpoints.
package web
