// Package client speaks with the server of teams, cadre serve, over its HTTP API. It is for
// programs that do not run teams themselves: the server runs them, and the program acts, reads and
// watches. Package teams is for programs that run teams. The values of both are the same.
//
//	c, err := client.Open(client.Options{})
//	defer c.Close()
//	task, err := c.AddTask(ctx, "docs", client.TaskSpec{Subject: "Describe the flags."})
//	for e, err := range c.Events(ctx, "docs", 0) { … }
//
// # Who is who
//
//	Client      the server of a home, by its unix socket or its address; a method for each route
//	Client.As   the same as a member of the teams: the user acts by default
//
// A team is named by its name or its id. Its name can be used again once it is removed. The server
// decides who may do what, by the process that calls and by its token.
//
// # Errors
//
// A refusal is a [*teams.Error], as package teams returns it: compare codes with errors.Is(err,
// teams.ErrConflict). A check that failed is a [*CheckError], which wraps one. The other problems
// that a server answers with are a [*ProblemError]. While the server cannot be reached, calls try
// again; see [Options].Patience.
//
// # Guarantees
//
//   - A call that changes something and returns nil happened exactly once, and the change is durable.
//     It has an id, the Idempotency-Key, and after a broken connection it is sent again with the same
//     id. If it returns an error of its context or of the connection, it may have happened. The same
//     call with the same key, see [WithKey], finds that out. A hook that is tried is run at most once.
//   - [Client.Events] yields each event once and in order, also while the server is restarted. It ends
//     without an error when the team is removed.
//   - All methods may be called from any goroutine. They leave no goroutine behind once their context
//     ends, or the client is closed.
//
// # Stability
//
// The promise of package teams holds here, too.
package client
