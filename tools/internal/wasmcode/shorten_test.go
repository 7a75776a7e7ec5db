package wasmcode

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// machine executes straight code, as the reference for shortened code. Its memory contains words at
// any address, and its log contains everything that the code does outside the stack.
type machine struct {
	locals [4]uint64
	memory map[uint64]uint64
	stack  []uint64
	log    []string
}

func (m *machine) pop() uint64 {
	n := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	return n
}

func (m *machine) push(n uint64) { m.stack = append(m.stack, n) }

func number(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}

// run executes the body of a function with the given local variables, and returns the log.
func (m *machine) run(body []byte) []string {
	r := &functionCode{Reader: &Reader{File: body}}
	r.skipVariables()
	for r.At < len(body) {
		start := r.At
		op := r.Next()
		r.readImmediates(op)
		operands := body[start+1 : r.At]
		switch op {
		case opGet:
			m.push(m.locals[operands[0]])
		case opGlobalGet:
			m.push(m.locals[localSP])
		case opSet:
			m.locals[operands[0]] = m.pop()
			m.log = append(m.log, fmt.Sprint("local", m.locals))
		case opTee:
			m.locals[operands[0]] = m.stack[len(m.stack)-1]
		case opI32, opI64:
			m.push(uint64(signedOf(operands)))
			if op == opI32 {
				m.push(uint64(uint32(m.pop())))
			}
		case opAdd32:
			m.push(uint64(uint32(m.pop() + m.pop())))
		case opAdd64:
			m.push(m.pop() + m.pop())
		case opWrap:
			m.push(uint64(uint32(m.pop())))
		case opExtend, opNop:
		case opEqz32, opEqz64:
			m.push(number(m.pop() == 0))
		case opBranch2:
			m.log = append(m.log, fmt.Sprint("branch ", m.pop() != 0))
		case 0x29: // i64.load
			m.push(m.memory[m.pop()+offsetOf(operands)])
		case 0x37: // i64.store
			value := m.pop()
			at := m.pop() + offsetOf(operands)
			m.memory[at] = value
			m.log = append(m.log, fmt.Sprint("store ", at, value))
		case opEnd:
		default:
			panic(fmt.Sprintf("unknown instruction %x", op))
		}
	}
	return append(m.log, fmt.Sprint(m.stack))
}

func signedOf(leb []byte) (n int64) {
	for i, b := range leb {
		n |= int64(b&0x7f) << (7 * i)
	}
	unused := 64 - 7*len(leb)
	return n << unused >> unused
}

func offsetOf(operands []byte) uint64 {
	n, _ := binary.Uvarint(operands[1:])
	return n
}

// codeGenerator writes random code in the forms that Go's compiler uses.
type codeGenerator struct {
	*rapid.T
	out []byte
}

func (g *codeGenerator) put(b ...byte) { g.out = append(g.out, b...) }

func (g *codeGenerator) constant(op byte) {
	g.out = AppendSigned(append(g.out, op), rapid.Int64Range(-300, 300).Draw(g.T, "constant"))
}

func (g *codeGenerator) one(of ...func()) { of[rapid.IntRange(0, len(of)-1).Draw(g.T, "form")]() }

// word writes code that pushes 64 bits.
func (g *codeGenerator) word(depth int) {
	forms := []func(){func() { g.constant(opI64) }, func() { g.put(opGet, 2) }}
	if depth > 0 {
		forms = append(forms,
			func() { g.half(depth - 1); g.put(opExtend) },
			func() { g.word(depth - 1); g.word(depth - 1); g.put(opAdd64) },
			func() { g.half(depth - 1); g.put(0x29, 3, byte(rapid.IntRange(0, 9).Draw(g.T, "offset"))) },
		)
	}
	g.one(forms...)
}

// half writes code that pushes 32 bits.
func (g *codeGenerator) half(depth int) {
	forms := []func(){
		func() { g.constant(opI32) },
		func() { g.put(opGet, localSP) },
		func() { g.put(opGet, 3) },
	}
	if depth > 0 {
		forms = append(forms,
			func() { g.word(depth - 1); g.put(opWrap) },
			func() { g.word(depth - 1); g.put(opEqz64) },
			func() { g.half(depth - 1); g.put(opEqz32) },
			func() { g.put(opGet, localSP, opExtend); g.constant(opI64); g.put(opAdd64, opWrap) },
			func() { g.half(depth - 1); g.put(opExtend); g.constant(opI64); g.put(opAdd64, opWrap) },
		)
	}
	g.one(forms...)
}

