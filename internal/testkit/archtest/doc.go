// Package archtest holds the architecture to its plan. It has tests only, and no code.
//
// # Authority
//
// The tables in plan_test.go are the plan: which package may import which, who may touch the clock,
// start programs or open the network, which modules we depend on, and how large a file may be.
// Every row gives its reason, and a test that fails prints it. Whoever needs something else changes
// the row and the reason, in the commit that needs it.
//
// # Guarantees
//
//   - The plan holds on every platform that is built for: files are read with the build constraints
//     of each.
//   - A package without a row fails: nothing comes in unplanned.
//   - A room that is gone fails too, and so does a right to the clock that nobody uses.
//   - Each rule is shown to find a breach, so that none is silent because it looks at nothing.
//
// The sources are read by the tests themselves and not by the go command, because the test cache
// then knows what they depend on, and a verdict is never of yesterday.
package archtest
