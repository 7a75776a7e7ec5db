package arrange

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/internal/symbols"
)

// image is one file of code that was loaded into the process, or the code that belongs to no file.
type image struct {
	trace.Module
	file *symbols.File // the file's symbols, or nil if the file cannot be read
	// address at which the file is loaded minus the address for which it was linked
	loadBias uint64
	isCopy   bool // whether the program mapped the code a second time
}

// fileAddress converts an address in the process to an address in the file.
func (m *image) fileAddress(addr trace.Addr) uint64 { return addr - m.loadBias }

// mapping is a range of addresses that contains code of one file.
type mapping struct {
	base, end trace.Addr
	image     int // index of the file in the list "images"
}

// code describes the code of a recorded block.
type code struct {
	old      uint32 // the block's number in the recording
	image    int    // index of the block's file in the list "images", or -1 if the block belongs to no file
	first    uint64 // address of the block's first instruction, or of its first reference
	last     uint64 // address of the block's last instruction
	function uint64 // address of the block's function; 0: unknown
	isEvent  bool   // whether the block represents an event of the recorder, which has no address
}

// arrangement describes the program of a recording, and the new order of its blocks.
type arrangement struct {
	old      *trace.Program
	images   []image
	fileless image // the code that belongs to no file
	mappings []mapping
	code     []code   // the blocks in the new order
	number   []uint32 // the new block numbers, indexed by old block numbers
}

// arrange sorts the blocks by file, function and address. The blocks for the recorder's events come
// first, and belong to the first module, which is the program's file.
func arrange(p *trace.Program, run *Run, openSymbols func(path string) (*symbols.File, error)) *arrangement {
	a := &arrangement{old: p, number: make([]uint32, len(p.Blocks))}
	a.fileless = image{Module: trace.Module{Name: "code that belongs to no file"}, file: run.Generated}
	a.addImages(run.Program, openSymbols)
	for i := range p.Blocks {
		a.code = append(a.code, a.codeOf(uint32(i)))
	}
	slices.SortStableFunc(a.code, compareCode)
	for i, c := range a.code {
		a.number[c.old] = uint32(i)
	}
	return a
}

func compareCode(a, b code) int {
	switch {
	case a.isEvent != b.isEvent && a.isEvent:
		return -1
	case a.isEvent != b.isEvent:
		return 1
	case a.isEvent:
		return cmp.Compare(a.old, b.old)
	}
	return cmp.Or(
		cmp.Compare(uint(a.image), uint(b.image)), // code without a file comes last
		cmp.Compare(a.function, b.function),
		cmp.Compare(a.first, b.first),
		cmp.Compare(a.old, b.old),
	)
}

// addImages lists the files of code, starting with the program's file. In a recording, each module
// is a mapping that contains code, and its options are the offset of the mapping in the file.
func (a *arrangement) addImages(program string, openSymbols func(path string) (*symbols.File, error)) {
	files := map[string]*symbols.File{}
	open := func(path string) *symbols.File {
		if _, tried := files[path]; !tried {
			// The file may have been deleted since the run; the trace then contains only addresses.
			files[path], _ = openSymbols(path)
		}
		return files[path]
	}
	a.images = []image{{Module: trace.Module{Name: program}, file: open(program)}}
	for _, m := range a.old.Modules {
		if m.Name != "" {
			at := mapping{base: m.Base, end: m.End}
			at.image = a.addImage(newImage(m, open(m.Name)), at)
			a.mappings = append(a.mappings, at)
		}
	}
}

// newImage returns the file of a mapping.
func newImage(m trace.Module, file *symbols.File) image {
	offset, _ := strconv.ParseUint(m.Options, 0, 64)
	m.Options = ""
	if file != nil {
		if bias, ok := file.LoadBias(m.Base, m.End, offset); ok {
			m.Base, m.End = bias+file.Low, bias+file.High
			return image{Module: m, file: file, loadBias: bias}
		}
	}
	// Most linkers place code at the same distance from the first byte in the file and in memory.
	if offset <= m.Base {
		m.Base -= offset
	}
	return image{Module: m, loadBias: m.Base}
}

// addImage adds the file of a mapping unless the list contains it, and returns its index.
func (a *arrangement) addImage(m image, at mapping) int {
	isCopy := false
	for i := range a.images {
		switch other := &a.images[i]; {
		case other.Name != m.Name:
		case other.End == 0: // the program's file, before its first mapping
			*other = m
			return i
		case other.loadBias == m.loadBias:
			other.End = max(other.End, at.end)
			return i
		default:
			isCopy = true
		}
	}
	if isCopy {
		// V8 maps its built-in functions a second time, near the code that it compiles. The other
		// parts of the file are not at this distance.
		m.Base, m.End, m.isCopy = at.base, at.end, true
	}
	a.images = append(a.images, m)
	return len(a.images) - 1
}

// imageAt returns the index of the file whose code is at an address, or -1.
func (a *arrangement) imageAt(addr trace.Addr) int {
	i := slices.IndexFunc(a.mappings, func(m mapping) bool { return addr >= m.base && addr < m.end })
	if i < 0 {
		return -1
	}
	return a.mappings[i].image
}

