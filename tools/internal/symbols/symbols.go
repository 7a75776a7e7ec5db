// Package symbols reads the symbols of ELF files: functions from the symbol tables, source lines
// from DWARF line tables, and variables with fixed addresses. It also reads perf maps, which name
// code that a program generated while it ran.
//
// Symbols or debugging information may be absent. Debugging information that a distribution stores
// in separate files is found in /usr/lib/debug by the file's build ID.
package symbols

import (
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"encoding/hex"
	"errors"
	"math"
	"path/filepath"
	"slices"
)

// Function describes a function in a file.
type Function struct {
	Name       string
	Addr, Size uint64

	end uint64 // address after the last byte that may belong to the function
}

// Variable is one variable with a fixed address.
type Variable struct {
	Name       string
	Addr, Size uint64
	Line       Line // where the variable is declared; empty if unknown
}

// Line is a source location; the zero value means that it is unknown.
type Line struct {
	File         string
	Line, Column int
}

// File contains the symbols of one ELF file. All addresses are link-time addresses, which may
// differ from the addresses at which the file is loaded.
type File struct {
	Machine elf.Machine
	// Dynamic is set for files that may be loaded at any address: libraries, and
	// position-independent programs.
	Dynamic bool
	// Low is the address of the first loaded byte, and High is the address after the last loaded
	// byte.
	Low, High uint64

	segments  []segment  // with code
	functions []Function // ascending
	variables []Variable // ascending
	rows      []row      // ascending
	files     []string   // source files; the first is "", for no file
	numbers   map[string]uint32
	file      *dwarf.LineFile // the file in the last call of fileNumber
	number    uint32
}

// segment is a loaded segment with code.
type segment struct{ addr, offset, size uint64 }

// row is one row of a line table. It applies to all addresses up to the address of the next row. A
// large program has millions of rows.
type row struct {
	addr         uint64
	file         uint32 // index in File.files; 0 marks the end of a sequence
	line, column uint32
}

// Open reads the symbols of a file.
func Open(path string) (*File, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := &File{Machine: f.Machine, Dynamic: f.Type == elf.ET_DYN, Low: lowestAddress(f), High: endAddress(f), segments: codeSegments(f), files: []string{""}, numbers: map[string]uint32{}}
	s.readSymbols(f)
	debugFile := openDebugFile(f)
	if debugFile != nil {
		defer debugFile.Close()
		s.readSymbols(debugFile)
	}
	s.sortSymbols()
	for _, f := range []*elf.File{f, debugFile} {
		if f != nil && len(s.rows) == 0 {
			s.readDebug(f)
		}
	}
	s.sortRows()
	return s, nil
}

// HasLines reports whether the file has source lines.
func (s *File) HasLines() bool { return len(s.rows) > 0 }

// sortRows sorts the rows by address. If one sequence ends where another sequence begins, sortRows
// puts the beginning last, because the last row for an address applies.
func (s *File) sortRows() {
	slices.SortStableFunc(s.rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(min(a.file, 1), min(b.file, 1)))
	})
}

// lowestAddress returns the link-time address of the first loaded page of the file.
func lowestAddress(f *elf.File) uint64 {
	lowest := uint64(math.MaxUint64)
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			lowest = min(lowest, p.Vaddr&^0xfff)
		}
	}
	return lowest
}

// endAddress returns the address after the last loaded byte.
func endAddress(f *elf.File) (highest uint64) {
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			highest = max(highest, p.Vaddr+p.Memsz)
		}
	}
	return highest
}

func codeSegments(f *elf.File) (all []segment) {
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			all = append(all, segment{addr: p.Vaddr, offset: p.Off, size: p.Filesz})
		}
	}
	return all
}

// LoadBias returns the difference between the addresses in the process and the link-time addresses
// in a mapping of the file: its addresses in the process, and its offset in the file. The code in
// the mapping determines the difference, because other segments may share a page of the file with
// the code, or may be loaded elsewhere. LoadBias returns false if the mapping contains no code.
func (s *File) LoadBias(base, end, offset uint64) (uint64, bool) {
	for _, p := range s.segments {
		if p.offset < offset+(end-base) && offset < p.offset+p.size {
			return base - offset + p.offset - p.addr, true
		}
	}
	return 0, false
}

