package wasmcode

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
)

// Go's compiler does not use the loops and branches of wasm. It compiles a function to one loop
// around a jump table. Each jump writes a block number to local variable 0 and continues at the top
// of the loop, where the table jumps to the block with that number. A goroutine that resumes also
// enters its function through the jump table. Engines compile each of these jumps to an indirect
// jump to a point where the values of all variables merge, so programs run at a third of the native
// speed. Straighten therefore replaces forward jumps with branches, and backward jumps with loops.
//
// A function consists of blocks. Each block begins at the target of a jump or at the return point
// of a call. A forward jump becomes a branch to the end of a wasm block, which ends where the
// target begins. An if around the jump becomes part of the branch. The blocks from the target of a
// backward jump to the last such jump become a loop. Overlapping loops are nested. Variable 0 is
// needed only for loops that can be entered at a block other than the first block. Control enters
// such a loop in the middle if a goroutine resumes there, or if a jump leads to the loop's
// condition, which Go puts last. The loop then begins with a test of variable 0, which has the same
// result in every iteration except the first.

var errFlow = errors.New("the program's code does not have the form that Go 1.26 generates: " +
	"look at src/cmd/internal/obj/wasm/wasmobj.go, and adapt Straighten or remove it")

// These are the opcodes of further instructions.
const (
	opTee         = 0x22
	opUnreachable = 0x00
	opLoop        = 0x03
	opGlobalGet   = 0x23
	opReturn      = 0x0f
	opLessEqual   = 0x4d // i32.le_u
	opGreater     = 0x4b // i32.gt_u
	opSubtract    = 0x6b // i32.sub
	noResult      = 0x40
)

// Straighten returns a Go program in wasm whose jumps are replaced by branches and loops.
// Straighten returns an error if the code does not have the form that Go 1.26 generates, or if a
// resulting function is not equivalent to the original.
func Straighten(file []byte) (out []byte, err error) {
	defer UnknownForm(&err, errFlow)
	changed := 0
	code := readCode(file)
	code.change(func(number int, body []byte) []byte {
		if f := parseFlow(body, number); f != nil {
			body = f.write()
			f.checkEquivalence()
			changed++
		}
		return body
	})
	if changed == 0 {
		return nil, errFlow
	}
	return code.file(), nil
}

// flow is the code of a function with jumps.
type flow struct {
	head    []byte // the declarations of local variables
	unwinds bool   // whether the function returns at some instruction while its goroutine waits
	blocks  []flowBlock
	first   []int  // for each block: the lowest index in the jump table that leads to the block
	last    []int  // for each block: the highest index in the jump table that leads to the block
	resumed []bool // whether goroutines may resume at each block
	blockOf []int  // the jump table: the block for each index
	ends    []int  // last block of the loop that begins with each block; -1: no loop

	out       []byte
	newStarts []int   // the offset of each block in the field "out"
	open      []label // wasm blocks, loops and ifs around the code that is being written
}

// flowBlock is the code of one block, which is a target of the jump table.
type flowBlock struct {
	parts        []flowPart
	fallsThrough bool // whether control may continue in the next block without a jump
}

// flowPart is a part of a block: instructions to copy, or a branch that depends on the new
// structure.
type flowPart struct {
	op     byte // one of the constants below, such as partCode
	code   []byte
	target int  // the target block of a jump
	branch byte // for partUnwind: the instruction br or br_if
}

const (
	partCode = iota // instructions without branches out of the block
	partOpen        // the beginning of a wasm block, loop or if
	partEnd
	partJump
	partUnwind // branch to the instruction at which the function returns while its goroutine waits
)

// label is a target of branches: the beginning of a region's loop (if item is -1), or the end of
// the wasm block before an item.
type label struct {
	of   *region
	item int
}

// region is the whole function or a loop. The items of a region are blocks or inner loops.
type region struct {
	from, to int
	loop     bool
	items    []*region
	outer    *region
	entries  []bool // for each item: whether variable 0 can select the item when control enters the region
	targets  []bool // for each item: whether the item is the target of a branch
	table    bool   // whether the region can be entered at an item other than the first
	numbered bool   // whether variable 0 contains a block number; if not, the variable contains 0 or 1
}