// codeOf determines the file, the addresses and the function of a block.
func (a *arrangement) codeOf(number uint32) code {
	b := &a.old.Blocks[number]
	c := code{old: number, image: -1}
	if b.Sites > 0 {
		c.first = a.old.Sites[b.FirstSite].PC
		c.last = c.first
	} else {
		c.first, c.last = parseLabel(b.Label)
	}
	if c.first == 0 {
		c.isEvent = true
		return c
	}
	m := &a.fileless
	if c.image = a.imageAt(c.first); c.image >= 0 {
		m = &a.images[c.image]
	}
	if m.file != nil {
		if f, ok := m.file.Function(m.fileAddress(c.first)); ok {
			c.function = f.Addr
		}
	}
	return c
}

// parseLabel reads the addresses of a block's first and last instruction from its label. It returns
// 0, 0 if the label contains no address.
func parseLabel(label string) (first, last uint64) {
	low, high, _ := strings.Cut(label, "-")
	first, err1 := strconv.ParseUint(low, 0, 64)
	last, err2 := strconv.ParseUint(high, 0, 64)
	if err1 != nil || err2 != nil {
		return 0, 0
	}
	return first, last
}

// buildModules returns the tables of one module for each file of code, and of one module for the
// code that belongs to no file.
func (a *arrangement) buildModules() (all []*trace.Program) {
	rest := a.code
	for i := range a.images {
		own := 0
		for own < len(rest) && (i == 0 && rest[own].isEvent || rest[own].image == i) {
			own++
		}
		all = append(all, a.buildModule(&a.images[i], rest[:own]))
		rest = rest[own:]
	}
	if len(rest) > 0 {
		all = append(all, a.buildModule(&a.fileless, rest))
	}
	return all
}

// buildModule builds the tables for the blocks of one image.
func (a *arrangement) buildModule(m *image, blocks []code) *trace.Program {
	p := &trace.Program{Modules: []trace.Module{m.Module}}
	if m.isCopy {
		p.Modules[0].Name += " (copy)"
	}
	for i, c := range blocks {
		b := a.old.Blocks[c.old]
		sites := a.old.Sites[b.FirstSite : b.FirstSite+b.Sites]
		b.Function, b.FirstSite = trace.NoFunction, uint32(len(p.Sites))
		if c.function != 0 {
			b.Function = m.addFunction(p, c, uint32(i))
		}
		if b.Sites == 0 && !c.isEvent {
			b.Label = "0x" + strconv.FormatUint(c.first, 16)
			m.setLines(&b, c)
		}
		for _, s := range sites {
			if m.file != nil {
				s.Place = m.place(s.PC)
			}
			p.Sites = append(p.Sites, s)
		}
		p.Blocks = append(p.Blocks, b)
	}
	m.addVariables(p)
	return p
}

// addFunction returns the number of a block's function in p, and adds the function unless it is
// already the last function in p.
func (m *image) addFunction(p *trace.Program, c code, block uint32) uint32 {
	f, _ := m.file.Function(c.function)
	opening, _ := m.file.Opening(f.Addr)
	place := placeOf(opening)
	if n := len(p.Functions); n > 0 && p.Functions[n-1].Name == f.Name && p.Functions[n-1].Place == place {
		p.Functions[n-1].Blocks++
		return uint32(n - 1)
	}
	p.Functions = append(p.Functions, trace.Function{
		Name: f.Name, Place: place, First: block, Blocks: 1, Outline: isOutline(f.Name),
	})
	return uint32(len(p.Functions) - 1)
}

// isOutline reports whether a function is a parallel region that the compiler has outlined.
func isOutline(name string) bool {
	return strings.Contains(name, ".omp_outlined") || strings.Contains(name, "._omp_fn.") || strings.Contains(name, "..omp_par")
}

func (m *image) place(addr trace.Addr) trace.Place {
	l, _ := m.file.Line(m.fileAddress(addr))
	return placeOf(l)
}

func placeOf(l symbols.Line) trace.Place {
	if l.File == "" {
		return trace.Place{}
	}
	return trace.Place{File: filepath.Clean(l.File), Line: uint32(l.Line), Column: uint32(l.Column)}
}

// setLines sets the file and the source lines of a block.
func (m *image) setLines(b *trace.Block, c code) {
	if m.file == nil {
		return
	}
	file, low, high := m.file.Lines(m.fileAddress(c.first), m.fileAddress(c.last))
	if file != "" {
		b.File, b.FirstLine, b.LastLine = filepath.Clean(file), uint32(low), uint32(high)
	}
}

// addVariables adds the image's global variables to p, with their addresses in the process.
func (m *image) addVariables(p *trace.Program) {
	if m.file == nil || m.End == 0 || m.isCopy {
		return
	}
	for _, v := range m.file.Variables() {
		p.Objects = append(p.Objects, trace.Object{Name: v.Name, Addr: v.Addr + m.loadBias, Bytes: v.Size, Place: placeOf(v.Line)})
	}
}
