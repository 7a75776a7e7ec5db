package validate

import (
	"bufio"
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// Cachegrind contains the counts of Valgrind's cache simulator for the data references of some
// source files. In the simulator, all threads take turns and use one first-level cache, stores
// never invalidate lines in other cores' caches, and instructions share the last level with data.
// The simulator also counts accesses that save registers. A trace does not necessarily contain
// these accesses.
type Cachegrind struct {
	References, FirstMisses, LastMisses uint64
}

// First returns the hit ratio of the first-level cache.
func (c Cachegrind) First() float64 { return c.rate(c.FirstMisses) }

// Last returns the global hit ratio of the last level: 1 - misses / references.
func (c Cachegrind) Last() float64 { return c.rate(c.LastMisses) }

func (c Cachegrind) rate(misses uint64) float64 {
	if c.References == 0 {
		return 1
	}
	return 1 - float64(misses)/float64(c.References)
}

// ReadCachegrind sums the counts of the program's own source files in a cachegrind.out file
// (Valgrind User Manual, §5.9), which must have been written with --cache-sim=yes. Error messages
// contain the given file name. The error is a *trace.SyntaxError or an error of r.
func ReadCachegrind(name string, r io.Reader, own func(file string) bool) (c Cachegrind, err error) {
	var columns []string
	counted, at := false, 0
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 1<<16), 1<<20)
	wrong := func(what, got, want string) error {
		return &trace.SyntaxError{File: name, Line: at, What: what, Got: got, Want: want}
	}
	for lines.Scan() {
		line := lines.Bytes()
		at++
		if rest, ok := bytes.CutPrefix(line, []byte("events: ")); ok {
			columns = strings.Fields(string(rest))
			for _, column := range []string{"Dr", "D1mr", "DLmr", "Dw", "D1mw", "DLmw"} {
				if !slices.Contains(columns, column) {
					return c, wrong("events", string(rest), "a list with Dr, D1mr, DLmr, Dw, D1mw and DLmw, as with --cache-sim=yes")
				}
			}
			continue
		}
		if file, ok := bytes.CutPrefix(line, []byte("fl=")); ok {
			counted = own(string(file))
			continue
		}
		if !counted || len(line) == 0 || line[0] < '0' || line[0] > '9' {
			continue
		}
		fields := strings.Fields(string(line))[1:]
		if len(fields) > len(columns) {
			return c, wrong("counts", string(line), "at most as many counts as events")
		}
		for i, field := range fields {
			n, err := strconv.ParseUint(field, 10, 63)
			if err != nil {
				return c, wrong("count", field, "a number")
			}
			switch columns[i] {
			case "Dr", "Dw":
				c.References += n
			case "D1mr", "D1mw":
				c.FirstMisses += n
			case "DLmr", "DLmw":
				c.LastMisses += n
			}
		}
	}
	if err := lines.Err(); err != nil {
		return c, err
	}
	if columns == nil {
		at = 1
		return c, wrong("file", "no events", "a cachegrind.out file")
	}
	return c, nil
}