// openDebugFile opens the separate file with the debugging information of f. It returns nil if this
// file is not installed.
func openDebugFile(f *elf.File) *elf.File {
	section := f.Section(".note.gnu.build-id")
	if section == nil {
		return nil
	}
	note, err := section.Data()
	const head = 16 // the header of the note: three 32-bit words and the name "GNU"
	if err != nil || len(note) < head+2 {
		return nil
	}
	id := hex.EncodeToString(note[head:])
	debugFile, err := elf.Open(filepath.Join("/usr/lib/debug/.build-id", id[:2], id[2:]+".debug"))
	if err != nil {
		return nil
	}
	return debugFile
}

func (s *File) readSymbols(f *elf.File) {
	for _, table := range []func() ([]elf.Symbol, error){f.Symbols, f.DynamicSymbols} {
		all, err := table()
		if err != nil {
			continue // the symbol table is absent or damaged
		}
		for _, y := range all {
			s.addSymbol(f, y)
		}
	}
}

func (s *File) addSymbol(f *elf.File, y elf.Symbol) {
	if y.Name == "" || y.Section == elf.SHN_UNDEF || int(y.Section) >= len(f.Sections) {
		return
	}
	switch elf.ST_TYPE(y.Info) {
	case elf.STT_FUNC, elf.STT_GNU_IFUNC:
		end := y.Value + y.Size
		if section := f.Sections[y.Section]; y.Size == 0 {
			end = section.Addr + section.Size
		}
		s.functions = append(s.functions, Function{Name: y.Name, Addr: y.Value, Size: y.Size, end: end})
	case elf.STT_OBJECT:
		if y.Size > 0 {
			s.variables = append(s.variables, Variable{Name: y.Name, Addr: y.Value, Size: y.Size})
		}
	}
}

// sortSymbols sorts the symbols by address. If several names have the same address, it keeps the
// shortest name, which usually has no version or alias suffix.
func (s *File) sortSymbols() {
	slices.SortFunc(s.functions, func(a, b Function) int {
		return cmp.Or(cmp.Compare(a.Addr, b.Addr), cmp.Compare(b.Size, a.Size), compareNames(a.Name, b.Name))
	})
	s.functions = slices.CompactFunc(s.functions, func(a, b Function) bool { return a.Addr == b.Addr })
	slices.SortFunc(s.variables, func(a, b Variable) int {
		return cmp.Or(cmp.Compare(a.Addr, b.Addr), cmp.Compare(b.Size, a.Size), compareNames(a.Name, b.Name))
	})
	s.variables = slices.CompactFunc(s.variables, func(a, b Variable) bool { return a.Addr == b.Addr })
}

