package sasmm

import (
	"io"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/ppt"
)

// Files contains PPT's additional files for a trace without region marks, such as the table of
// blocks and the shared addresses.
//
//  1. Without shared_addresses.dat, [Files.Addresses] reads the trace once to find the addresses
//     referenced in blocks that are labelled as shared.
//  2. [Ranges] converts the shared addresses to Options.Ranges.
//  3. [Files.Mark] returns a reader of the trace with region marks, for [Private] and [Shared].
//
// A region is a sequence of consecutive executions of parallel blocks. Any block that is not
// parallel ends the region, even a block of a function that a parallel block calls.
type Files struct {
	Blocks []ppt.BlockName  // the block table; nil if the trace names blocks by function and block
	Shared []trace.Addr     // from shared_addresses.dat, or nil
	Counts []ppt.BlockCount // from bb_counts.dat, or nil
	Bounds *ppt.Bounds      // from min_max_addr.dat, or nil

	// Parallel reports whether a block is parallel, and IsShared reports whether the label of a
	// block marks shared variables. If one of these functions is nil, the methods of
	// [ppt.BlockName] are used instead.
	Parallel, IsShared func(ppt.BlockName) bool
}

// FilesError reports that PPT files do not belong to the trace, or that necessary data are missing.
type FilesError struct {
	What string // description of the problem
	Want string
}

func (e *FilesError) Error() string { return e.What + "; want " + e.Want }

const sameRun = "a trace and PPT files from the same run of the same program"

// Ranges returns the private addresses: all addresses that are not shared.
func Ranges(shared []trace.Addr) []Range {
	sorted := slices.Clone(shared)
	slices.Sort(sorted)
	ranges, low := []Range{}, trace.Addr(0)
	for _, a := range slices.Compact(sorted) {
		if a > low {
			ranges = append(ranges, Range{low, a})
		}
		if low = a + 1; low == 0 {
			return ranges // the shared address is the highest address, 2^64-1
		}
	}
	if low < math.MaxUint64 {
		ranges = append(ranges, Range{low, math.MaxUint64})
	}
	return ranges
}

