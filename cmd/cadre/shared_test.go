package main

import "testing"

// TestScreenSharesReplicas: the screen reads each team through one replica, and so does what lists
// the teams beside it. A screen that holds the state of a team twice grows twice as fast.
func TestScreenSharesReplicas(t *testing.T) {
	a := newApp()
	o := a.screenOptions("")
	if o.Engine.Shared == nil || o.Engine.Shared != &a.shared || o.Engine.Attention("").Shared != &a.shared {
		t.Error("the screen opens a replica for each of its readers")
	}
	if a.engine().Shared != nil {
		t.Error("a command gets the replica of another reader")
	}
}
