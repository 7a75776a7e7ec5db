package ppt

import (
	"math"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

func TestParseBlocks(t *testing.T) {
	got, err := ParseBlocks("bb", []byte(`BasicBlock: b2f3727763ed2e86: (main, entry)
BasicBlock: d1a49456403c2630: (OUT__1__6545__, shared_trace): 0.25

BasicBlock: 1: (loop.omp_outlined, for.cond): 1
`))
	want := []BlockName{
		{"b2f3727763ed2e86", "main", "entry", -1}, {"d1a49456403c2630", "OUT__1__6545__", "shared_trace", 0.25}, {"1", "loop.omp_outlined", "for.cond", 1},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("got %+v, %v", got, err)
	}
	for i, want := range []struct{ shared, parallel bool }{{false, false}, {true, true}, {false, true}} {
		if got[i].Shared() != want.shared || got[i].Parallel() != want.parallel {
			t.Errorf("%+v: Shared() = %v, Parallel() = %v", got[i], got[i].Shared(), got[i].Parallel())
		}
	}
}

func TestParseCounts(t *testing.T) {
	got, err := ParseCounts("bb", []byte("7739187c19a47cfd, 62\n(f, for.cond): 18446744073709551615\r\n"))
	if want := []BlockCount{{"7739187c19a47cfd", 62}, {"(f, for.cond)", math.MaxUint64}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestParseShared(t *testing.T) {
	got, err := ParseShared("shared", []byte("0x7ffd96666325\n0x7ffd9666631f"))
	if want := []trace.Addr{0x7ffd96666325, 0x7ffd9666631f}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %x, %v", got, err)
	}
}

func TestParseBounds(t *testing.T) {
	got, err := ParseBounds("bounds", []byte("Min value of address: 0x7ffd96665d00\nMax value of address: 0x7ffd966691b3"))
	if want := (Bounds{0x7ffd96665d00, 0x7ffd966691b3}); err != nil || got != want {
		t.Errorf("got %x, %v", got, err)
	}
}

func TestTableErrors(t *testing.T) {
	for text, want := range map[string]string{
		"\nBB: 1: (a, b)":            `t:2: line "BB: 1: (a, b)", want BasicBlock: ID: (function, block), optionally followed by a colon and a probability`,
		"BasicBlock: 1: a":           `t:1: line "BasicBlock: 1: a", want BasicBlock: ID: (function, block), optionally followed by a colon and a probability`,
		"BasicBlock: 1: (a)":         `t:1: block "(a)", want (function, block)`,
		"BasicBlock: 1: (a, b): 2":   `t:1: probability ": 2", want a colon and a number from 0 to 1`,
		"BasicBlock: 1: (a, b): NaN": `t:1: probability ": NaN", want a colon and a number from 0 to 1`,
		"BasicBlock: 1: (a, b) 0.5":  `t:1: probability "0.5", want a colon and a number from 0 to 1`,
	} {
		if _, err := ParseBlocks("t", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	for text, want := range map[string]string{
		"62":    `t:1: line "62", want ID, count`,
		", 62":  `t:1: line ", 62", want ID, count`,
		"a, -1": `t:1: count "-1", want a decimal number`,
	} {
		if _, err := ParseCounts("t", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	for text, want := range map[string]string{
		"Min value of address: 0x2\nMax value of address: 0x1": `t:1: file "Min value of address: 0x2\nMax value of a"…, want a "Min value of address" that does not exceed the "Max value of address"`,
		"Min value of address: 0x2":                            `t:1: file "Min value of address: 0x2", want a "Min value of address" that does not exceed the "Max value of address"`,
		"Mean: 0x2":                                            `t:1: line "Mean: 0x2", want "Min value of address:" or "Max value of address:", followed by an address with 0x`,
		"Max: 3":                                               `t:1: highest address "3", want 0x and 1 to 16 hexadecimal digits`,
	} {
		if _, err := ParseBounds("t", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	if _, err := ParseShared("t", []byte("10")); err == nil {
		t.Error("ParseShared accepted an address without 0x")
	}
}

func FuzzTables(f *testing.F) {
	f.Add([]byte("BasicBlock: 1: (a, b): 0.5\n"))
	f.Add([]byte("1, 2\n0x3\nMin: 0x1\nMax: 0x2\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		blocks, err := ParseBlocks("t", text)
		if err == nil {
			for _, b := range blocks {
				if b.ID == "" || b.Probability > 1 {
					t.Fatalf("ParseBlocks returned the block %+v", b)
				}
			}
		}
		ParseCounts("t", text)
		ParseShared("t", text)
		if b, err := ParseBounds("t", text); err == nil && b.Low > b.High {
			t.Fatalf("ParseBounds accepted the bounds %x", b)
		}
	})
}
