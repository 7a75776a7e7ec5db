package trace

// Target is the set of instructions that a function's code was generated for. Without [X86] it is unknown,
// or a machine without such variants.
type Target uint32

// The bits. Those between X86 and Contract extend the baseline of x86-64, SSE2.
const (
	X86      Target = 1 << iota // x86, of 32 or 64 bits
	SSE41                       // rounding, blending, products of vectors of 32-bit integers
	POPCNT                      // counting ones
	AVX                         // vectors of 256 bits of floating-point numbers
	AVX2                        // and of integers
	FMA                         // fused multiply-add
	AVX512                      // vectors of 512 bits
	Contract                    // of any machine: products and sums may be fused

	knownTarget = 1<<iota - 1
)

// Known returns the target without unknown bits.
func (t Target) Known() Target { return t & knownTarget }

// Lacks reports whether code was generated for an x86 without all of the given.
func (t Target) Lacks(given Target) bool { return t&X86 != 0 && t&given != given }

// VectorBits is the width of the widest registers for floating-point numbers or integers, 0 if unknown.
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

// TargetOf returns the target of a block.
func (p *Program) TargetOf(block uint32) Target {
	if f := p.Blocks[block].Function; int64(f) < int64(len(p.Functions)) {
		return p.Functions[f].Target
	}
	return 0
}
