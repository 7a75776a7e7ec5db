package hierarchy

import (
	"slices"
	"strconv"
	"strings"
)

// PrefetchKind is a kind of prefetcher. Package simulate defines the kinds. In a cache with
// sub-blocks, sub-blocks are prefetched instead of lines.
type PrefetchKind uint8

// The kinds of prefetchers.
const (
	NoPrefetch PrefetchKind = iota
	NextLine                // the following lines, after a miss
	Tagged                  // the following lines, after a miss and after the first use of a prefetched line
	Always                  // the following lines, after every access
	Adjacent                // the other line of an aligned pair of lines, after a miss
	// the next addresses of an instruction that accesses memory with a constant stride
	Stride
	Stream      // the next lines in the direction of ascending or descending accesses within a page
	LoadForward // the following sub-blocks of the same line, after every access
	SubBlock    // the following sub-blocks, after every access, wrapping around in the line
)

var prefetchWords = [...]string{"none", "next-line", "tagged", "always", "adjacent", "stride", "stream", "load-forward", "sub-block"}

func (k PrefetchKind) String() string { return prefetchWords[k] }

// PrefetchKinds returns the names of the kinds, in the order of the constants.
func PrefetchKinds() []string { return prefetchWords[:] }

// Prefetch describes a prefetcher. The zero value means that there is no prefetcher.
type Prefetch struct {
	Kind     PrefetchKind
	Degree   uint32 // number of lines that one prefetch loads; 0 means 1
	Distance uint32 // number of lines, or strides, from the access to the first prefetched line; 0 means 1
	Drop     uint8  // percentage of prefetches that are dropped at random
	Reads    bool   // stores do not cause prefetches
	Chained  bool   // prefetches of the level above also cause prefetches
}

// MostAhead is the maximum degree and distance of a prefetcher.
const MostAhead = 1 << 10

func (p Prefetch) withinLine() bool { return p.Kind == LoadForward || p.Kind == SubBlock }

// ParsePrefetch parses the name of a kind, and options separated by colons: degree=N, distance=N,
// drop=PERCENT, reads and chained, for example stride:degree=2:distance=4.
func ParsePrefetch(s string) (p Prefetch, ok bool) {
	word, rest, more := strings.Cut(s, ":")
	kind := slices.Index(prefetchWords[:], strings.TrimSpace(word))
	if kind < 0 || kind == 0 && more {
		return p, false
	}
	p.Kind = PrefetchKind(kind)
	seen := map[string]bool{}
	for more {
		word, rest, more = strings.Cut(rest, ":")
		key, value, valued := strings.Cut(strings.TrimSpace(word), "=")
		n, err := strconv.ParseUint(value, 10, 16)
		number := valued && err == nil && n >= 1
		switch {
		case seen[key]:
			return p, false
		case key == "reads" && !valued:
			p.Reads = true
		case key == "chained" && !valued:
			p.Chained = true
		case key == "degree" && number && n <= MostAhead:
			p.Degree = uint32(n)
		case key == "distance" && number && n <= MostAhead:
			p.Distance = uint32(n)
		case key == "drop" && number && n <= 100:
			p.Drop = uint8(n)
		default:
			return p, false
		}
		seen[key] = true
	}
	return p, true
}

// String formats the prefetcher as text that ParsePrefetch accepts.
func (p Prefetch) String() string {
	s := p.Kind.String()
	for _, n := range []struct {
		name  string
		value uint64
	}{{"degree", uint64(p.Degree)}, {"distance", uint64(p.Distance)}, {"drop", uint64(p.Drop)}} {
		if n.value > 0 {
			s += ":" + n.name + "=" + strconv.FormatUint(n.value, 10)
		}
	}
	if p.Reads {
		s += ":reads"
	}
	if p.Chained {
		s += ":chained"
	}
	return s
}
