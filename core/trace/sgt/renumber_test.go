package sgt

import (
	"bytes"
	"testing"
)

func FuzzTranslate(f *testing.F) {
	f.Add([]byte{0x03, 0x15, 0x0b, 0x07}, uint64(40))
	f.Fuzz(func(t *testing.T, control []byte, steps uint64) {
		r := NewRenumberer([]uint32{0, 2, 1})
		if r.translate(append(bytes.Clone(control), make([]byte, slack)...), len(control), steps%(1<<20)) != nil {
			return
		}
		there := bytes.Clone(r.made)
		back := NewRenumberer([]uint32{0, 2, 1})
		if err := back.translate(append(there, make([]byte, slack)...), len(there), steps%(1<<20)); err != nil {
			t.Fatalf("translating %[1]x yields %[2]x, which is invalid: %[3]v", control, there, err)
		}
	})
}
