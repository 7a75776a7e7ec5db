package main

import "strings"

// A snippet is what one class of instructions is compiled to on one kind of machine: ways
// to write it, the best first; a processor takes the first that its assembler knows. Lines of one
// way are one after the other.
type snippet struct {
	key  string // class and type, as in the description
	ways []string
}

// vectors are the registers that snippets are written for.
var vectors = []struct {
	bits int
	x86  string
}{{128, "xmm"}, {256, "ymm"}, {512, "zmm"}}

var elementBits = map[string]int{"i8": 8, "i16": 16, "i32": 32, "i64": 64, "float": 32, "double": 64}

// x86Suffix is what instructions on a type's vectors end with.
var x86Suffix = map[string]string{"i8": "b", "i16": "w", "i32": "d", "i64": "q", "float": "ps", "double": "pd"}

func x86() (list []snippet) {
	add := func(key string, ways ...string) { list = append(list, snippet{key, ways}) }
	for _, s := range []struct{ typ, q, a, b, c string }{{"i32", "l", "%eax", "%ebx", "%ecx"}, {"i64", "q", "%rax", "%rbx", "%rcx"}} {
		extend, sign := "movzbl %al, %ebx", "cltd"
		if s.typ == "i64" {
			extend, sign = "movslq %eax, %rbx", "cqto"
		}
		add("iadd "+s.typ, "add"+s.q+" "+s.a+", "+s.b)
		add("alu "+s.typ, "xor"+s.q+" "+s.a+", "+s.b)
		add("shift "+s.typ, "shr"+s.q+" $5, "+s.a)
		add("shiftby "+s.typ, "shlx"+s.q+" "+s.a+", "+s.b+", "+s.c)
		add("rotate "+s.typ, "rorx"+s.q+" $5, "+s.a+", "+s.b)
		add("icmp "+s.typ, "cmp"+s.q+" "+s.a+", "+s.b)
		add("set "+s.typ, "setg %al")
		add("select "+s.typ, "cmovl"+s.q+" "+s.a+", "+s.b)
		add("imin "+s.typ, "cmp"+s.q+" "+s.a+", "+s.b+"\ncmovg"+s.q+" "+s.a+", "+s.b)
		add("extend "+s.typ, extend)
		add("imul "+s.typ, "imul"+s.q+" "+s.a+", "+s.b)
		add("idiv "+s.typ, sign+"\nidiv"+s.q+" "+s.c)
		add("ftoi "+s.typ, "vcvttsd2si %xmm0, "+s.a)
		add("load "+s.typ, "mov"+s.q+" (%rsi), "+s.a)
		add("store "+s.typ, "mov"+s.q+" "+s.a+", (%rsi)")
		add("count "+s.typ, "popcnt"+s.q+" "+s.a+", "+s.b)
		add("bswap "+s.typ, "bswap"+s.q+" "+s.a)
		add("atomic "+s.typ, "lock xadd"+s.q+" "+s.a+", (%rsi)")
		add("extract "+s.typ, "vpextr"+map[string]string{"l": "d", "q": "q"}[s.q]+" $1, %xmm0, "+s.a)
	}
	add("br", "jne .L")
	add("call", "callq f")
	for _, s := range []struct{ typ, s string }{{"float", "ss"}, {"double", "sd"}} {
		add("fadd "+s.typ, "vadd"+s.s+" %xmm0, %xmm1, %xmm2")
		add("fmul "+s.typ, "vmul"+s.s+" %xmm0, %xmm1, %xmm2")
		add("fma "+s.typ, "vfmadd231"+s.s+" %xmm0, %xmm1, %xmm2")
		add("fdiv "+s.typ, "vdiv"+s.s+" %xmm0, %xmm1, %xmm2")
		add("sqrt "+s.typ, "vsqrt"+s.s+" %xmm0, %xmm0, %xmm2")
		add("fcmp "+s.typ, "vucomi"+s.s+" %xmm0, %xmm1")
		add("fmin "+s.typ, "vmin"+s.s+" %xmm0, %xmm1, %xmm2")
		add("fsign "+s.typ, "vandpd %xmm0, %xmm1, %xmm2")
		add("round "+s.typ, "vround"+s.s+" $9, %xmm0, %xmm1, %xmm2")
		add("select "+s.typ, "vmov"+s.s+" %xmm0, %xmm1, %xmm2 {%k1}", "vblendvpd %xmm0, %xmm1, %xmm2, %xmm3")
		add("itof "+s.typ, "vcvtsi2"+s.s+"l %eax, %xmm0, %xmm1")
		add("ltof "+s.typ, "vcvtsi2"+s.s+"q %rax, %xmm0, %xmm1")
		add("load "+s.typ, "vmov"+s.s+" (%rsi), %xmm0")
		add("store "+s.typ, "vmov"+s.s+" %xmm0, (%rsi)")
		add("extract "+s.typ, "vpermilpd $1, %xmm0, %xmm1")
	}
	add("fcvt double", "vcvtss2sd %xmm0, %xmm1, %xmm2")
	add("fcvt float", "vcvtsd2ss %xmm0, %xmm1, %xmm2")
	for _, v := range vectors {
		for _, typ := range []string{"i8", "i16", "i32", "i64"} {
			x86Integers(add, typ, v.bits, v.x86)
		}
		for _, typ := range []string{"float", "double"} {
			x86Floats(add, typ, v.bits, v.x86)
		}
	}
	return list
}

