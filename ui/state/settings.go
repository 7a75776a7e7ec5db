package state

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/sample"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Settings contains the values of the form on the first screen.
type Settings struct {
	LineBytes []string
	Kinds     string
	Format    string // the trace's format; "": detect it
	Touched   bool   // count the accesses to each byte
	// record the line utilisation of each site, and the sites that previously accessed the same
	// lines
	Reuse   bool
	Loops   bool   // compress the trace to loops
	Cores   string // groups of threads that share a private cache, such as 0,1/2,3; "": none
	Sample  string // the sample, in the syntax of [sample.Parse]; "": the whole trace
	Memory  string // the memory limit of an analysis, such as 1GiB; "": the default limit
	Workers string // the number of workers; "": chosen automatically
}

// WorkerCount returns the number of workers; 0 means that the number is chosen automatically.
func (s Settings) WorkerCount() uint32 {
	n, err := strconv.ParseUint(s.Workers, 10, 8)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// Spec converts the form to a spec. If no box is checked, the spec has 64-byte lines and data
// references. Line sizes are in ascending order.
func (s Settings) Spec() (analysis.Spec, error) {
	spec := analysis.Spec{Kinds: trace.DataKinds}
	for _, text := range s.LineBytes {
		n, err := strconv.ParseUint(text, 10, 13)
		if err != nil || n < 8 || n > 4096 || n&(n-1) != 0 {
			return spec, &trace.OptionError{Option: "line size", Got: text, Want: "a power of two from 8 to 4096"}
		}
		spec.LineBytes = append(spec.LineBytes, uint32(n))
	}
	if len(spec.LineBytes) == 0 {
		spec.LineBytes = []uint32{64}
	}
	if s.Kinds != "" {
		kinds, err := trace.ParseKinds(s.Kinds)
		if err != nil {
			return spec, err
		}
		spec.Kinds = kinds
	}
	if s.Touched {
		spec.Analyses = analysis.Locality | analysis.Counters | analysis.Sites | analysis.Sets | analysis.Sharing | analysis.Communication
	}
	if s.Loops {
		spec.Analyses |= analysis.Loops
	}
	if s.Reuse {
		spec.Previous, spec.Utilisation = true, []uint64{32 << 10, 1 << 20}
	}
	if text := strings.TrimSpace(s.Cores); text != "" {
		cores, err := analysis.ParseGroups("threads that share a private cache", text)
		if err != nil {
			return spec, err
		}
		spec.Cores = cores
	}
	return spec, s.sample(&spec)
}

// defaultMemory is the default memory limit of an analysis.
const defaultMemory = 2 << 30

// MemoryBytes returns the memory limit of an analysis in the browser.
func (s Settings) MemoryBytes() uint64 {
	if n, err := hierarchy.ParseSize(s.Memory); err == nil {
		return n
	}
	return defaultMemory
}

// sample sets the spec's sample if the form contains a sample.
func (s Settings) sample(spec *analysis.Spec) error {
	text := strings.TrimSpace(s.Sample)
	if text == "" {
		spec.Analyses |= analysis.Usual
		if s.Loops {
			spec.Analyses &^= analysis.Regular
		}
		return nil
	}
	o, err := sample.Parse(text)
	if err != nil {
		return err
	}
	spec.Sample = o
	if spec.Analyses&^analysis.Loops != analysis.Default && o.Mode == profile.TimeSample {
		spec.Analyses &^= analysis.Communication
	}
	return nil
}

// Measure makes the analysis measure, for each site, the misses in a hierarchy's levels, because
// stack distances alone cannot attribute the misses of set-associative caches. A level is measured
// if its line size is the line size of the sites. If the line size of a level is not analysed at
// all, the level is measured with the line size of the sites instead. Measure skips levels with
// hashed sets, and has no effect on samples.
func Measure(spec *analysis.Spec, levels []hierarchy.Cache) {
	if spec.Sample != nil {
		return
	}
	line := spec.SiteLineBytes()
	for _, c := range levels {
		if !slices.Contains(spec.WithDefaults().LineBytes, c.LineBytes) {
			c = withLine(c, line)
		}
		if c.LineBytes != line || c.Hashed {
			continue
		}
		ways := c.Ways
		if c.Full() {
			ways = 0
		}
		spec.Measure(c.SizeBytes, ways)
	}
}

// SpecKey returns a text that identifies the settings of an analysis. Different settings have
// different texts.
func SpecKey(spec analysis.Spec) string {
	text := spec.Kinds.String()
	for _, n := range spec.LineBytes {
		text += "," + strconv.FormatUint(uint64(n), 10)
	}
	if spec.Analyses != analysis.Default {
		text += "," + spec.Analyses.String()
	}
	for _, list := range [][][]uint32{spec.Cores, spec.Domains} {
		for _, threads := range list {
			text += ";"
			for _, n := range threads {
				text += "," + strconv.FormatUint(uint64(n), 10)
			}
		}
	}
	if spec.Previous {
		text += ",previous"
	}
	if spec.Skip > 0 || spec.Limit > 0 {
		text += ";" + strconv.FormatUint(spec.Skip, 10) + "+" + strconv.FormatUint(spec.Limit, 10)
	}
	if o, ok := spec.Sample.(sample.Options); ok {
		for _, n := range []uint64{uint64(o.Mode), o.Threshold, o.Lines, o.Gap, o.Seed} {
			text += "~" + strconv.FormatUint(n, 10)
		}
	}
	for i, n := range spec.Utilisation {
		text += "," + strconv.FormatUint(n, 10)
		if i < len(spec.UtilisationWays) {
			text += "x" + strconv.FormatUint(uint64(spec.UtilisationWays[i]), 10)
		}
	}
	return text
}