func compareNames(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// readDebug reads the undamaged parts of the line tables and of the declarations of variables.
func (s *File) readDebug(f *elf.File) {
	d, err := f.DWARF()
	if err != nil {
		return
	}
	declared := map[uint64]Line{}
	for r := d.Reader(); ; {
		e, err := r.Next()
		if err != nil || e == nil {
			break
		}
		if e.Tag != dwarf.TagCompileUnit || s.readUnit(d, e, r, declared) != nil {
			r.SkipChildren()
		}
	}
	for i := range s.variables {
		s.variables[i].Line = declared[s.variables[i].Addr]
	}
}

// readUnit reads one compilation unit and its variables.
func (s *File) readUnit(d *dwarf.Data, unit *dwarf.Entry, r *dwarf.Reader, declared map[uint64]Line) error {
	lines, err := d.LineReader(unit)
	if err != nil || lines == nil {
		return errors.New("no line table")
	}
	s.readRows(lines)
	if !unit.Children {
		return nil
	}
	for {
		e, err := r.Next()
		if err != nil {
			return err
		}
		if e == nil || e.Tag == 0 {
			return nil
		}
		if addr, ok := fixedAddress(e, r.ByteOrder().Uint64, r.AddressSize()); ok {
			declared[addr] = declaration(e, lines.Files())
		}
		r.SkipChildren()
	}
}

func (s *File) readRows(lines *dwarf.LineReader) {
	var e dwarf.LineEntry
	for lines.Next(&e) == nil { // stop at a damaged row; the rows before it are valid
		switch {
		case e.EndSequence:
			s.rows = append(s.rows, row{addr: e.Address})
		case e.File != nil && e.Line > 0:
			s.rows = append(s.rows, row{e.Address, s.fileNumber(e.File), uint32(e.Line), uint32(e.Column)})
		}
	}
}

// fileNumber returns the index of a source file in s.files. It is fast in the most frequent case:
// the file is the same as in the previous row.
func (s *File) fileNumber(file *dwarf.LineFile) uint32 {
	if file == s.file {
		return s.number
	}
	s.file, s.number = file, s.numberOf(file.Name)
	return s.number
}

// numberOf returns the index of a source file in s.files.
func (s *File) numberOf(name string) uint32 {
	n, known := s.numbers[name]
	if !known {
		n = uint32(len(s.files))
		s.files = append(s.files, name)
		s.numbers[name] = n
	}
	return n
}

// fixedAddress returns the address of a variable whose location is a single fixed address.
func fixedAddress(e *dwarf.Entry, word func([]byte) uint64, width int) (uint64, bool) {
	const opAddr = 3 // the DWARF operation DW_OP_addr
	location, ok := e.Val(dwarf.AttrLocation).([]byte)
	if e.Tag != dwarf.TagVariable || !ok || len(location) != 1+width || location[0] != opAddr || width != 8 {
		return 0, false
	}
	return word(location[1:]), true
}

func declaration(e *dwarf.Entry, files []*dwarf.LineFile) Line {
	file, _ := e.Val(dwarf.AttrDeclFile).(int64)
	line, _ := e.Val(dwarf.AttrDeclLine).(int64)
	column, _ := e.Val(dwarf.AttrDeclColumn).(int64)
	if file < 0 || file >= int64(len(files)) || files[file] == nil || line <= 0 {
		return Line{}
	}
	return Line{files[file].Name, int(line), int(column)}
}

// Function returns the function that contains an address. A function without a size, such as a
// function in assembly code, extends to the next function or to the end of its section.
func (s *File) Function(addr uint64) (Function, bool) {
	i, found := slices.BinarySearchFunc(s.functions, addr, func(f Function, a uint64) int { return cmp.Compare(f.Addr, a) })
	if !found {
		i--
	}
	if i < 0 || addr >= s.functions[i].end {
		return Function{}, false
	}
	return s.functions[i], true
}

// Variables returns the variables in the order of their addresses.
func (s *File) Variables() []Variable { return s.variables }

// firstRow returns the index of the first line-table row at or after an address.
func (s *File) firstRow(addr uint64) int {
	i, _ := slices.BinarySearchFunc(s.rows, addr, func(r row, a uint64) int { return cmp.Compare(r.addr, a) })
	return i
}

func (s *File) lineOf(r row) Line { return Line{s.files[r.file], int(r.line), int(r.column)} }

// Opening returns the first line that the line table lists for an address. If the instruction at
// the beginning of a function belongs to several lines, Opening returns the line of the function
// itself.
func (s *File) Opening(addr uint64) (Line, bool) {
	i := s.firstRow(addr)
	for i < len(s.rows) && s.rows[i].addr == addr && s.rows[i].file == 0 {
		i++
	}
	if i == len(s.rows) || s.rows[i].addr != addr {
		return s.Line(addr)
	}
	return s.lineOf(s.rows[i]), true
}

// Line returns the source line of the instruction at an address.
func (s *File) Line(addr uint64) (Line, bool) {
	i := s.firstRow(addr)
	for i < len(s.rows) && s.rows[i].addr == addr {
		i++
	}
	if i == 0 || s.rows[i-1].file == 0 {
		return Line{}, false
	}
	return s.lineOf(s.rows[i-1]), true
}

// Lines returns the source file of the instruction at the first address, and the lowest and highest
// line numbers, in this file, of the instructions between the two addresses.
func (s *File) Lines(first, last uint64) (file string, low, high int) {
	at, ok := s.Opening(first)
	if !ok {
		return "", 0, 0
	}
	low, high = at.Line, at.Line
	for i := s.firstRow(first); i < len(s.rows) && s.rows[i].addr <= last; i++ {
		if r := s.rows[i]; s.files[r.file] == at.File && r.line > 0 {
			low, high = min(low, int(r.line)), max(high, int(r.line))
		}
	}
	return at.File, low, high
}