// registers writes r0 to r9 as registers of a kind: vectors of 512 bits are zmm.
func registers(text, kind string) string {
	for _, digit := range "0123456789" {
		text = strings.ReplaceAll(text, "%r"+string(digit), "%"+kind+string(digit))
	}
	return text
}

// halved is the kind of register that is half as wide, or the narrowest.
func halved(kind string) string {
	if kind == "zmm" {
		return "ymm"
	}
	return "xmm"
}

func vectorKey(class, typ string, bits int) string {
	n := bits / elementBits[typ]
	return class + " <" + decimal(n) + " x " + typ + ">"
}

func x86Integers(add func(string, ...string), typ string, bits int, kind string) {
	s := x86Suffix[typ]
	op := func(class string, ways ...string) {
		for i := range ways {
			ways[i] = registers(ways[i], kind)
		}
		add(vectorKey(class, typ, bits), ways...)
	}
	half := "%" + halved(kind)
	op("iadd", "vpadd"+s+" %r0, %r1, %r2")
	op("alu", "vpxor %r0, %r1, %r2", "vpxorq %r0, %r1, %r2")
	op("shuffle", map[bool]string{true: "vpshufd $78, %r0, %r1", false: "vpermq $78, %r0, %r1"}[bits == 128])
	op("load", "vmovdqu (%rsi), %r0", "vmovdqu64 (%rsi), %r0")
	op("store", "vmovdqu %r0, (%rsi)", "vmovdqu64 %r0, (%rsi)")
	op("icmp", "vpcmpgt"+s+" %r0, %r1, %k1", "vpcmpgt"+s+" %r0, %r1, %r2")
	op("mask", "vpcmpgt"+s+" %r0, %r1, %r2", "vpcmpgt"+s+" %r0, %r1, %k1\nvpternlogd $255, %r0, %r0, %r0 {%k1} {z}")
	if bits == 128 {
		op("insert", "vpinsr"+s+" $1, "+map[bool]string{true: "%rax", false: "%eax"}[typ == "i64"]+", %r0, %r1")
	}
	longer := strings.NewReplacer("b", "bw", "w", "wd", "d", "dq").Replace
	switch typ {
	case "i8":
		op("imin", "vpmaxsb %r0, %r1, %r2")
		op("select", "vpblendmb %r0, %r1, %r2 {%k1}", "vpblendvb %r0, %r1, %r2, %r3")
		op("shift", "vpsrlw $5, %r0, %r1\nvpxor %r0, %r1, %r2", "vpsrlw $5, %r0, %r1\nvpxorq %r0, %r1, %r2")
	case "i16":
		op("imin", "vpmaxsw %r0, %r1, %r2")
		op("select", "vpblendmw %r0, %r1, %r2 {%k1}", "vpblendvb %r0, %r1, %r2, %r3")
		op("shift", "vpsrlw $5, %r0, %r1")
		op("shiftby", "vpsrlvw %r0, %r1, %r2")
		op("imul", "vpmullw %r0, %r1, %r2")
	case "i32":
		op("imin", "vpmaxsd %r0, %r1, %r2")
		op("select", "vpblendmd %r0, %r1, %r2 {%k1}", "vblendvps %r0, %r1, %r2, %r3")
		op("shift", "vpsrld $5, %r0, %r1")
		op("shiftby", "vpsrlvd %r0, %r1, %r2")
		op("rotate", "vprold $5, %r0, %r1", "vpsrld $5, %r0, %r1\nvpslld $27, %r0, %r2\nvpor %r0, %r1, %r2")
		op("imul", "vpmulld %r0, %r1, %r2")
		op("ftoi", "vcvttps2dq %r0, %r1")
		op("count", "vpopcntd %r0, %r1")
		op("gather", "vpgatherdd (%rsi,%r1,4), %r0 {%k1}", "vpgatherdd %r2, (%rsi,%r1,4), %r0")
	case "i64":
		op("imin", "vpmaxsq %r0, %r1, %r2", "vpcmpgtq %r0, %r1, %r2\nvblendvpd %r0, %r1, %r2, %r3")
		op("select", "vpblendmq %r0, %r1, %r2 {%k1}", "vblendvpd %r0, %r1, %r2, %r3")
		op("shift", "vpsrlq $5, %r0, %r1")
		op("shiftby", "vpsrlvq %r0, %r1, %r2")
		op("rotate", "vprolq $5, %r0, %r1", "vpsrlq $5, %r0, %r1\nvpsllq $27, %r0, %r2\nvpor %r0, %r1, %r2")
		op("imul", "vpmullq %r0, %r1, %r2", "vpmuludq %r0, %r1, %r2\nvpmuludq %r0, %r1, %r3\nvpaddq %r0, %r1, %r2\nvpmuludq %r0, %r1, %r2\nvpsllq $32, %r0, %r1\nvpaddq %r0, %r1, %r2")
		op("ftoi", "vcvttpd2qq %r0, %r1")
		op("count", "vpopcntq %r0, %r1")
		op("gather", "vpgatherqq (%rsi,%r1,8), %r0 {%k1}", "vpgatherqq %r2, (%rsi,%r1,8), %r0")
	}
	if typ != "i8" {
		shorter := map[string]string{"i16": "b", "i32": "w", "i64": "d"}[typ]
		op("extend", "vpmovsx"+longer(shorter)+" "+half+"0, %r1")
	}
	if wide := map[string]string{"i8": "wb", "i16": "dw", "i32": "qd"}[typ]; wide != "" && bits < 512 {
		from := map[int]string{128: "%ymm0", 256: "%zmm0"}[bits]
		op("narrow", "vpmov"+wide+" "+from+", %r1", "vpshufb %r0, %r1, %r2\nvpermq $8, %ymm1, %ymm2")
	}
}

