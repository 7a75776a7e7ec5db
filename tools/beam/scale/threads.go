package scale

// Constants of the memory for assembling the profile of a trace with threads, in bytes. They are
// upper limits: a test compares them with the heap of a generated trace.
const (
	rootBytes     = 32 << 20 // for the head of the trace, and for all numbers of sets of a few cores
	rootLineBytes = 300      // for each line of the trace
	rootPairBytes = 300      // for each pair of a core and a line that the core has touched
	rootNoteBytes = 30       // for each recorded access of the largest segment
)

// ThreadedRoot returns an upper limit for the memory of the worker that appends the segments of a
// trace with threads. The parameter pairs is the number of pairs of a core and a line that the core
// has touched. The parameter notes is the number of accesses that the largest segment records,
// because their results depend on earlier segments: at most its number of references. Only one
// segment at a time is in memory, so the number of segments does not matter.
func ThreadedRoot(lines, pairs, notes float64) float64 {
	return rootBytes + rootLineBytes*lines + rootPairBytes*pairs + rootNoteBytes*notes
}
