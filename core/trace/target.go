package trace

// Target is what a function's code was made for, as far as it tells which instructions there
// are. Without [X86] it is not known, or a machine whose code generators have no choice to make.
type Target uint32

// The bits. Those between X86 and Contract say what there is besides the least that x86-64
// has, SSE2.
const (
	X86      Target = 1 << iota // x86, of 32 or 64 bits
	SSE41                       // rounding, blending, products of vectors of 32-bit integers
	POPCNT                      // counting ones
	AVX                         // vectors of 256 bits of floating-point numbers
	AVX2                        // and of integers
	FMA                         // fused multiply-add
	AVX512                      // vectors of 512 bits
	Contract                    // of any machine: a product and a sum may be made one, fused

	knownTarget = 1<<iota - 1
)

// Known is the target without bits that have no meaning here.
func (t Target) Known() Target { return t & knownTarget }

// Lacks tells whether code was made for an x86 without all of the given.
func (t Target) Lacks(given Target) bool { return t&X86 != 0 && t&given != given }

// VectorBits is the width of the widest registers for floating-point numbers or integers;
// 0: not known.
func (t Target) VectorBits(float bool) int {
	switch {
	case t&X86 == 0:
		return 0
	case t&AVX512 != 0:
		return 512
	case t&AVX2 != 0 || t&AVX != 0 && float:
		return 256
	}
	return 128
}

// TargetOf is what a block was made for.
func (p *Program) TargetOf(block uint32) Target {
	if f := p.Blocks[block].Function; int64(f) < int64(len(p.Functions)) {
		return p.Functions[f].Target
	}
	return 0
}
