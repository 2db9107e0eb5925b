// Package metrics computes what a server tells Prometheus about its teams, and the totals in the
// status of the server.
//
// # Authority
//
// The package decides the names, types, labels and meanings of the metrics, and writes their text
// format. It decides nothing about teams: the figures come from their records and states. The
// server adds each record of each team once, in order, and passes the values that no record
// has in [Gauges].
//
//	records ──▶ Collector.Add ──▶ sums (counters, histograms) ─┐
//	                         └──▶ state (gauges) ──────────────┼─▶ Collector.Write ──▶ text format 0.0.4
//	attention, heartbeats, journals, readers ──▶ Gauges ───────┘
//
// # Guarantees
//
//   - Figures about teams are a function of their histories. A server that was restarted, and has added
//     the same histories again, shows the same figures. The order of the teams does not matter.
//   - The exceptions are refused claims and the times of writes to journals, which are not in a history:
//     [Collector.Conflict] and [Collector.ObserveAppend] count from the start of the process.
//   - Counters never decrease while the process runs, unless another history takes the place of a
//     team's. [Collector.Forget] keeps what the team added to them.
//   - Tokens and costs of a team are those of its state, which cadre status shows, without those of teams in
//     it: these have a history of their own, and are counted once.
//   - No label has the id or name of a team, member or task. Model names come from agents: they are made
//     harmless and short, and [MostModels] of them have a series of their own.
//   - Memory grows as the state of the teams does, never with the length of a history.
//
// The text format is written by hand, because the Prometheus client library would slow down the
// start of every command (docs/architecture/start.md). Tests check the text with that library.
package metrics
