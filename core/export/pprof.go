package export

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// Pprof returns the sheet as an uncompressed profile.proto message
// (github.com/google/pprof/proto/profile.proto). Each entry becomes a sample, with its callers if
// they are known. The kind of reference, the datatype and the variable are labels of the sample.
//
// pprof adds up the values of samples, so every event is a sum. The sheet therefore contains the
// sum of the distances, and not their mean. The first event is the number of accesses, because
// `pprof -mean` divides by the first event.
//
// The package has its own small encoder, because the library github.com/google/pprof/profile would
// add fmt, regexp and gzip to the code of the page.
func (s *Sheet) Pprof() []byte {
	p := &pprofEncoder{strings: map[string]uint64{"": 0}, order: []string{""},
		functions: map[pprofFunction]uint64{}, locations: map[pprofLocation]uint64{}}
	for _, e := range s.Events {
		p.out.message(pprofSampleType, func(m *message) {
			m.uint(1, p.stringIndex(e.Key))
			m.uint(2, p.stringIndex(e.Unit))
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
		p.appendMapping(uint64(i+1), &modules[i])
	}
	p.out.appendEncoded(p.tables.b)
	if s.Command != "" {
		p.out.uint(pprofComment, p.stringIndex("program: "+s.Command))
	}
	for _, note := range s.Notes {
		p.out.uint(pprofComment, p.stringIndex(note))
	}
	if len(s.Events) > 0 {
		p.out.uint(pprofDefaultSampleType, p.stringIndex(s.Events[s.Main].Key))
	}
	for _, text := range p.order {
		p.out.string(pprofString, text)
	}
	return p.out.b
}

// The field numbers of the message Profile.
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

// pprofEncoder encodes a sheet as a pprof profile.
type pprofEncoder struct {
	out       message // all fields except Location and Function
	tables    message // the fields Location and Function
	strings   map[string]uint64
	order     []string
	functions map[pprofFunction]uint64 // IDs, starting from 1
	locations map[pprofLocation]uint64
}

type pprofFunction struct{ name, symbol, file string }

type pprofLocation struct {
	mapping, address, function uint64
	line, column               uint32
}

// stringIndex returns the index of a string in the string table.
func (p *pprofEncoder) stringIndex(s string) uint64 {
	index, known := p.strings[s]
	if !known {
		index = uint64(len(p.order))
		p.strings[s], p.order = index, append(p.order, s)
	}
	return index
}

func (p *pprofEncoder) sample(s *Sheet, e *Entry, modules []module) {
	stack := []uint64{p.location(e, modules)} // locations of the stack, starting with the innermost
	callers := s.callerPaths(e)
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
					m.uint(1, p.stringIndex(label.key))
					m.uint(2, p.stringIndex(label.value))
				})
			}
		}
	})
}

func (p *pprofEncoder) location(e *Entry, modules []module) uint64 {
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

func (p *pprofEncoder) function(f pprofFunction) uint64 {
	id, known := p.functions[f]
	if known {
		return id
	}
	id = uint64(len(p.functions) + 1)
	p.functions[f] = id
	p.tables.message(pprofFunctions, func(m *message) {
		m.uint(1, id)
		m.uint(2, p.stringIndex(f.name))
		m.uint(3, p.stringIndex(f.symbol))
		m.uint(4, p.stringIndex(f.file))
	})
	return id
}

// appendMapping appends the Mapping message of a module. The message states that names and lines
// are known. Otherwise, pprof would look for them in a file with the module's name.
func (p *pprofEncoder) appendMapping(id uint64, of *module) {
	p.out.message(pprofMapping, func(m *message) {
		m.uint(1, id)
		m.uint(2, of.base)
		m.uint(3, of.limit)
		m.uint(5, p.stringIndex(of.name))
		for _, known := range []int{7, 8, 9} { // the fields has_functions, has_filenames and has_line_numbers
			m.uint(known, 1)
		}
	})
}

// module is an executable file or library that was loaded into memory.
type module struct {
	name        string
	base, limit uint64 // the address range [base, limit) that contains the module's entries
}

func (m *module) holds(e *Entry) bool { return e.Module == m.name && e.PC-e.Offset == m.base }

// modules returns the modules of all entries with an address, in the order in which they first
// occur.
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

// message encodes a protocol-buffer message. It omits zeros, except in repeated fields, because
// zero is the default.
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

// appendEncoded appends bytes that are already encoded.
func (m *message) appendEncoded(b []byte) { m.b = append(m.b, b...) }
