package ask

import (
	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/trace"
)

// Replay reads the trace of a run again, for answers that need every reference.
type Replay struct {
	MemoryBytes uint64     // memory limit of the consumer in bytes; 0 means no limit
	Cores       [][]uint32 // groups of threads that share a core
	Skip        uint64     // number of references that Read skips at the beginning of the trace
	// Count returns the number of references that Read passes to a consumer. It may read the trace.
	Count func() (uint64, error)
	// Read passes the references to a consumer. At the end, Read sets the name, the profile and the
	// warnings of the given run.
	Read func(*Run, Consumer) error
}

// Consumer receives the references of a trace while the trace is read.
type Consumer struct {
	// Make returns the function that receives each batch. The function program returns the program
	// that the trace has described so far.
	Make     func(program func() *trace.Program) func(*trace.Batch) error
	Sites    bool              // whether the batches contain the sites of the references and the addresses of their instructions
	Events   bool              // whether the batches also contain the events that the analyses read; implies Sites
	Analyses analysis.Analyses // the analyses of the same pass
}
