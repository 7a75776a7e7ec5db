package export

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// Pprof writes the sheet as a profile.proto message, uncompressed
// (github.com/google/pprof/proto/profile.proto). Each entry is a sample, with its callers
// if they are known. The kind of reference, the datatype and the variable are labels of the sample.
//
// pprof adds up the values of samples, so every event is a sum. The sheet therefore contains the
// sum of the distances, and not their mean. The first event is the number of accesses, because
// `pprof -mean` divides by the first event.
//
// This package contains a small encoder, because the library github.com/google/pprof/profile would
// link fmt, regexp and gzip into the page.
func (s *Sheet) Pprof() []byte {
	p := &pprof{strings: map[string]uint64{"": 0}, order: []string{""},
		functions: map[pprofFunction]uint64{}, locations: map[pprofLocation]uint64{}}
	for _, e := range s.Events {
		p.out.message(pprofSampleType, func(m *message) {
			m.uint(1, p.text(e.Key))
			m.uint(2, p.text(e.Unit))
		})
	}
	modules := s.modules()
	for i := range s.Entries {
		p.sample(s, &s.Entries[i], modules)
	}
	if len(modules) == 0 && s.Command != "" {
		// pprof uses the name of the first module as the name of the profile
		modules = []module{{name: s.Command}}
	}
	for i := range modules {
		p.mapping(uint64(i+1), &modules[i])
	}
	p.out.bytes(p.tables.b)
	if s.Command != "" {
		p.out.uint(pprofComment, p.text("program: "+s.Command))
	}
	for _, note := range s.Notes {
		p.out.uint(pprofComment, p.text(note))
	}
	if len(s.Events) > 0 {
		p.out.uint(pprofDefaultSampleType, p.text(s.Events[s.Main].Key))
	}
	for _, text := range p.order {
		p.out.string(pprofString, text)
	}
	return p.out.b
}

// The fields of the message Profile.
const (
	pprofSampleType        = 1
	pprofSample            = 2
	pprofMapping           = 3
	pprofLocations         = 4
	pprofFunctions         = 5
	pprofString            = 6
	pprofComment           = 13
	pprofDefaultSampleType = 14
)

// pprof is a profile during encoding.
type pprof struct {
	out       message // all fields except locations and functions
	tables    message // locations and functions
	strings   map[string]uint64
	order     []string
	functions map[pprofFunction]uint64 // identifiers, starting from 1
	locations map[pprofLocation]uint64
}

type pprofFunction struct{ name, symbol, file string }

type pprofLocation struct {
	mapping, address, function uint64
	line, column               uint32
}

// text returns the index of a string in the table.
func (p *pprof) text(s string) uint64 {
	index, known := p.strings[s]
	if !known {
		index = uint64(len(p.order))
		p.strings[s], p.order = index, append(p.order, s)
	}
	return index
}

func (p *pprof) sample(s *Sheet, e *Entry, modules []module) {
	stack := []uint64{p.location(e, modules)} // the innermost location first
	callers := s.callers(e)
	for i := len(callers) - 1; i >= 0; i-- {
		at := &s.Calls.Paths[callers[i]]
		stack = append(stack, p.location(&Entry{Function: s.Calls.Names[callers[i]], Symbol: at.Function, File: at.File, Line: at.Line}, modules))
	}
	p.out.message(pprofSample, func(m *message) {
		m.packed(1, stack)
		values := make([]uint64, len(e.Counts))
		for i, n := range e.Counts {
			values[i] = min(n, math.MaxInt64)
		}
		m.packed(2, values)
		for _, label := range [...]struct{ key, value string }{{"kind", e.Kind}, {"type", e.Type}, {"variable", e.Variable}} {
			if label.value != "" {
				m.message(3, func(m *message) {
					m.uint(1, p.text(label.key))
					m.uint(2, p.text(label.value))
				})
			}
		}
	})
}

func (p *pprof) location(e *Entry, modules []module) uint64 {
	at := pprofLocation{address: e.PC, function: p.function(pprofFunction{e.Name(), cmp.Or(e.Symbol, e.Name()), e.File}), line: e.Line, column: e.Column}
	for i := range modules {
		if e.PC != 0 && modules[i].holds(e) {
			at.mapping = uint64(i + 1)
		}
	}
	id, known := p.locations[at]
	if known {
		return id
	}
	id = uint64(len(p.locations) + 1)
	p.locations[at] = id
	p.tables.message(pprofLocations, func(m *message) {
		m.uint(1, id)
		m.uint(2, at.mapping)
		m.uint(3, at.address)
		m.message(4, func(m *message) {
			m.uint(1, at.function)
			m.uint(2, uint64(at.line))
			m.uint(3, uint64(at.column))
		})
	})
	return id
}

func (p *pprof) function(f pprofFunction) uint64 {
	id, known := p.functions[f]
	if known {
		return id
	}
	id = uint64(len(p.functions) + 1)
	p.functions[f] = id
	p.tables.message(pprofFunctions, func(m *message) {
		m.uint(1, id)
		m.uint(2, p.text(f.name))
		m.uint(3, p.text(f.symbol))
		m.uint(4, p.text(f.file))
	})
	return id
}

// mapping writes the Mapping message of a module. The message states that names and lines are
// known, because otherwise pprof would look for names and lines in a file with the module's name.
func (p *pprof) mapping(id uint64, of *module) {
	p.out.message(pprofMapping, func(m *message) {
		m.uint(1, id)
		m.uint(2, of.base)
		m.uint(3, of.limit)
		m.uint(5, p.text(of.name))
		for _, known := range []int{7, 8, 9} { // the fields has_functions, has_filenames and has_line_numbers
			m.uint(known, 1)
		}
	})
}

// module is an executable file, loaded at base.
type module struct {
	name        string
	base, limit uint64 // the address range; limit is the end of the highest address in use
}

func (m *module) holds(e *Entry) bool { return e.Module == m.name && e.PC-e.Offset == m.base }

// modules returns the modules of the entries with an address, in the order of these entries.
func (s *Sheet) modules() (list []module) {
	for i := range s.Entries {
		e := &s.Entries[i]
		if e.Module == "" || e.PC == 0 {
			continue
		}
		at := slices.IndexFunc(list, func(m module) bool { return m.holds(e) })
		if at < 0 {
			at = len(list)
			list = append(list, module{name: e.Module, base: e.PC - e.Offset})
		}
		list[at].limit = max(list[at].limit, e.PC+1)
	}
	return list
}

// message is a protocol-buffer message during encoding. Zeros are omitted, except in repeated
// fields, because zero is the default.
type message struct{ b []byte }

func (m *message) varint(n uint64) { m.b = binary.AppendUvarint(m.b, n) }

func (m *message) uint(field int, n uint64) {
	if n != 0 {
		m.varint(uint64(field) << 3)
		m.varint(n)
	}
}

func (m *message) string(field int, s string) {
	m.varint(uint64(field)<<3 | 2)
	m.varint(uint64(len(s)))
	m.b = append(m.b, s...)
}

func (m *message) message(field int, fill func(*message)) {
	var inner message
	fill(&inner)
	m.string(field, string(inner.b))
}

func (m *message) packed(field int, list []uint64) {
	m.message(field, func(inner *message) {
		for _, n := range list {
			inner.varint(n)
		}
	})
}

// bytes appends a field whose content is already encoded.
func (m *message) bytes(b []byte) { m.b = append(m.b, b...) }