// Addresses returns the addresses that are referenced in blocks labelled as shared, in ascending
// order. These are the contents of shared_addresses.dat. If the trace contains no such block,
// the error is a *[FilesError].
func (f *Files) Addresses(r trace.Reader) ([]trace.Addr, error) {
	m, err := f.mark(r)
	if err != nil {
		return nil, err
	}
	found := map[trace.Addr]struct{}{}
	runs := false
	b := trace.NewBatch(0)
	m.Select(trace.AllKinds | 1<<trace.BlockEntry)
	for {
		if err := m.Next(b); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		for i, k := range b.Kind {
			if b.Site == nil {
				continue
			}
			block := b.Site[i]
			if k != trace.BlockEntry {
				block = m.program.Sites[block].Block
			}
			if int(block) < len(m.facts) && m.facts[block].shared {
				if runs = true; k.IsReference() {
					found[b.Addr[i]] = struct{}{}
				}
			}
		}
	}
	if !runs {
		return nil, &FilesError{"no block in the trace is labelled as shared", "a block named shared_trace…, shared_var_trace… or global_var_trace…, or shared_addresses.dat"}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// Mark returns a reader of the trace that adds the marks of parallel regions. The reader returns a
// *[FilesError] if a block is not in the table, or an address is not within Bounds. At the end of
// the trace, the reader returns a *[FilesError] instead of io.EOF if no parallel block ran, a
// shared address never occurred, or the executions of a block differ from Counts.
func (f *Files) Mark(r trace.Reader) (*Marked, error) {
	m, err := f.mark(r)
	if err != nil {
		return nil, err
	}
	m.check = true
	if f.Blocks != nil && !slices.ContainsFunc(f.Blocks, m.parallel) {
		return nil, &FilesError{"the block table has no block of a parallel region", "blocks of functions that ROSE, clang, gcc or flang generates for parallel regions: OUT__…, .omp_outlined…, ._omp_fn.…, .omp_par…"}
	}
	m.unseen = map[trace.Addr]struct{}{}
	for _, a := range f.Shared {
		m.unseen[a] = struct{}{}
	}
	m.shared = len(m.unseen)
	return m, nil
}

func (f *Files) mark(r trace.Reader) (*Marked, error) {
	in, ok := r.(blockReader)
	if !ok {
		return nil, &BlocksError{}
	}
	m := &Marked{in: in, files: f, kinds: trace.AllKinds, batch: trace.NewBatch(0), parallel: f.Parallel, isShared: f.IsShared}
	if m.parallel == nil {
		m.parallel = ppt.BlockName.Parallel
	}
	if m.isShared == nil {
		m.isShared = ppt.BlockName.Shared
	}
	if f.Blocks != nil {
		m.table = map[[2]string]ppt.BlockName{}
		for _, b := range f.Blocks {
			m.table[[2]string{"", b.ID}] = b
			m.table[[2]string{b.Function, b.Block}] = b
		}
	}
	return m, nil
}

// blockReader is a trace reader that describes the blocks of the program.
type blockReader interface {
	trace.Reader
	trace.Selector
	trace.Describer
}

// Marked reads a PPT trace and adds the marks of parallel regions, as in recorded traces: a
// ParallelBegin before the entry of the first parallel block, and a ParallelEnd after the entry of
// the first block that is not parallel. Marked implements trace.Selector and trace.Describer.
type Marked struct {
	in                 blockReader
	files              *Files
	kinds              trace.Kinds
	started            bool
	batch              *trace.Batch
	at                 int
	ended              error
	table              map[[2]string]ppt.BlockName // keys are function and block, or "" and the ID
	parallel, isShared func(ppt.BlockName) bool
	check              bool

	program *trace.Program
	facts   []blockFacts // by block of the program: facts about the block
	inside  bool         // whether the current row is in a region
	regions uint64
	pending bool // whether a ParallelEnd must be written before the next row

	shared int                     // number of shared addresses that must occur
	unseen map[trace.Addr]struct{} // shared addresses that have not occurred yet
}

type blockFacts struct {
	parallel, shared bool
	executions       uint64
}

// Select implements [trace.Selector].
func (m *Marked) Select(kinds trace.Kinds) { m.kinds = kinds }

// Header implements [trace.Describer].
func (m *Marked) Header() trace.Header { return m.in.Header() }

// Next implements [trace.Reader].
func (m *Marked) Next(b *trace.Batch) error {
	if !m.started {
		m.started = true
		m.in.Select(m.kinds&^(1<<trace.BareBlock) | trace.DataKinds | 1<<trace.BlockEntry)
	}
	b.Reset()
	for b.Len() < b.Cap() {
		if m.at == m.batch.Len() {
			if m.ended != nil {
				break
			}
			m.at = 0
			if err := m.in.Next(m.batch); err != nil {
				m.batch.Reset()
				if m.ended = m.checkAtEnd(err); trace.IsSyntax(err) && b.Len() == 0 {
					m.ended = nil
					return err
				}
				continue
			}
			m.program = m.in.Header().Program
			continue
		}
		if err := m.writeNext(b); err != nil {
			m.batch.Reset()
			m.at, m.ended = 0, err
		}
	}
	if b.Len() > 0 {
		return nil
	}
	b.Reset()
	err := m.ended
	if trace.IsSyntax(err) {
		m.ended = nil
	}
	return err
}

// writeNext writes the next row to b, or the region mark that must precede this row.
func (m *Marked) writeNext(b *trace.Batch) error {
	if m.pending {
		m.pending = false
		m.writeRow(b, trace.ParallelEnd, 0, 0, 0)
		return nil
	}
	kind, addr, site := m.batch.Kind[m.at], m.batch.Addr[m.at], uint32(0)
	block := noBlock
	if m.batch.Site != nil && m.program != nil {
		if site = m.batch.Site[m.at]; kind == trace.BlockEntry {
			block = site
		} else if uint64(site) < uint64(len(m.program.Sites)) {
			block = m.program.Sites[site].Block
		}
	}
	known, err := m.factsOf(block)
	if err != nil {
		return err
	}
	if parallel := known != nil && known.parallel; parallel && !m.inside {
		m.inside = true
		m.regions++
		m.writeRow(b, trace.ParallelBegin, 0, 0, 0)
		return nil
	} else if !parallel && m.inside {
		m.inside, m.pending = false, true
	}
	if kind == trace.BlockEntry && known != nil && m.program.Blocks[block].Part == 0 {
		known.executions++
	}
	if kind.IsReference() {
		if err := m.occurred(addr); err != nil {
			return err
		}
	}
	m.writeRow(b, kind, addr, m.batch.Bytes[m.at], site)
	m.at++
	return nil
}

// writeRow writes a row to b if the row's kind was selected.
func (m *Marked) writeRow(b *trace.Batch, kind trace.Kind, addr trace.Addr, bytes, site uint32) {
	if kind == trace.BlockEntry && !m.kinds.Has(kind) {
		kind = trace.BareBlock // for PPT traces, it is unknown which blocks have no references
	}
	if !m.kinds.Has(kind) {
		return
	}
	if m.program != nil {
		b.NeedSite()
	}
	b.Append(kind, addr, bytes, 0, 0)
	if b.Site != nil {
		b.Site[b.Len()-1] = site
	}
}

// factsOf returns the facts about a block, and determines these facts first if necessary. It
// returns nil if there is no block with this number.
func (m *Marked) factsOf(block uint32) (*blockFacts, error) {
	if block == noBlock || m.program == nil || uint64(block) >= uint64(len(m.program.Blocks)) {
		return nil, nil
	}
	for n := len(m.facts); n <= int(block); n++ {
		x := &m.program.Blocks[n]
		if x.Flags&trace.Synthetic != 0 {
			m.facts = append(m.facts, blockFacts{})
			continue
		}
		name := ppt.BlockName{ID: x.Label, Block: x.Label}
		if x.Function != trace.NoFunction {
			name.Function = m.program.Functions[x.Function].Name
		}
		if m.table != nil {
			found, ok := m.table[[2]string{name.Function, x.Label}]
			if !ok {
				return nil, &FilesError{"block " + strconv.Quote(x.Label) + " of the trace is not in the block table", sameRun}
			}
			name = found
		} else if name.Function == "" {
			return nil, &FilesError{"block " + strconv.Quote(x.Label) + " of the trace is named by a hash, so it is unknown whether the block is parallel", "the block table that Byfl printed, with lines of the form BasicBlock: ID: (function, block)"}
		}
		m.facts = append(m.facts, blockFacts{parallel: m.parallel(name), shared: m.isShared(name)})
	}
	return &m.facts[block], nil
}

func (m *Marked) occurred(addr trace.Addr) error {
	if !m.check {
		return nil
	}
	if x := m.files.Bounds; x != nil && (addr < x.Low || addr > x.High) {
		return &FilesError{"address " + hex(addr) + " of the trace is not in the range " + hex(x.Low) + " to " + hex(x.High) + " of min_max_addr.dat", sameRun}
	}
	delete(m.unseen, addr)
	return nil
}

func hex(a trace.Addr) string { return "0x" + strconv.FormatUint(a, 16) }

// checkAtEnd compares the complete trace with the files.
func (m *Marked) checkAtEnd(err error) error {
	if err != io.EOF || !m.check {
		return err
	}
	if m.regions == 0 {
		return &FilesError{"no block of a parallel region occurs in the trace", "a trace of an OpenMP program, and a table of the program's parallel blocks"}
	}
	if len(m.unseen) > 0 {
		first := slices.Min(slices.Collect(maps.Keys(m.unseen)))
		return &FilesError{strconv.Itoa(len(m.unseen)) + " of " + strconv.Itoa(m.shared) + " shared addresses do not occur in the trace; the lowest such address is " + hex(first), sameRun}
	}
	if err := m.checkCounts(); err != nil {
		return err
	}
	return io.EOF
}

// checkCounts compares the numbers of executions of all blocks with bb_counts.dat.
func (m *Marked) checkCounts() error {
	if m.files.Counts == nil {
		return nil
	}
	ran := map[string]uint64{}
	for n := range m.facts {
		x := &m.program.Blocks[n]
		if x.Flags&trace.Synthetic != 0 || x.Part > 0 {
			continue
		}
		name := x.Label
		if x.Function != trace.NoFunction {
			name = "(" + m.program.Functions[x.Function].Name + ", " + x.Label + ")"
		}
		ran[name] += m.facts[n].executions
	}
	for _, c := range m.files.Counts {
		if ran[c.ID] != c.Executions {
			return &FilesError{"block " + strconv.Quote(c.ID) + " runs " + strconv.FormatUint(ran[c.ID], 10) + " times in the trace, but " + strconv.FormatUint(c.Executions, 10) + " times according to bb_counts.dat", sameRun}
		}
	}
	return nil
}
