package codec_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/stackglass/stackglass/core/codec"
	"pgregory.net/rapid"
)

// The type "everything" is a struct with at least one field for each method of Coder.
type everything struct {
	Wide       uint64
	Narrow     uint32
	Kind       uint8 // a number below 7
	Index      uint32
	Word       uint64
	Flags      [3]bool
	Text       string
	Bytes      []byte
	Counts     [35]uint64
	Numbers    []uint64
	Few        []uint32 // a list of at most 5 numbers
	None       []uint32 // a list that may be nil instead of empty
	Ascending  []uint8  // numbers below 200
	Upwards    []uint64 // numbers below 200
	Words      [3]uint64
	Deltas     []uint64
	Lines      []uint64
	Inner      []everything
	Fixed      []uint32 // a list of the same length as Few
	Everything [2]uint64
}

func (e *everything) code(c *codec.Coder) {
	c.U64(&e.Wide)
	c.U32(&e.Narrow)
	codec.Below(c, &e.Kind, 7)
	c.Index(&e.Index)
	c.Word(&e.Word)
	c.Flags(&e.Flags[0], &e.Flags[1], &e.Flags[2])
	c.Text(&e.Text)
	c.Bytes(&e.Bytes)
	c.Masked(e.Counts[:])
	codec.Slice(c, &e.Numbers, 1, c.U64)
	codec.Bounded(c, &e.Few, 5, c.U32)
	codec.Optional(c, &e.None, 1, c.U32)
	var next, after, last uint64
	codec.Slice(c, &e.Ascending, 1, func(n *uint8) { codec.Next(c, n, &next, 200) })
	codec.Slice(c, &e.Upwards, 1, func(n *uint64) { c.After(n, &after, 200) })
	c.Words(e.Words[:])
	codec.Slice(c, &e.Deltas, 1, func(n *uint64) { c.Delta(n, &last) })
	c.Stack(&e.Lines)
	codec.Slice(c, &e.Inner, 20, func(inner *everything) { inner.code(c) })
	codec.Members(c, &e.Fixed, len(e.Few), c.U32)
	c.Array(e.Everything[:])
}

func draw(t *rapid.T, depth int) everything {
	wide := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 3))
	e := everything{
		Wide: wide.Draw(t, "wide"), Narrow: rapid.Uint32().Draw(t, "narrow"), Kind: rapid.Uint8Max(6).Draw(t, "kind"),
		Index: rapid.SampledFrom([]uint32{0, 1, 1<<32 - 1}).Draw(t, "index"), Word: wide.Draw(t, "word"), Text: rapid.String().Draw(t, "text"),
		Bytes: rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"), Lines: rapid.SliceOf(wide).Draw(t, "lines"),
	}
	for i := range e.Flags {
		e.Flags[i] = rapid.Bool().Draw(t, "flag")
	}
	for i := range e.Counts {
		e.Counts[i] = wide.Draw(t, "count")
	}
	for i := range e.Words {
		e.Words[i] = wide.Draw(t, "word")
	}
	for i := range e.Everything {
		e.Everything[i] = wide.Draw(t, "number")
	}
	for range rapid.IntRange(0, 5).Draw(t, "length") {
		e.Numbers, e.Few, e.Fixed = append(e.Numbers, wide.Draw(t, "n")), append(e.Few, 1<<32-1), append(e.Fixed, 3)
		e.Deltas = append(e.Deltas, wide.Draw(t, "delta"))
	}
	if rapid.Bool().Draw(t, "there") {
		e.None = rapid.SliceOf(rapid.Uint32()).Draw(t, "list")
	}
	for n := range uint8(200) {
		if rapid.IntRange(0, 20).Draw(t, "in") == 0 {
			e.Ascending, e.Upwards = append(e.Ascending, n), append(e.Upwards, uint64(n))
		}
	}
	if depth > 0 {
		for range rapid.IntRange(0, 2).Draw(t, "inner") {
			e.Inner = append(e.Inner, draw(t, depth-1))
		}
	}
	return e
}

// Decoding returns the values that were encoded. If bytes are missing at the end, decoding fails.
func TestCoderRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := draw(t, 1)
		w := codec.Writer(nil)
		want.code(w)
		var got everything
		r := codec.Reader(w.Out)
		if got.code(r); r.In.Err() != nil || r.More() {
			t.Fatalf("decoding ended with %v and %d unread bytes", r.In.Err(), len(r.In.Rest()))
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("decoded\n%+v, want\n%+v", got, want)
		}
		short := codec.Reader(w.Out[:rapid.IntRange(0, len(w.Out)-1).Draw(t, "cut")])
		new(everything).code(short)
		var e *codec.Error
		if err := short.In.Err(); !errors.As(err, &e) {
			t.Fatalf("decoding truncated input returns %v, want an Error", err)
		}
	})
}

func TestCoderRejectsBadInput(t *testing.T) {
	for name, c := range map[string]struct {
		data   string
		code   func(*codec.Coder)
		offset int
	}{
		"a number out of range":   {"\x01\x07", func(c *codec.Coder) { var a, b uint8; codec.Below(c, &a, 2); codec.Below(c, &b, 7) }, 1},
		"65 bits":                 {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", func(c *codec.Coder) { c.U64(new(uint64)) }, 0},
		"unknown flags":           {"\x04", func(c *codec.Coder) { c.Flags(new(bool), new(bool)) }, 0},
		"a boolean value of 2":    {"\x02", func(c *codec.Coder) { c.Flag(new(bool)) }, 0},
		"a long list":             {"\x09\x01\x01", func(c *codec.Coder) { codec.Slice(c, new([]uint64), 1, c.U64) }, 0},
		"a list that is too long": {"\x03\x01\x01\x01", func(c *codec.Coder) { codec.Bounded(c, new([]uint64), 2, c.U64) }, 0},
		"a long text":             {"\x02a", func(c *codec.Coder) { c.Text(new(string)) }, 1},
		"not below": {"\x02\x01\x01", func(c *codec.Coder) {
			n := uint64(0)
			codec.Slice(c, new([]uint32), 1, func(v *uint32) { codec.Next(c, v, &n, 3) })
		}, 2},
		"not after": {"\x02\x01\x00", func(c *codec.Coder) {
			n := uint64(0)
			codec.Slice(c, new([]uint64), 1, func(v *uint64) { c.After(v, &n, 3) })
		}, 3},
		"an unknown bit": {"\x04", func(c *codec.Coder) { c.Masked(make([]uint64, 2)) }, 0},
	} {
		r := codec.Reader([]byte(c.data))
		c.code(r)
		var e *codec.Error
		if err := r.In.Err(); !errors.As(err, &e) || e.Offset != c.offset {
			t.Errorf("%s: %v, want an error at byte %d", name, err, c.offset)
		}
	}
}

// Decoding any bytes either fails, or yields a value that does not change when it is encoded and
// decoded again.
func FuzzCoder(f *testing.F) {
	w := codec.Writer(nil)
	(&everything{Text: "a", Few: []uint32{1}, Fixed: []uint32{2}, Inner: make([]everything, 1)}).code(w)
	f.Add(w.Out)
	f.Fuzz(func(t *testing.T, data []byte) {
		var e, again everything
		r := codec.Reader(data)
		if e.code(r); r.In.Err() != nil {
			return
		}
		w := codec.Writer(nil)
		e.code(w)
		r = codec.Reader(w.Out)
		if again.code(r); r.In.Err() != nil || !reflect.DeepEqual(e, again) {
			t.Fatalf("%v: decoded\n%+v, and then\n%+v", r.In.Err(), e, again)
		}
	})
}
