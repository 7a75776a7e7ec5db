// Package measured reads what hardware counters measured during a run, and compares the
// measurements with a prediction (MODELS §19). The package reads two kinds of text:
//
//   - samples of loads and stores, each with an address, a data source and a latency: the output of
//     perf script for a recording of perf mem record or perf c2c record
//   - counts of events for the whole run: the output of perf stat -x or of likwid-perfctr -O, and
//     CSV with the columns event and value
//
// Samples are not a trace. They have no order that stack distances could be computed from, so the
// package only reports shares, latencies and the cache lines that cores passed to each other.
package measured

import (
	"bytes"
	"math"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/trace/lines"
)

// Measurements contains the samples and the counts of one run, from any number of files.
type Measurements struct {
	Samples []Sample
	Counts  []Count
	Skipped int // number of samples without a data source
}

// Error is a sentence that says what is wrong with a file.
type Error struct{ Text string }

func (e *Error) Error() string { return e.Text }

// mark is the byte order mark of UTF-8.
var mark = []byte("\xef\xbb\xbf")

// Recognise reports whether a text that begins with head contains measurements.
func Recognise(head []byte) bool {
	head = bytes.TrimPrefix(head, mark)
	return isCounts(head) || len(head) > 0 && hasSample(head)
}

// HasSourceLines reports whether any sample has a source line.
func (m *Measurements) HasSourceLines() bool {
	return slices.ContainsFunc(m.Samples, func(s Sample) bool { return s.Source != "" })
}

// Add reads a file. The error is an [*Error] or a [*trace.SyntaxError].
func (m *Measurements) Add(name string, text []byte) error {
	text = bytes.TrimPrefix(text, mark)
	if isCounts(text) {
		counts, err := readCounts(name, text)
		m.Counts = append(m.Counts, counts...)
		return err
	}
	samples, skipped, err := readSamples(name, text)
	m.Samples = append(m.Samples, samples...)
	m.Skipped += skipped
	return err
}

// number parses a decimal number that may have a fraction.
func number(s []byte) (x float64, ok bool) {
	s = lines.Trim(s)
	if len(s) == 0 || s[0] != '-' && s[0] != '.' && (s[0] < '0' || s[0] > '9') {
		return 0, false // ParseFloat also accepts words such as inf
	}
	x, err := strconv.ParseFloat(string(s), 64)
	return x, err == nil && !math.IsInf(x, 0)
}
