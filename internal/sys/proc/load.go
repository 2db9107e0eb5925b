package proc

// Load returns how many programs ran on this machine, or waited for a processor, on average over
// the last minute; 0 if that is unknown.
func Load() float64 { return kernelLoad() }
