package validate

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// Cachegrind is what Valgrind's cache simulator counted of data references in some source
// files. It has one first-level cache for all threads, which Valgrind runs one after the
// other, a slice of time each; no store takes a line from another core; instructions share
// the last level with data; and it counts what a trace may not have: registers that
// functions save.
type Cachegrind struct {
	References, FirstMisses, LastMisses uint64
}

// First is the hit rate of the first-level cache.
func (c Cachegrind) First() float64 { return c.rate(c.FirstMisses) }

// Last is the global hit rate of the last level: 1 - misses by all references.
func (c Cachegrind) Last() float64 { return c.rate(c.LastMisses) }

func (c Cachegrind) rate(misses uint64) float64 {
	if c.References == 0 {
		return 1
	}
	return 1 - float64(misses)/float64(c.References)
}

// ReadCachegrind sums the counts of those source files that are the program's own, of a
// cachegrind.out file (Valgrind User Manual, §5.9), written with --cache-sim=yes. name is
// for messages. The error is a *trace.SyntaxError, or one of r.
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
				if !contains(columns, column) {
					return c, wrong("events", string(rest), "Dr, D1mr, DLmr, Dw, D1mw and DLmw among them, as with --cache-sim=yes")
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
			return c, wrong("counts", string(line), "as many as there are events")
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

func contains(list []string, word string) bool {
	for _, w := range list {
		if w == word {
			return true
		}
	}
	return false
}
