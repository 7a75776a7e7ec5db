// Package parts reads a trace that was converted to containers, one for each part of the file. The
// rows are the rows of the original file: the code and the sites that containers invent for rows
// without sites are omitted. An analysis of the parts therefore has the same result as an analysis
// of the original file.
package parts

import (
	"io"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// Source is a trace that consists of several containers; see [trace.Source]. The offset of a chunk is
// its offset in its container plus the sizes of all earlier containers.
type Source struct {
	parts   []part
	header  trace.Header
	threads int
}

type part struct {
	*sgt.Source
	base   uint64 // sum of the sizes of all earlier containers
	chunks []trace.Chunk
}

// File is a container.
type File struct {
	Name    string
	Content io.ReaderAt
	Bytes   int64
}

// New returns the trace that the containers form together. Its readers return the given header, which
// must be the header of the original trace. threads is the number of threads with references.
func New(files []File, header trace.Header, threads int) (*Source, error) {
	s := &Source{header: header, threads: threads}
	base := uint64(0)
	for _, f := range files {
		source, err := sgt.NewSource(f.Name, f.Content, f.Bytes, nil)
		if err != nil {
			return nil, err
		}
		p := part{Source: source.Merged(), base: base}
		for _, c := range p.Source.Chunks() {
			if c.References > 0 {
				p.chunks = append(p.chunks, c)
			}
		}
		if len(p.chunks) > 0 { // a part without references has nothing to read
			s.parts = append(s.parts, p)
		}
		base += uint64(f.Bytes)
	}
	return s, nil
}

// Chunks implements [trace.Source].
func (s *Source) Chunks() (list []trace.Chunk) {
	for _, p := range s.parts {
		for _, c := range p.chunks {
			list = append(list, trace.Chunk{At: p.base + c.At, References: c.References})
		}
	}
	return list
}

// Kinds implements [trace.Source].
func (s *Source) Kinds() (all trace.Kinds) {
	for _, p := range s.parts {
		all |= p.Source.Kinds() & trace.AllKinds
	}
	return all
}

// Open implements [trace.Source]. If no kinds are selected, the header contains the number of threads.
func (s *Source) Open(chunk uint64, kinds trace.Kinds) trace.Mover {
	m := &mover{of: s, header: s.header, kinds: kinds & trace.AllKinds, stop: trace.Position{Chunk: trace.AtEnd}}
	if kinds == 0 {
		m.header.Program = &trace.Program{ThreadCount: s.threads}
	}
	m.move(chunk)
	return m
}

// Agrees implements [trace.Source]. All readers have the same header.
func (s *Source) Agrees(r trace.Mover, _ uint64) bool {
	m, ok := r.(*mover)
	return ok && m.of == s
}

// mover reads one part after the other.
type mover struct {
	of         *Source
	header     trace.Header
	kinds      trace.Kinds
	here, stop trace.Position

	at     int         // number of the part that is read
	reader trace.Mover // reads this part; nil: the trace has ended
}

// move continues at the first chunk that does not begin before an offset.
func (m *mover) move(chunk uint64) {
	m.at = sort.Search(len(m.of.parts), func(i int) bool {
		p := &m.of.parts[i]
		return p.base+p.chunks[len(p.chunks)-1].At >= chunk
	})
	m.open(chunk)
}

// open begins to read part m.at at a chunk.
func (m *mover) open(chunk uint64) {
	if m.reader = nil; m.at == len(m.of.parts) {
		return
	}
	p := &m.of.parts[m.at]
	m.reader = p.Source.Open(chunk-min(chunk, p.base), m.kinds)
	m.Until(m.stop)
}

// Until implements [trace.Mover].
func (m *mover) Until(stop trace.Position) {
	if m.stop = stop; m.reader == nil {
		return
	}
	local := trace.Position{Chunk: trace.AtEnd}
	if m.at+1 == len(m.of.parts) || stop.Chunk < m.of.parts[m.at+1].base {
		if local = stop; stop.Chunk != trace.AtEnd {
			local.Chunk -= min(stop.Chunk, m.of.parts[m.at].base)
		}
	}
	m.reader.Until(local)
}

// Next implements [trace.Reader].
func (m *mover) Next(b *trace.Batch) error {
	for m.reader != nil {
		err := m.reader.Next(b)
		if err == io.EOF {
			m.at++
			m.open(0)
			continue
		}
		if err == nil {
			m.here = m.reader.Position()
			m.here.Chunk += m.of.parts[m.at].base
			b.Site = nil
			if !m.header.Threads {
				b.Thread = nil
			}
			if !m.header.PCs {
				b.PC = nil
			}
		}
		return err
	}
	b.Reset()
	return io.EOF
}

// Header implements [trace.Describer].
func (m *mover) Header() trace.Header { return m.header }

// Position implements [trace.Mover].
func (m *mover) Position() trace.Position { return m.here }

// Narrow implements [trace.Mover].
func (m *mover) Narrow(kinds trace.Kinds) {
	if m.kinds &= kinds; m.reader != nil {
		m.reader.Narrow(m.kinds)
	}
}

// Pass implements [trace.Mover].
func (m *mover) Pass(chunk uint64) error {
	if chunk != trace.AtEnd && !slices.ContainsFunc(m.of.Chunks(), func(c trace.Chunk) bool { return c.At == chunk }) {
		return trace.ErrNotThere
	}
	m.here = trace.Position{Chunk: chunk}
	m.move(chunk)
	return nil
}
