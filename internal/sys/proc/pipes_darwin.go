package proc

// Pipes returns the named pipes that processes of the child wait for. This system does not show
// them.
func (c *Child) Pipes(program string) (paths []string, known bool) { return nil, false }