func x86Floats(add func(string, ...string), typ string, bits int, kind string) {
	s := x86Suffix[typ]
	op := func(class string, ways ...string) {
		for i := range ways {
			ways[i] = registers(ways[i], kind)
		}
		add(vectorKey(class, typ, bits), ways...)
	}
	half := "%" + halved(kind)
	op("fadd", "vadd"+s+" %r0, %r1, %r2")
	op("fmul", "vmul"+s+" %r0, %r1, %r2")
	op("fma", "vfmadd231"+s+" %r0, %r1, %r2")
	op("fdiv", "vdiv"+s+" %r0, %r1, %r2")
	op("sqrt", "vsqrt"+s+" %r0, %r1")
	op("fcmp", "vcmplt"+s+" %r0, %r1, %k1", "vcmplt"+s+" %r0, %r1, %r2")
	op("fmin", "vmin"+s+" %r0, %r1, %r2")
	op("fsign", "vandp"+s[1:]+" %r0, %r1, %r2")
	op("round", "vround"+s+" $9, %r0, %r1", "vrndscale"+s+" $9, %r0, %r1")
	op("select", "vblendm"+s+" %r0, %r1, %r2 {%k1}", "vblendv"+s+" %r0, %r1, %r2, %r3")
	op("shuffle", map[bool]string{true: "vpermil" + s + " $1, %r0, %r1", false: "vpermpd $78, %r0, %r1"}[bits == 128])
	op("load", "vmovu"+s+" (%rsi), %r0")
	op("store", "vmovu"+s+" %r0, (%rsi)")
	if typ == "double" {
		op("itof", "vcvtdq2pd "+half+"0, %r1")
		op("ltof", "vcvtqq2pd %r0, %r1")
		op("fcvt", "vcvtps2pd "+half+"0, %r1")
		op("insert", "vunpcklpd %r0, %r1, %r2")
		op("gather", "vgatherqpd (%rsi,%r1,8), %r0 {%k1}", "vgatherqpd %r2, (%rsi,%r1,8), %r0")
		op("scatter", "vscatterqpd %r0, (%rsi,%r1,8) {%k1}")
		op("maskedload", "vmovupd (%rsi), %r0 {%k1} {z}", "vmaskmovpd (%rsi), %r1, %r0")
		op("maskedstore", "vmovupd %r0, (%rsi) {%k1}", "vmaskmovpd %r0, %r1, (%rsi)")
		return
	}
	op("itof", "vcvtdq2ps %r0, %r1")
	op("insert", "vunpcklps %r0, %r1, %r2")
	op("gather", "vgatherdps (%rsi,%r1,4), %r0 {%k1}", "vgatherdps %r2, (%rsi,%r1,4), %r0")
	op("scatter", "vscatterdps %r0, (%rsi,%r1,4) {%k1}")
	op("maskedload", "vmovups (%rsi), %r0 {%k1} {z}", "vmaskmovps (%rsi), %r1, %r0")
	op("maskedstore", "vmovups %r0, (%rsi) {%k1}", "vmaskmovps %r0, %r1, (%rsi)")
	if bits < 512 {
		op("fcvt", "vcvtpd2ps "+map[int]string{128: "%ymm0", 256: "%zmm0"}[bits]+", %r1")
	}
}