// parseFlow parses the body of a function, without the length before the body. It returns nil if
// the function has no jumps.
func parseFlow(body []byte, number int) *flow {
	r := &flowReader{functionCode: functionCode{Reader: &Reader{File: body}}, function: number}
	r.skipVariables()
	if body[r.At] == opGlobalGet { // the stack pointer is copied to a local variable
		r.At++
		r.readNumber()
		r.At++
		r.readNumber()
	}
	f := &r.flow
	f.head = body[:r.At]
	if f.unwinds = r.skipBytes(opBlock, noResult, opLoop, noResult); !f.unwinds && !r.skipBytes(opLoop, noResult) {
		return nil
	}
	n := 0
	for r.skipBytes(opBlock, noResult) {
		n++
	}
	if n == 0 || !r.skipBytes(opGet, 0, opTable) {
		return nil
	}
	f.first, f.last, f.resumed = make([]int, n), make([]int, n), make([]bool, n)
	for i := range int(r.readNumber()) + 1 {
		block := int(r.readNumber())
		if len(r.blockOf) == 0 || r.blockOf[i-1] < block {
			f.first[block] = i
		}
		f.last[block] = i
		r.blockOf = append(r.blockOf, block)
	}
	if !r.skipBytes(opEnd) || r.blockAt(1<<16) != n-1 || !slices.IsSorted(r.blockOf) {
		panic(errFlow)
	}
	f.resumed[0] = true
	for i := range n {
		f.blocks = append(f.blocks, r.readBlock(n-1-i))
	}
	rest := []byte{opUnreachable, opEnd}
	if f.unwinds {
		rest = []byte{opUnreachable, opEnd, opI32, 1, opEnd}
	}
	if !bytes.Equal(body[r.At:], rest) {
		panic(errFlow)
	}
	return f
}

// flowReader parses the code of a function.
type flowReader struct {
	functionCode
	flow
	function int
}

// skipBytes skips the given bytes if they are next in the code, and reports whether it has skipped
// them.
func (r *flowReader) skipBytes(code ...byte) bool {
	ok := bytes.HasPrefix(r.File[r.At:], code)
	if ok {
		r.At += len(code)
	}
	return ok
}

// blockAt returns the block for an index of the jump table. Indices beyond the end of the table
// refer to the last block.
func (r *flowReader) blockAt(number int) int { return r.blockOf[min(number, len(r.blockOf)-1)] }

// readBlock reads a block, and the end of the wasm block that precedes the next block. The
// parameter toTable is the number of wasm blocks that a branch to the jump table leaves.
func (r *flowReader) readBlock(toTable int) flowBlock {
	b := flowBlock{fallsThrough: true}
	for depth := 0; ; {
		start := r.At
		op := r.Next()
		part := flowPart{op: partCode}
		switch {
		case op >= opBlock && op <= opIf:
			depth++
			r.At++
			part.op = partOpen
		case op == opEnd && depth == 0:
			return b
		case op == opEnd:
			depth--
			part.op = partEnd
		case op == opBranch || op == opBranch2:
			switch leaves := int(r.readNumber()) - depth; {
			case leaves < 0:
			case leaves == toTable && op == opBranch:
				part = flowPart{op: partJump, target: r.blockAt(b.cutNumber())}
			case leaves == toTable+1 && r.unwinds:
				part = flowPart{op: partUnwind, branch: op}
			default:
				panic(errFlow)
			}
		case op == opTable:
			panic(errFlow)
		case op == opI64:
			r.returnAddress()
		default:
			r.readImmediates(op)
		}
		part.code = r.File[start:r.At]
		b.appendPart(part)
		if depth == 0 {
			b.fallsThrough = op != opBranch && op != opReturn && op != opUnreachable
		}
	}
}

// returnAddress reads an i64 constant. If the constant is an address in this function, it is the
// return address of a call. After a panic, the function resumes at the call before this address.
func (r *flowReader) returnAddress() {
	if at := r.functionCode.readNumber(); len(r.encoded) == addressBytes && int(at>>16) == r.function {
		number := int(at & 0xffff)
		r.resumed[r.blockAt(number)] = true
		r.resumed[r.blockAt(max(number-1, 0))] = true
	}
}

// appendPart appends a part to the block, or extends the last part of the block.
func (b *flowBlock) appendPart(p flowPart) {
	if n := len(b.parts); p.op == partCode && n > 0 && b.parts[n-1].op == partCode {
		last := &b.parts[n-1]
		last.code = last.code[:len(last.code)+len(p.code)] // in the function's body, the code of p directly follows the code of the last part
		return
	}
	b.parts = append(b.parts, p)
}