func (g *codeGenerator) statement() {
	g.one(
		func() { g.half(3); g.word(3); g.put(0x37, 3, byte(rapid.IntRange(0, 9).Draw(g.T, "offset"))) },
		func() { g.word(3); g.put(opSet, 2) },
		func() { g.half(3); g.put(opSet, 3) },
		func() { g.half(3); g.put(opBranch2, 0) },
		func() { g.half(3); g.put(opEqz32, opEqz32, opBranch2, 0) },
		func() { g.put(opNop) },
	)
}

// TestShortenKeepsResults executes random code before and after it is shortened, and checks that
// both do the same. The negative constants do not lead below address 0, because the stack pointer
// is large enough.
func TestShortenKeepsResults(t *testing.T) {
	shorter := 0
	rapid.Check(t, func(t *rapid.T) {
		g := &codeGenerator{T: t, out: []byte{0}}
		if rapid.Bool().Draw(t, "has a stack pointer") {
			g.put(opGlobalGet, globalSP, opSet, localSP)
		}
		for range rapid.IntRange(1, 8).Draw(t, "statements") {
			g.statement()
		}
		g.put(opEnd)
		locals := [4]uint64{0, 1000, rapid.Uint64().Draw(t, "word"), uint64(rapid.Uint32().Draw(t, "half"))}
		short := shortenFunction(g.out)
		if len(short) > len(g.out) {
			t.Errorf("% x became longer: % x", g.out, short)
		}
		if len(short) < len(g.out) {
			shorter++
		}
		want := (&machine{locals: locals, memory: map[uint64]uint64{}}).run(g.out)
		got := (&machine{locals: locals, memory: map[uint64]uint64{}}).run(short)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("% x, shortened from % x, does\n%q, want\n%q", short, g.out, got, want)
		}
	})
	if shorter == 0 {
		t.Error("no code became shorter")
	}
}

// TestShortenForms checks each form that Shorten replaces, and forms that it must not replace.
func TestShortenForms(t *testing.T) {
	start := []byte{0, opGlobalGet, globalSP, opSet, localSP}
	address := []byte{opGet, localSP, opExtend, opI64, 16, opAdd64, opWrap}
	for name, c := range map[string]struct{ code, want []byte }{
		"load from the stack": {append(bytes.Clone(address), 0x29, 3, 8), []byte{opGet, localSP, 0x29, 3, 24}},
		"store to the stack":  {append(bytes.Clone(address), opI64, 5, 0x37, 3, 0), []byte{opGet, localSP, opI64, 5, 0x37, 3, 16}},
		"store, with a call between": {append(bytes.Clone(address), opCall, 9, opI64, 5, 0x37, 3, 0),
			[]byte{opGet, localSP, opI32, 16, opAdd32, opCall, 9, opI64, 5, 0x37, 3, 0}},
		"address of a variable":  {address, []byte{opGet, localSP, opI32, 16, opAdd32}},
		"other variable":         {[]byte{opGet, 2, opExtend, opI64, 16, opAdd64, opWrap, 0x29, 3, 8}, []byte{opGet, 2, opI32, 16, opAdd32, 0x29, 3, 8}},
		"negative constant":      {[]byte{opGet, localSP, opExtend, opI64, 0x7f, opAdd64, opWrap, 0x29, 3, 8}, []byte{opGet, localSP, opI32, 0x7f, opAdd32, 0x29, 3, 8}},
		"short constant":         {[]byte{opI64, 5, opWrap}, []byte{opI32, 5}},
		"long constant":          {[]byte{opI64, 0xff, 0xff, 0xff, 0xff, 0x7f, opWrap}, []byte{opI64, 0xff, 0xff, 0xff, 0xff, 0x7f, opWrap}},
		"test of an i32":         {[]byte{opGet, 3, opExtend, opEqz64}, []byte{opGet, 3, opEqz32}},
		"branch on a double not": {[]byte{opGet, 3, opEqz32, opEqz32, opBranch2, 1}, []byte{opGet, 3, opBranch2, 1}},
		"no operation":           {[]byte{opNop}, nil},
	} {
		if got := shortenFunction(append(bytes.Clone(start), c.code...)); !bytes.Equal(got, append(bytes.Clone(start), c.want...)) {
			t.Errorf("%s: % x became % x, want % x", name, c.code, got[len(start):], c.want)
		}
	}
}
