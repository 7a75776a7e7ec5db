package measured

// DataSource describes which part of the memory system served a sample, in the encoding of the
// Linux kernel (union perf_mem_data_src in linux/perf_event.h).
type DataSource uint64

// field returns width bits of d, from bit at on.
func (d DataSource) field(at, width uint) uint64 { return uint64(d) >> at & (1<<width - 1) }

// Bits of the fields. The levels have two encodings: a set of bits with hit or miss, and a number.
const (
	opLoad, opStore = 2, 4

	levelHit, levelMiss = 1 << 1, 1 << 2
	bitL1, bitLFB       = 1 << 3, 1 << 4
	bitL2, bitL3        = 1 << 5, 1 << 6
	bitLocal            = 1 << 7
	bitsRemoteMemory    = 1<<8 | 1<<9
	bitsRemoteCache     = 1<<10 | 1<<11
	bitIO, bitUncached  = 1 << 12, 1 << 13

	snoopModified = 1 << 4
	snoopPeer     = 1 << 1

	tlbHit, tlbMiss = 1 << 1, 1 << 2

	sameNode = 1 // value of the field hops for another core of the same node
)

// Op returns "load" or "store", or "" for any other operation.
func (d DataSource) Op() string {
	switch op := d.field(0, 5); {
	case op&opLoad != 0:
		return "load"
	case op&opStore != 0:
		return "store"
	}
	return ""
}

// Contended reports whether another core's cache delivered the line: the line was modified there
// (HITM), or the processor reports that a peer delivered it (Arm).
func (d DataSource) Contended() bool {
	return d.field(19, 5)&snoopModified != 0 || d.field(38, 2)&snoopPeer != 0
}

// PageWalk reports whether both TLBs missed. The result known is false if the processor did not
// report this.
func (d DataSource) PageWalk() (walk, known bool) {
	t := d.field(26, 7)
	return t&tlbMiss != 0, t&(tlbHit|tlbMiss) != 0
}

// Source is a part of the memory system.
type Source uint8

// The parts of the memory system. BeyondL1, BeyondL2 and BeyondL3 mean that the level missed, and
// that the processor did not report which lower level had the line.
const (
	Unknown Source = iota
	L1
	FillBuffer // the line was already on its way to L1
	L2
	L3
	L4
	BeyondL1
	BeyondL2
	BeyondL3
	OtherCache // a cache outside the core's own L1, L2 and L3
	LocalMemory
	RemoteMemory
	PersistentMemory
	CXLMemory
	IO
	Uncached
	numSources
)

var sourceNames = [numSources]string{
	"unknown", "L1", "fill buffer", "L2", "L3", "L4", "beyond L1", "beyond L2", "beyond L3", "another cache",
	"local memory", "remote memory", "persistent memory", "CXL memory", "I/O", "uncached memory",
}

func (s Source) String() string { return sourceNames[s] }

// numbered contains the sources for the values of the field that contains a level's number.
var numbered = [16]Source{1: L1, 2: L2, 3: L3, 4: L4, 9: CXLMemory, 10: IO, 11: OtherCache, 12: FillBuffer, 13: LocalMemory, 14: PersistentMemory}

// Source returns the part of the memory system that served the sample.
func (d DataSource) Source() Source {
	level := d.field(5, 14)
	if level&levelMiss != 0 && level&levelHit == 0 {
		switch {
		case level&bitL3 != 0:
			return BeyondL3
		case level&bitL2 != 0:
			return BeyondL2
		case level&bitL1 != 0:
			return BeyondL1
		}
		return Unknown
	}
	if s := numbered[d.field(33, 4)]; s != Unknown {
		return s.away(d.field(37, 1) != 0, d.field(43, 3))
	}
	switch {
	case level&levelHit == 0:
		return Unknown
	case level&bitL1 != 0:
		return L1
	case level&bitLFB != 0:
		return FillBuffer
	case level&bitL2 != 0:
		return L2
	case level&bitL3 != 0:
		return L3
	case level&bitLocal != 0:
		return LocalMemory
	case level&bitsRemoteMemory != 0:
		return RemoteMemory
	case level&bitsRemoteCache != 0:
		return OtherCache
	case level&bitIO != 0:
		return IO
	case level&bitUncached != 0:
		return Uncached
	}
	return Unknown
}

// away returns the source for a line that was remote. The L3 of the same node serves lines of its
// other cores, so such a line still comes from L3.
func (s Source) away(remote bool, hops uint64) Source {
	switch {
	case !remote:
		return s
	case s == LocalMemory:
		return RemoteMemory
	case s == L3 && hops != sameNode || s == L1 || s == L2 || s == L4:
		return OtherCache
	}
	return s
}

// outcome is the result of an access in a cache level.
type outcome uint8

const (
	notReached outcome = iota // a level above had the line
	hit
	miss
	unknown
)

// at returns what happened in a cache level, where 1 is L1. A line in a fill buffer counts as a hit
// in L1, because an earlier access had requested it: in a trace, only the earlier access misses.
func (s Source) at(level int) outcome {
	depth := 0
	switch s {
	case L1, FillBuffer:
		depth = 1
	case L2:
		depth = 2
	case L3:
		depth = 3
	case L4:
		depth = 4
	case OtherCache, LocalMemory, RemoteMemory, PersistentMemory, CXLMemory:
		return miss
	case BeyondL1, BeyondL2, BeyondL3:
		if level <= int(s-BeyondL1)+1 {
			return miss
		}
		return unknown
	default:
		return unknown
	}
	switch {
	case level < depth:
		return miss
	case level == depth:
		return hit
	}
	return notReached
}