// cutNumber removes i32.const and local.set 0 from the end of a block, and returns the constant.
func (b *flowBlock) cutNumber() int {
	last := &b.parts[len(b.parts)-1]
	code, isSet := bytes.CutSuffix(last.code, []byte{opSet, 0})
	for at := len(code) - 2; isSet && at >= len(code)-4; at-- {
		if code[at] != opI32 {
			continue
		}
		r := &Reader{File: code, At: at + 1}
		if n := r.Unsigned(); r.At == len(code) && !r.Bad {
			if last.code = code[:at]; at == 0 {
				b.parts = b.parts[:len(b.parts)-1]
			}
			return n
		}
	}
	panic(errFlow)
}

// write returns the function's new code.
func (f *flow) write() []byte {
	f.findLoops()
	top := f.newRegion(0, len(f.blocks)-1, nil)
	f.findEntries(top)
	f.out = bytes.Clone(f.head)
	if f.unwinds {
		f.begin(opBlock, label{})
	}
	f.writeRegion(top)
	f.put(opUnreachable)
	if f.unwinds {
		f.end()
		f.put(opI32, 1)
	}
	f.put(opEnd)
	return f.out
}

// findLoops sets f.ends: the last block of each loop.
func (f *flow) findLoops() {
	f.ends = make([]int, len(f.blocks))
	for i := range f.ends {
		f.ends[i] = -1
	}
	for i, b := range f.blocks {
		for _, p := range b.parts {
			if p.op == partJump && p.target <= i {
				f.ends[p.target] = max(f.ends[p.target], i)
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for from, to := range f.ends {
			for at := from + 1; at <= to; at++ {
				if f.ends[at] > f.ends[from] {
					f.ends[from], changed = f.ends[at], true
				}
			}
		}
	}
}

// newRegion returns the region that consists of the blocks between the two given block numbers,
// inclusive.
func (f *flow) newRegion(from, to int, outer *region) *region {
	r := &region{from: from, to: to, outer: outer, loop: outer != nil && f.ends[from] == to && outer.from <= from}
	for at := from; at <= to; {
		if end := f.ends[at]; end >= 0 && !(r.loop && at == from) {
			r.items = append(r.items, f.newRegion(at, end, r))
			at = end + 1
			continue
		}
		r.items = append(r.items, &region{from: at, to: at, outer: r})
		at++
	}
	r.entries, r.targets = make([]bool, len(r.items)), make([]bool, len(r.items))
	return r
}

func (r *region) contains(block int) bool { return r.from <= block && block <= r.to }

// itemOf returns the index of the region's item that contains a block.
func (r *region) itemOf(block int) int {
	for i, item := range r.items {
		if item.contains(block) {
			return i
		}
	}
	panic(errFlow)
}

// smallestRegion returns the smallest region inside r that contains both blocks.
func (r *region) smallestRegion(a, b int) *region {
	for {
		i := r.itemOf(a)
		if !r.items[i].contains(b) || r.items[i].items == nil {
			return r
		}
		r = r.items[i]
	}
}

// markEntries marks the items through which control enters a block, in this region and in the
// regions inside it. A jump needs no block number if it comes from the code directly around the
// region and its target is not in an inner loop of the region.
func (r *region) markEntries(block int, jumps bool) {
	for r.items != nil {
		i := r.itemOf(block)
		r.entries[i] = true
		r.table = r.table || i > 0
		r.numbered = r.numbered || !jumps || r.items[i].items != nil
		r, jumps = r.items[i], false
	}
}

// laterEntries returns the indices of the items, except the first, at which control can enter the
// region.
func (r *region) laterEntries() (list []int) {
	for i := 1; i < len(r.items); i++ {
		if r.entries[i] {
			list = append(list, i)
		}
	}
	return list
}

func (f *flow) findEntries(top *region) {
	for i, resumed := range f.resumed {
		if resumed {
			top.markEntries(i, false)
		}
	}
	for i, b := range f.blocks {
		for _, p := range b.parts {
			if p.op != partJump || p.target <= i {
				continue
			}
			r := top.smallestRegion(i, p.target)
			k := r.itemOf(p.target)
			r.targets[k] = true
			if item := r.items[k]; item.items != nil && item.from != p.target {
				item.markEntries(p.target, true)
			}
		}
	}
}

func (f *flow) put(code ...byte) { f.out = append(f.out, code...) }

func (f *flow) putNumber(op byte, n int) { f.out = binary.AppendUvarint(append(f.out, op), uint64(n)) }

func (f *flow) begin(op byte, l label) {
	f.put(op, noResult)
	f.open = append(f.open, l)
}

func (f *flow) end() {
	f.put(opEnd)
	f.open = f.open[:len(f.open)-1]
}

// depthOf returns the number of wasm blocks that a branch to a label leaves.
func (f *flow) depthOf(l label) int {
	for i := len(f.open) - 1; i >= 0; i-- {
		if f.open[i] == l {
			return len(f.open) - 1 - i
		}
	}
	panic(errFlow)
}

func (f *flow) constant(n int) { f.out = AppendSigned(append(f.out, opI32), int64(n)) }

// writeEntry writes code that sets variable 0 so that control enters a region at the given block.
// It writes nothing if the region does not need the variable.
func (f *flow) writeEntry(r *region, block int) {
	switch {
	case !r.table:
		return
	case r.numbered || len(r.laterEntries()) > 1:
		f.constant(f.first[block])
	case block == r.from:
		f.constant(0)
	default:
		f.constant(1)
	}
	f.put(opSet, 0)
}

func (f *flow) writeRegion(r *region) {
	if r.loop {
		f.begin(opLoop, label{r, -1})
	}
	for i := len(r.items) - 1; i > 0; i-- {
		if r.entries[i] || r.targets[i] {
			f.begin(opBlock, label{r, i})
		}
	}
	if r.table {
		f.writeTable(r)
	}
	for i, item := range r.items {
		if i > 0 && (r.entries[i] || r.targets[i]) {
			f.end()
		}
		if item.items != nil {
			f.writeRegion(item)
		} else {
			f.writeBlock(item.from, r)
		}
		if i+1 < len(r.items) && f.blocks[item.to].fallsThrough {
			f.writeEntry(r.items[i+1], item.to+1)
		}
	}
	if r.loop {
		f.end()
	}
}

// writeTable writes code that jumps to the item that variable 0 selects in a region.
func (f *flow) writeTable(r *region) {
	later := r.laterEntries()
	least := f.last[r.items[0].to] // the highest block number that selects the first item
	if len(later) == 1 {
		f.put(opGet, 0)
		if r.numbered {
			f.constant(least)
			f.put(opGreater)
		}
		f.putNumber(opBranch2, f.depthOf(label{r, later[0]}))
		return
	}
	f.begin(opBlock, label{r, 0})
	if r.loop {
		f.put(opGet, 0)
		f.constant(least)
		f.put(opLessEqual)
		f.putNumber(opBranch2, 0)
	} else {
		least = 0
	}
	f.put(opGet, 0)
	if least > 0 {
		f.constant(least)
		f.put(opSubtract)
	}
	last := later[len(later)-1]
	end := f.first[r.items[last].from]
	f.putNumber(opTable, end-least)
	depth := 0
	for n, at := least, 0; n <= end; n++ {
		for at+1 < len(r.items) && n >= f.first[r.items[at+1].from] {
			if at++; r.entries[at] {
				depth = f.depthOf(label{r, at})
			}
		}
		f.out = binary.AppendUvarint(f.out, uint64(depth))
	}
	f.end()
}

func (f *flow) writeBlock(block int, r *region) {
	f.newStarts = append(f.newStarts, len(f.out))
	parts := f.blocks[block].parts
	for i := 0; i < len(parts); i++ {
		p := parts[i]
		switch {
		case p.op == partOpen && p.code[0] == opIf && i+2 < len(parts) && parts[i+1].op == partJump && parts[i+2].op == partEnd:
			if enters, to := r.labelFor(block, parts[i+1].target); !enters.table {
				f.putNumber(opBranch2, f.depthOf(to))
				i += 2
				continue
			}
			fallthrough
		case p.op == partOpen:
			f.open = append(f.open, label{nil, 1})
			f.put(p.code...)
		case p.op == partEnd:
			f.end()
		case p.op == partUnwind:
			f.putNumber(p.branch, f.depthOf(label{}))
		case p.op == partJump:
			enters, to := r.labelFor(block, p.target)
			f.writeEntry(enters, p.target)
			f.putNumber(opBranch, f.depthOf(to))
		default:
			f.put(p.code...)
		}
	}
}

// labelFor returns the label for a jump from one block to another block, and the region or block
// that the jump enters at this label.
func (r *region) labelFor(from, to int) (enters *region, l label) {
	if to <= from {
		for !r.loop || r.from != to {
			r = r.outer
		}
		return r, label{r, -1}
	}
	for !r.contains(to) {
		r = r.outer
	}
	i := r.itemOf(to)
	return r.items[i], label{r, i}
}
