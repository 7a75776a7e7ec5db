package profile

// Predicted marks a profile of synthesised threads: package multicore made them from the trace
// of a run with one thread. Counts are exact for the synthesised threads.
type Predicted struct {
	Cores uint32 // each of which has a thread
	How   string // how work is divided and references are ordered, as command-line options
}

func (p *Predicted) code(c *coder) {
	c.U32(&p.Cores)
	c.Text(&p.How)
}

// checkPredicted tests that there are no more threads than cores.
func (p *Profile) checkPredicted() error {
	switch {
	case p.Predicted == nil:
	case p.Predicted.Cores == 0 || p.Predicted.Cores > MaxCores:
		return &CheckError{"its threads are mimicked for no possible number of cores"}
	case len(p.Totals.Threads) > int(p.Predicted.Cores):
		return &CheckError{"it has more threads than cores that they are mimicked for"}
	}
	return nil
}
