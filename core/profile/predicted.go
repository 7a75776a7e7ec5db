package profile

// Predicted tells that the threads of a profile did not run: package multicore mimicked
// them from the trace of a run with one thread. Counts are exact for the threads as they
// were mimicked.
type Predicted struct {
	Cores uint32 // each of which has a thread
	How   string // the work was divided and the cores' references were ordered, in the words of the command line
}

func (p *Predicted) code(c *coder) {
	c.U32(&p.Cores)
	c.Text(&p.How)
}

// check tests that there are no more threads than cores.
func (p *Predicted) check(totals *Totals) error {
	switch {
	case p == nil:
	case p.Cores == 0 || p.Cores > MaxCores:
		return &CheckError{"its threads are mimicked for no possible number of cores"}
	case len(totals.Threads) > int(p.Cores):
		return &CheckError{"it has more threads than cores that they are mimicked for"}
	}
	return nil
}
