// Package archtest checks the architecture against its plan. It has tests only, and no code.
//
// # Authority
//
// The tables in plan_test.go are the plan. They say which package may import which, and which may
// touch the clock, start programs or open the network. They also list the modules that we depend
// on, and limit the size of a file and the width of lines. Every row gives its reason, and a
// failing test prints it. To need something else, change the row and its reason in the same commit.
//
// # Guarantees
//
//   - The plan holds on every supported platform: the tests read files with the build constraints
//     of each.
//   - A package without a row fails, so nothing comes in unplanned.
//   - A row for a missing package fails too, and so does an unused right to the clock.
//   - docs/ARCHITECTURE.md has the floors of the plan, and names every package.
//   - A test shows that each rule finds a breach, so that no rule passes because it checks nothing.
//
// The tests read the sources themselves instead of asking the go command. The test cache then knows
// their inputs, and never repeats an outdated result.
package archtest