func arm() (list []snippet) {
	add := func(key string, ways ...string) { list = append(list, snippet{key, ways}) }
	for _, s := range []struct{ typ, r string }{{"i32", "w"}, {"i64", "x"}} {
		r := func(text string) string {
			for _, digit := range "0123" {
				text = strings.ReplaceAll(text, "r"+string(digit), s.r+string(digit))
			}
			return text
		}
		add("iadd "+s.typ, r("add r0, r1, #1"))
		add("alu "+s.typ, r("and r0, r1, #255"))
		add("shift "+s.typ, r("lsr r0, r1, #5"))
		add("shiftby "+s.typ, r("lsl r0, r1, r2"))
		add("rotate "+s.typ, r("ror r0, r1, #5"))
		add("icmp "+s.typ, r("cmp r0, #7"))
		add("set "+s.typ, r("cset r0, lt"))
		add("select "+s.typ, r("csel r0, r1, r2, lt"))
		add("imin "+s.typ, r("cmp r0, r1\ncsel r0, r1, r2, lt"))
		add("extend "+s.typ, map[string]string{"i32": "uxtb w0, w1", "i64": "sxtw x0, w1"}[s.typ])
		add("imul "+s.typ, r("mul r0, r1, r2"))
		add("idiv "+s.typ, r("sdiv r0, r1, r2"))
		add("ftoi "+s.typ, r("fcvtzs r0, d0"))
		add("load "+s.typ, r("ldr r0, [x1]"))
		add("store "+s.typ, r("str r0, [x1]"))
		add("count "+s.typ, r("clz r0, r1"))
		add("bswap "+s.typ, r("rev r0, r1"))
		add("atomic "+s.typ, r("ldadd r0, r1, [x2]"), r("ldxr r0, [x2]\nadd r0, r0, #1\nstxr w3, r0, [x2]"))
		add("extract "+s.typ, map[string]string{"i32": "umov w0, v0.s[1]", "i64": "umov x0, v0.d[1]"}[s.typ])
	}
	add("br", "b.ne .L")
	add("call", "bl f")
	for _, s := range []struct{ typ, r string }{{"float", "s"}, {"double", "d"}} {
		r := func(text string) string {
			for _, digit := range "0123" {
				text = strings.ReplaceAll(text, "r"+string(digit), s.r+string(digit))
			}
			return text
		}
		add("fadd "+s.typ, r("fadd r0, r1, r2"))
		add("fmul "+s.typ, r("fmul r0, r1, r2"))
		add("fma "+s.typ, r("fmadd r0, r1, r2, r3"))
		add("fdiv "+s.typ, r("fdiv r0, r1, r2"))
		add("sqrt "+s.typ, r("fsqrt r0, r1"))
		add("fcmp "+s.typ, r("fcmp r0, r1"))
		add("fmin "+s.typ, r("fminnm r0, r1, r2"))
		add("fsign "+s.typ, r("fabs r0, r1"))
		add("round "+s.typ, r("frintm r0, r1"))
		add("select "+s.typ, r("fcsel r0, r1, r2, lt"))
		add("itof "+s.typ, r("scvtf r0, w0"))
		add("ltof "+s.typ, r("scvtf r0, x0"))
		add("load "+s.typ, r("ldr r0, [x1]"))
		add("store "+s.typ, r("str r0, [x1]"))
		add("extract "+s.typ, map[string]string{"float": "mov s0, v0.s[1]", "double": "mov d0, v0.d[1]"}[s.typ])
	}
	add("fcvt double", "fcvt d0, s0")
	add("fcvt float", "fcvt s0, d0")
	for _, v := range []struct{ key, s, half string }{
		{"<16 x i8>", "16b", ""}, {"<8 x i16>", "8h", "8b"}, {"<4 x i32>", "4s", "4h"}, {"<2 x i64>", "2d", "2s"},
	} {
		op := func(class, text string) { add(class+" "+v.key, strings.ReplaceAll(text, "T", v.s)) }
		op("iadd", "add v0.T, v1.T, v2.T")
		op("alu", "eor v0.16b, v1.16b, v2.16b")
		op("shift", "ushr v0.T, v1.T, #5")
		op("shiftby", "ushl v0.T, v1.T, v2.T")
		op("icmp", "cmgt v0.T, v1.T, v2.T")
		op("mask", "cmgt v0.T, v1.T, v2.T")
		op("select", "bsl v0.16b, v1.16b, v2.16b")
		op("shuffle", "ext v0.16b, v1.16b, v2.16b, #8")
		op("load", "ldr q0, [x1]")
		op("store", "str q0, [x1]")
		op("insert", "mov v0."+v.s[len(v.s)-1:]+"[1], "+map[bool]string{true: "x0", false: "w0"}[v.s == "2d"])
		if v.half != "" {
			op("extend", "sshll v0.T, v1."+v.half+", #0")
		}
		if v.s != "2d" {
			op("imul", "mul v0.T, v1.T, v2.T")
			op("imin", "smax v0.T, v1.T, v2.T")
			op("narrow", "xtn v0."+map[string]string{"16b": "8b", "8h": "4h", "4s": "2s"}[v.s]+", v1."+map[string]string{"16b": "8h", "8h": "4s", "4s": "2d"}[v.s]+
				"\nxtn2 v0.T, v2."+map[string]string{"16b": "8h", "8h": "4s", "4s": "2d"}[v.s])
		} else {
			op("imin", "cmgt v0.T, v1.T, v2.T\nbsl v0.16b, v1.16b, v2.16b")
		}
		if v.s == "16b" {
			op("count", "cnt v0.T, v1.T")
		}
		if v.s == "4s" || v.s == "2d" {
			op("ftoi", "fcvtzs v0.T, v1.T")
		}
	}
	for _, v := range []struct{ key, s string }{{"<4 x float>", "4s"}, {"<2 x double>", "2d"}} {
		op := func(class, text string) { add(class+" "+v.key, strings.ReplaceAll(text, "T", v.s)) }
		op("fadd", "fadd v0.T, v1.T, v2.T")
		op("fmul", "fmul v0.T, v1.T, v2.T")
		op("fma", "fmla v0.T, v1.T, v2.T")
		op("fdiv", "fdiv v0.T, v1.T, v2.T")
		op("sqrt", "fsqrt v0.T, v1.T")
		op("fcmp", "fcmgt v0.T, v1.T, v2.T")
		op("fmin", "fminnm v0.T, v1.T, v2.T")
		op("fsign", "fabs v0.T, v1.T")
		op("round", "frintm v0.T, v1.T")
		op("select", "bsl v0.16b, v1.16b, v2.16b")
		op("shuffle", "ext v0.16b, v1.16b, v2.16b, #8")
		op("load", "ldr q0, [x1]")
		op("store", "str q0, [x1]")
		op("insert", "mov v0."+v.s[1:]+"[1], v1."+v.s[1:]+"[0]")
		if v.s == "4s" {
			op("itof", "scvtf v0.T, v1.T")
			op("fcvt", "fcvtn v0.2s, v1.2d\nfcvtn2 v0.4s, v2.2d")
		} else {
			op("itof", "sshll v0.2d, v0.2s, #0\nscvtf v0.T, v1.T")
			op("ltof", "scvtf v0.T, v1.T")
			op("fcvt", "fcvtl v0.2d, v1.2s")
		}
	}
	return list
}
